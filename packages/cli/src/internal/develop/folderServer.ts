/**
 * A server of the modules of a folder. `skein run` calls this module, and the file of `skein build` contains it, so both
 * report the same errors. It imports nothing: `effect` and `@skein/server`, or `skein`, are those of the project.
 */
import type * as ConfigProviderModule from "effect/ConfigProvider"
import type * as EffectModule from "effect/Effect"
import type * as LayerModule from "effect/Layer"

type AnyLayer = LayerModule.Layer<never, unknown, unknown>

/** The functions of `effect/Effect` that the program uses. A server of the package `skein` has only these. */
export type Effects = Pick<
  typeof EffectModule,
  | "catchCause"
  | "context"
  | "fail"
  | "failCause"
  | "flatMap"
  | "matchCause"
  | "never"
  | "provideService"
  | "runPromise"
  | "scoped"
  | "tap"
  | "try"
  | "void"
>

/** The functions of `effect/Layer` that the program uses, as {@link Effects}. */
export type Layers = Pick<
  typeof LayerModule,
  "build" | "catchCause" | "effectContext" | "effectDiscard" | "isLayer" | "mergeAll" | "tap" | "unwrap"
>

/** The modules of the project that make the server. */
export interface ProjectModules {
  readonly Effect: Effects
  readonly Layer: Layers
  /** `@skein/server/McpServer`. */
  readonly McpServer: {
    readonly layer: (
      options: { readonly name: string; readonly version: string },
      ...definitions: ReadonlyArray<AnyLayer>
    ) => AnyLayer
  }
  /** The layer of a definition of the package `skein`. */
  readonly layerOf?: (value: unknown) => AnyLayer | undefined
}

/** A server of the package `skein`: its parts, which contain a copy of Effect, are those of `serverParts.ts` there. */
export interface BundledServer {
  readonly runStdio: (options: object) => void
  readonly runHttp: (options: object) => void
  readonly [partsKey]: () => Promise<ServerParts>
}

/** The parts of a server of the package `skein`. */
export interface ServerParts extends Required<ProjectModules> {
  readonly ConfigProvider: typeof ConfigProviderModule
  readonly layer: AnyLayer
  readonly loadTransport: (http: boolean) => Promise<{
    readonly runMain: (server: AnyLayer, options: object) => void
  }>
}

/** The key of the function that returns the parts of a server of the package `skein`. */
export const partsKey: unique symbol = Symbol.for("skein/serverParts")

/** The exports of a module, and its path for messages. */
export type LoadedModule = readonly [path: string, exports: Readonly<Record<string, unknown>>]

/** A module of the folder that cannot be a part of the server. */
export class FolderError extends Error {
  override readonly name = "FolderError"
  // The frames would show only this module.
  override readonly stack: string

  constructor(message: string) {
    super(message)
    this.stack = `FolderError: ${message}`
  }
}

/** The members of `Catalog` that show which module has registered a name. */
interface Catalog {
  readonly [kind: string]: { readonly version: number; readonly sorted: ReadonlyArray<readonly [string, unknown]> }
}

/** The keys of services of `@skein/server`, of all copies of the package. */
export const catalogKey = "@skein/server/Catalog"
export const serverKey = "@skein/server/McpServer"

/** The registries of the catalog, by the `kind` of a `DefinitionError`. */
const registries = { tool: "tools", resource: "resources", "resource template": "templates", prompt: "prompts" }

/** The instances of `AsyncServer` of all copies of `@skein/server`. */
export const isAsyncServer = (value: unknown): value is { readonly toLayer: () => unknown } =>
  typeof value === "object" && value !== null && "toLayer" in value && typeof value.toLayer === "function"

/** The instances of `AsyncServer` of all copies of the package `skein`. */
export const isBundledServer = (value: unknown): value is BundledServer =>
  typeof value === "object" && value !== null && partsKey in value

/** The advice about a module that is not a part of the server. */
const advice = "A module that is not a part of the server has a name that begins with _"

/** The exports of a module, in words. */
export const listExports = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "it has no exports" : `its exports are ${names.join(", ")}`

/** The report about a module without a definition, by the names of its exports. */
export const noDefinition = (path: string, names: ReadonlyArray<string>): string =>
  `The module ${path} exports no definition (of tool, resource or prompt of skein, or a layer of Tool.layer, Tool.async ` +
  `and so on): ${listExports(names)}. ${advice}`

/** The report about a module that exports a server. */
const exportsServer = (path: string): FolderError =>
  new FolderError(
    `The module ${path} exports a server: in a folder, modules export definitions, such as that of tool(…) or the layer of Tool.layer. ${advice}`
  )

/** The properties of the definitions of both packages, of all copies. */
const marks = { skein: Symbol.for("skein"), "@skein/server": "~effect/Layer" } as const

/** The layers that a module exports. One that is exported by two names counts once. */
const layersOf = (
  [path, exports]: LoadedModule,
  layerOf: NonNullable<ProjectModules["layerOf"]>,
  [own, other]: ReadonlyArray<keyof typeof marks>
): ReadonlyArray<AnyLayer> => {
  const values = Object.values(exports)
  if (values.some((value) => typeof value === "object" && value !== null && marks[other!] in value)) {
    throw new FolderError(
      `The module ${path} exports a definition of ${other}, and ${own} serves the folder: use one of these packages`
    )
  }
  const layers = new Set(values.flatMap((value) => layerOf(value) ?? []))
  if (layers.size > 0) return [...layers]
  if (values.some((value) => isAsyncServer(value) || isBundledServer(value))) throw exportsServer(path)
  throw new FolderError(noDefinition(path, Object.keys(exports)))
}

/** Records which module has registered a name, for the report about a second one. */
class Owners {
  readonly #paths = new Map<string, string>()
  readonly #versions = new Map<string, number>()

  add(catalog: Catalog, path: string): void {
    for (const [kind, name] of Object.entries(registries)) {
      const registry = catalog[name]!
      if (this.#versions.get(kind) === registry.version) continue
      this.#versions.set(kind, registry.version)
      for (const [entry] of registry.sorted) {
        const key = `${kind} ${entry}`
        if (!this.#paths.has(key)) this.#paths.set(key, path)
      }
    }
  }

  get(kind: unknown, entry: unknown): string | undefined {
    return this.#paths.get(`${kind} ${entry}`)
  }
}

/** The key of the service that is missing, if that is the reason of a failure. */
export const missingService = (error: unknown): string | undefined =>
  error instanceof Error ? /^Service not found: ([^\n]+)$/.exec(error.message.split("\n")[0]!)?.[1] : undefined

/** The failure of a module with its path, if it is one that its author can correct. */
const withPath = (error: unknown, path: string, owners: Owners): FolderError | undefined => {
  if (error instanceof FolderError) return error
  const service = missingService(error)
  if (service !== undefined) {
    return new FolderError(
      `The module ${path} needs the service ${service}: provide its layer, with Layer.provide, before you export it`
    )
  }
  if (!(error instanceof Error) || !("_tag" in error) || error._tag !== "DefinitionError") return undefined
  const { definition, kind } = error as { readonly definition?: unknown; readonly kind?: unknown }
  const owner = owners.get(kind, definition)
  const also = owner === undefined || owner === path ? "" : `, in ${owner}`
  return new FolderError(`The module ${path} cannot be served: ${error.message}${also}`)
}

/** The server of the modules of a folder. Fails with `FolderError` for a module that cannot be a part of it. */
export const folderServer = (
  { Effect, Layer, McpServer, layerOf }: ProjectModules,
  options: { readonly name: string; readonly version: string },
  modules: ReadonlyArray<LoadedModule>
): AnyLayer => {
  const owners = new Owners()
  const packages = ["skein", "@skein/server"] as const
  const definitionsOf = (module: LoadedModule): ReadonlyArray<AnyLayer> =>
    layerOf === undefined
      ? layersOf(module, (value) => Layer.isLayer(value) ? value as AnyLayer : undefined, packages.toReversed())
      : layersOf(module, layerOf, packages)
  const part = (module: LoadedModule): AnyLayer => {
    const [path] = module
    const [first, ...more] = definitionsOf(module)
    return Layer.mergeAll(first!, ...more).pipe(
      Layer.tap((provided) =>
        Effect.flatMap(Effect.context<never>(), ({ mapUnsafe }) => {
          if (provided.mapUnsafe.has(serverKey)) return Effect.fail(exportsServer(path))
          owners.add(mapUnsafe.get(catalogKey) as Catalog, path)
          return Effect.void
        })
      ),
      Layer.catchCause((cause) => {
        for (const reason of cause.reasons) {
          const error = reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined
          const reported = withPath(error, path, owners)
          if (reported !== undefined) return Layer.effectDiscard(Effect.fail(reported))
        }
        return Layer.effectDiscard(Effect.failCause(cause))
      })
    )
  }
  return Layer.unwrap(Effect.try({
    try: () => McpServer.layer(options, ...modules.map(part)),
    catch: (error) => error as FolderError
  }))
}

/**
 * `skein run`: serves the server that a module exports, or that the modules of a folder make.
 *
 * The module, and `@skein/server` and `effect` or `skein`, are those of the user's project. This module imports none of
 * these packages, so that the values of the project are never given to another copy of a class.
 */
import type * as ConfigProviderModule from "effect/ConfigProvider"
import type * as LayerModule from "effect/Layer"
import { createRequire } from "node:module"
import { loadEnvFile } from "node:process"
import { pathToFileURL } from "node:url"
import {
  catalogKey,
  type Effects,
  FolderError,
  folderServer,
  isAsyncServer,
  isBundledServer,
  type Layers,
  listExports,
  missingService,
  partsKey,
  type ProjectModules,
  serverKey,
  type ServerParts
} from "./folderServer.ts"
import { type ModuleFolder, readFolder } from "./nodeFolder.ts"
import { type Exports, findDependency, findModule, installation, loadModules, unusableFile } from "./nodeLoadModule.ts"

/** How a server is served over HTTP. */
export interface HttpLine {
  readonly http: boolean
  readonly port: number | undefined
  readonly host: string | undefined
}

/** A parsed command line of `run`. */
export interface RunLine extends HttpLine {
  readonly module: string
  /** The name of the export that is the server. */
  readonly exportName: string | undefined
  /** A file with variables for the environment of the server. */
  readonly dotenv: string | undefined
  /** The number of processes, over HTTP. */
  readonly workers?: number | "auto" | undefined
}

type ServerLayer = LayerModule.Layer<never, unknown, unknown>

/** A module of the server that runs the process. */
interface Transport {
  readonly runMain: (server: ServerLayer, options: object) => void
}

const kindOf = (value: unknown): string =>
  value === null
    ? "null"
    : typeof value === "function"
    ? "a function: export the layer that it returns"
    : typeof value === "object"
    ? `an object${Array.isArray(value) ? " (an array)" : ""}`
    : `a ${typeof value}`

/**
 * The export that is the server: the named one, or `default`, or the only one that can be a server. Fails if there is
 * no such export, or more than one.
 */
const selectServer = (
  exports: Exports,
  { isLayer, name, path }: {
    readonly name: string | undefined
    readonly path: string
    readonly isLayer: (value: unknown) => boolean
  }
): unknown => {
  const names = Object.keys(exports)
  const list = listExports(names)
  const isServer = (value: unknown): boolean => isLayer(value) || isAsyncServer(value) || isBundledServer(value)
  if (name === undefined && exports["default"] === undefined) {
    const [only, ...more] = names.filter((name) => isServer(exports[name]))
    if (only === undefined) {
      throw unusableFile(
        `The module ${path} exports no server, which is a layer of McpServer.layer or an AsyncServer: ${list}`
      )
    }
    if (more.length > 0) {
      throw unusableFile(
        `The module ${path} exports several layers, select one with --export: ${[only, ...more].join(", ")}`
      )
    }
    return exports[only]
  }
  const selected = name ?? "default"
  if (!Object.hasOwn(exports, selected)) throw unusableFile(`The module ${path} has no export ${selected}: ${list}`)
  const value = exports[selected]
  if (isServer(value)) return value
  throw unusableFile(
    `The export ${selected} of ${path} is not a server, which is a layer of McpServer.layer or an AsyncServer, but ` +
      kindOf(value)
  )
}

/** The advice about a service that a layer requires. */
export const missing = (path: string, service: string): string =>
  service === catalogKey || service.startsWith("@skein/server/Registry")
    ? `The export of ${path} is a layer of definitions, not a server: pass it to McpServer.layer`
    : service === serverKey
    ? `The export of ${path} is a layer without a server: export the layer of McpServer.layer`
    : `The server of ${path} needs the service ${service}: provide its layer, with Layer.provide, before you export it`

/** Exits with a report, before anything was served. Another copy of `effect` runs the layer: it cannot fail with ours. */
const exitWith = (report: string): void => {
  process.stderr.write(`skein: ${report}\n`, () => process.exit(2))
}

/**
 * Reports a service that the layer requires. The types of a program show it, but the exports of a module have no types
 * when it runs.
 */
const checked = (server: ServerLayer, path: string, Effect: Effects, Layer: Layers): ServerLayer => {
  const build = Effect.tap(Layer.build(server as LayerModule.Layer<unknown, unknown>), (services) => {
    if (services.mapUnsafe.has(serverKey)) return Effect.void
    exitWith(missing(path, serverKey))
    return Effect.never
  })
  return Layer.effectContext(Effect.catchCause(build, (cause) => {
    for (const reason of cause.reasons) {
      const service = missingService(reason._tag === "Die" ? reason.defect : undefined)
      const report = service !== undefined
        ? missing(path, service)
        : reason._tag === "Fail" && reason.error instanceof FolderError
        ? reason.error.message
        : undefined
      if (report === undefined) continue
      exitWith(report)
      return Effect.never
    }
    return Effect.failCause(cause)
  })) as ServerLayer
}

/**
 * Runs a function while stdout is redirected to stderr: on stdio, stdout carries protocol messages only. A program that
 * the function starts may keep the redirected `write`, or put one of its own in its place.
 */
export const withoutStdout = async <A>(run: () => Promise<A>): Promise<A> => {
  const { stdout } = process
  const { write } = stdout
  let isRedirected = true
  const redirected =
    ((...args: Parameters<typeof write>) =>
      isRedirected ? process.stderr.write(...args) : write.apply(stdout, args)) as typeof write
  stdout.write = redirected
  try {
    return await run()
  } finally {
    isRedirected = false
    if (stdout.write === redirected) stdout.write = write
  }
}

const loadFrom = async <A>(specifier: string, from: string): Promise<A> => {
  const file = findDependency(specifier, from)
  if (file === undefined) {
    throw unusableFile(`${specifier} is not installed in the project of ${from}: ${installation}`)
  }
  return await import(pathToFileURL(file).href) as A
}

const loadVariables = (file: string): void => {
  try {
    loadEnvFile(file)
  } catch (error) {
    throw unusableFile(`The file of --dotenv cannot be read: ${error instanceof Error ? error.message : error}`)
  }
}

const isConfigError = (error: unknown): error is { readonly message: string } =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "ConfigError"

/** The text of an error of another copy of effect. */
export const textOf = (error: unknown): string =>
  error instanceof Error || isConfigError(error) ? error.message : String(error)

/** A server of a project, and the copy of effect that it uses. */
export interface LoadedServer {
  readonly layer: ServerLayer
  readonly Effect: Effects
  readonly Layer: Layers
  /** Imports `ConfigProvider` of the copy of effect. */
  readonly loadConfigProvider: () => Promise<typeof ConfigProviderModule>
  readonly transport: Transport
}

/** The loaded modules of a command line. */
interface LoadedModules {
  readonly line: RunLine
  readonly folder: ModuleFolder | undefined
  /** The exports of the modules. */
  readonly loaded: ReadonlyArray<Exports>
  /** A file of the project. */
  readonly from: string
}

const fromFolder = (modules: ProjectModules, { modules: files, name, version }: ModuleFolder, loaded: LoadedModules) =>
  folderServer(modules, { name, version }, files.map(({ path }, at) => [path, loaded.loaded[at]!]))

const ofParts = (
  { ConfigProvider, Effect, Layer }: ServerParts,
  layer: ServerLayer,
  transport: Transport
): LoadedServer => ({ layer, Effect, Layer, loadConfigProvider: async () => ConfigProvider, transport })

/** Loads a server of the package `skein`; undefined if the modules export none. */
const loadBundled = async (modules: LoadedModules): Promise<LoadedServer | undefined> => {
  const { folder, from, line, loaded: [exports] } = modules
  if (folder === undefined) {
    const found = selectServer(exports!, { name: line.exportName, path: line.module, isLayer: () => false })
    if (!isBundledServer(found)) return undefined
    const parts = await found[partsKey]()
    // It runs itself, with its logger and the rest of its options.
    const runMain = (_: ServerLayer, options: object): void =>
      line.http ? found.runHttp(options) : found.runStdio(options)
    return ofParts(parts, parts.layer, { runMain })
  }
  const { AsyncServer } = await loadFrom<{ readonly AsyncServer: new(options: object) => object }>("skein", from)
  const server = new AsyncServer({ name: folder.name, version: folder.version })
  if (!isBundledServer(server)) return undefined
  const parts = await server[partsKey]()
  return ofParts(parts, fromFolder(parts, folder, modules), await parts.loadTransport(line.http))
}

/** Loads a server of `@skein/server`. */
const loadLayer = async (modules: LoadedModules): Promise<LoadedServer> => {
  const { folder, from, line, loaded: [exports] } = modules
  const specifier = line.http ? "@skein/server/NodeHttp" : "@skein/server/Stdio"
  const transport = await loadFrom<Transport>(specifier, from)
  // The copy of effect that the server uses.
  const ofServer = createRequire(from).resolve(specifier)
  const Layer = await loadFrom<Layers>("effect/Layer", ofServer)
  const Effect = await loadFrom<Effects>("effect/Effect", ofServer)
  const selected = async (): Promise<ServerLayer> => {
    if (folder !== undefined) {
      const McpServer = await loadFrom<ProjectModules["McpServer"]>("@skein/server/McpServer", from)
      return fromFolder({ Effect, Layer, McpServer }, folder, modules)
    }
    const found = selectServer(exports!, { name: line.exportName, path: line.module, isLayer: Layer.isLayer })
    return (isAsyncServer(found) ? found.toLayer() : found) as ServerLayer
  }
  const loadConfigProvider = () => loadFrom<typeof ConfigProviderModule>("effect/ConfigProvider", ofServer)
  return { layer: await selected(), Effect, Layer, loadConfigProvider, transport }
}

/** Whether the package `skein` serves the modules: it has made an export, or it is installed alone. */
const isBundled = async ({ folder, from, loaded }: LoadedModules): Promise<boolean> => {
  const values = loaded.flatMap((exports) => Object.values(exports))
  if (folder === undefined && values.some(isBundledServer)) return true
  if (findDependency("skein", from) === undefined) return false
  const core = findDependency("@skein/server/McpServer", from)
  if (core === undefined) return true
  if (folder === undefined) return false
  const { isLayer } = await loadFrom<Layers>("effect/Layer", core)
  return !values.some((value) => isLayer(value) as boolean)
}

/** Loads the module or the folder, and the modules that serve it; undefined for a module that has started its server. */
export const loadServer = (line: RunLine): Promise<LoadedServer | undefined> =>
  withoutStdout(async () => {
    const path = findModule(line.module)
    if (line.dotenv !== undefined) loadVariables(line.dotenv)
    const folder = readFolder(path, line)
    const files = folder?.modules.map(({ file }) => file) ?? [path]
    const loaded = await loadModules(files)
    const from = files[0]!
    const exports = loaded[0]!
    // A module without exports is a program, which has started its server: as for `skein build`.
    const isProgram = folder === undefined && line.exportName === undefined && Object.keys(exports).length === 0
    if (isProgram && !line.http) return undefined
    const modules: LoadedModules = { line, folder, loaded, from }
    return await isBundled(modules) ? await loadBundled(modules) ?? await loadLayer(modules) : await loadLayer(modules)
  })

/** Returns a function that starts the server of a module or a folder. */
export const prepareServer = async (line: RunLine): Promise<() => void> => {
  const loaded = await loadServer(line)
  // A module without exports starts its server, which reads stdin or listens: without one the process ends.
  if (loaded === undefined) {
    return () =>
      void process.once("beforeExit", () => {
        if (process.stdin.readableFlowing !== null) return
        exitWith(
          `The module ${line.module} exports no server, and has started none: export a layer of McpServer.layer or an AsyncServer`
        )
      })
  }
  const { Effect, Layer, layer, transport } = loaded
  const { host, port, workers } = line
  const server = checked(layer, line.module, Effect, Layer)
  return () => transport.runMain(server, line.http ? { host, port, workers } : {})
}

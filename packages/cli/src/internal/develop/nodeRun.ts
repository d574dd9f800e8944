/**
 * `skein run`: serves the server that a module exports, or that the modules of a folder make.
 *
 * The module, `@skein/server` and `effect` are those of the user's project. This module imports neither package, so that
 * the values of the project are never given to another copy of a class.
 */
import type * as EffectModule from "effect/Effect"
import type * as LayerModule from "effect/Layer"
import { createRequire } from "node:module"
import { loadEnvFile } from "node:process"
import { pathToFileURL } from "node:url"
import {
  catalogKey,
  FolderError,
  folderServer,
  isAsyncServer,
  listExports,
  missingService,
  type ProjectModules,
  serverKey
} from "./folderServer.ts"
import { readFolder } from "./nodeFolder.ts"
import { type Exports, findDependency, findModule, loadModules, unusableFile } from "./nodeLoadModule.ts"

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
}

type Layers = typeof LayerModule
type Effects = typeof EffectModule
type ServerLayer = LayerModule.Layer<never, unknown, unknown>

/** A module of `@skein/server` that runs the process. */
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
  const isServer = (value: unknown): boolean => isLayer(value) || isAsyncServer(value)
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
const missing = (path: string, service: string): string =>
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
    throw unusableFile(`${specifier} is not installed in the project of ${from}: npm install @skein/server effect`)
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

/** A server of a project, and the copy of effect that it uses. */
export interface LoadedServer {
  readonly layer: ServerLayer
  readonly Effect: Effects
  readonly Layer: Layers
  /** Imports a module of the copy of effect. */
  readonly loadEffect: <A>(specifier: string) => Promise<A>
  readonly transport: Transport
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
    const specifier = line.http ? "@skein/server/NodeHttp" : "@skein/server/Stdio"
    const transport = await loadFrom<Transport>(specifier, from)
    // The copy of effect that the server uses.
    const ofServer = createRequire(from).resolve(specifier)
    const loadEffect = <A>(specifier: string): Promise<A> => loadFrom<A>(specifier, ofServer)
    const Layer = await loadEffect<Layers>("effect/Layer")
    const Effect = await loadEffect<Effects>("effect/Effect")
    const selected = async (): Promise<ServerLayer> => {
      if (folder !== undefined) {
        const McpServer = await loadFrom<ProjectModules["McpServer"]>("@skein/server/McpServer", from)
        const { modules, name, version } = folder
        return folderServer(
          { Effect, Layer, McpServer },
          { name, version },
          modules.map(({ path }, at) => [path, loaded[at]!])
        )
      }
      const found = selectServer(exports, { name: line.exportName, path: line.module, isLayer: Layer.isLayer })
      return (isAsyncServer(found) ? found.toLayer() : found) as ServerLayer
    }
    return { layer: await selected(), Effect, Layer, loadEffect, transport }
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
  const { host, port } = line
  const server = checked(layer, line.module, Effect, Layer)
  return () => transport.runMain(server, line.http ? { host, port } : {})
}

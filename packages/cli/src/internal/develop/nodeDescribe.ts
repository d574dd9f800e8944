/**
 * The description of a server, for `skein publish` and `skein build --mcpb`: its options, its tools, and the variables that
 * its `Config` and its files read, together with its `package.json`.
 *
 * The server is built once for each group of variables that it cannot be built without, and is never served. So variables
 * that only a handler reads are searched in the text of the files. `--env` names those whose names the text does not have.
 */
import type * as EffectModule from "effect/Effect"
import type * as LayerModule from "effect/Layer"
import type { McpServer } from "@skein/server/McpServer"
import { readManifest } from "../base/nodeProject.ts"
import { CommandFailed } from "../base/process.ts"
import { catalogKey, serverKey } from "./folderServer.ts"
import { recordEnvironment } from "./nodeEnvironment.ts"
import { findModule, unusableFile } from "./nodeLoadModule.ts"
import { type LoadedServer, loadServer, textOf, withoutStdout } from "./nodeRun.ts"

/** A variable of the environment of a server. */
export interface Variable {
  readonly name: string
  /** Whether the server cannot be built without it. */
  readonly isRequired: boolean
  /** Whether its name is that of a secret. */
  readonly isSecret: boolean
}

/** A server, its variables and its package. */
export interface DescribedServer {
  readonly options: McpServer["Service"]["options"]
  readonly tools: ReadonlyArray<{ readonly name: string; readonly description?: string }>
  readonly variables: ReadonlyArray<Variable>
  /** The nearest `package.json`. */
  readonly manifest: Readonly<Record<string, unknown>>
}

/** A parsed command line that names a server to describe. */
export interface DescribeLine {
  readonly module: string
  readonly exportName: string | undefined
  readonly dotenv: string | undefined
  /** Variables for the server, which also belong to its description. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** How often a server is built: it lacks at least one more variable each time. */
const maxBuilds = 64

const secretName = /(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIALS?|DSN|DATABASE_URL)S?$/i

type Path = ReadonlyArray<string | number>

/** Records the variables that a program reads, and gives it some of them. */
const makeRecorder = async (values: Readonly<Record<string, string>>, { Effect, loadConfigProvider }: LoadedServer) => {
  const Provider = await loadConfigProvider()
  const inner = Provider.fromEnv({ env: { ...values } })
  const read = new Map<string, Path>()
  const provider = Provider.make((path) => {
    if (path.length > 0) read.set(path.join("_"), path)
    return inner.load(path)
  })
  const provide = <A, E>(effect: EffectModule.Effect<A, E>): EffectModule.Effect<A, E> =>
    Effect.provideService(effect, Provider.ConfigProvider, provider)
  return { read, provide }
}

/** The services of a server that is built, or the texts of the errors. */
const build = ({ Effect, Layer, layer }: LoadedServer, provide: Awaited<ReturnType<typeof makeRecorder>>["provide"]) =>
  withoutStdout(() => {
    // Services that are missing are defects.
    const built = Effect.scoped(Layer.build(layer as LayerModule.Layer<unknown, unknown>))
    return Effect.runPromise(Effect.matchCause(provide(built), {
      onSuccess: ({ mapUnsafe }) => ({ services: mapUnsafe, errors: [] as ReadonlyArray<string> }),
      onFailure: ({ reasons }) => ({
        services: undefined,
        errors: reasons.map((reason) =>
          reason._tag === "Fail" ? textOf(reason.error) : reason._tag === "Die" ? textOf(reason.defect) : "interrupted"
        )
      })
    }))
  })

/** Whether an error is about a variable that was read: each part of its path is quoted. */
const isAbout = (error: string, path: Path): boolean => path.every((part) => error.includes(JSON.stringify(part)))

/** Whether a path is below another one. */
const isWithin = (path: Path, above: Path): boolean =>
  path.length > above.length && above.every((part, at) => part === path[at])

/** The lists of the catalog that are read. */
interface Catalog {
  readonly tools: { readonly sorted: ReadonlyArray<readonly [string, { readonly definition: object }]> }
}

const toolsOf = ({ tools }: Catalog): DescribedServer["tools"] =>
  tools.sorted.map(([name, { definition }]) =>
    "description" in definition && typeof definition.description === "string"
      ? { name, description: definition.description }
      : { name }
  )

/** Builds the server of a module or a folder, and returns what it says about itself. */
export const describeServer = async (line: DescribeLine): Promise<DescribedServer> => {
  const path = findModule(line.module)
  for (const [name, value] of Object.entries(line.env)) if (value !== undefined) process.env[name] = value
  const environment = recordEnvironment(path)
  try {
    return await describe(line, readManifest(path) ?? {}, () => [...environment.read, ...environment.readByText()])
  } catch (error) {
    const missing = [...environment.read].filter((name) => process.env[name] === undefined)
    if (missing.length === 0 || !(error instanceof CommandFailed)) throw error
    throw unusableFile(
      `${error.report}. The server reads ${
        missing.join(", ")
      }, without a value here: give each that it needs any value ` +
        `that it accepts, with --env ${missing[0]}=<value>. The value is not written`
    )
  } finally {
    environment.restore()
  }
}

const describe = async (
  line: DescribeLine,
  manifest: DescribedServer["manifest"],
  environment: () => ReadonlyArray<string>
): Promise<DescribedServer> => {
  const loaded = await loadServer({ ...line, http: false, port: undefined, host: undefined })
  if (loaded === undefined) {
    throw unusableFile(
      `The module ${line.module} exports no server, which is a layer of McpServer.layer or an AsyncServer: name the module ` +
        "that has it, rather than the program that starts it"
    )
  }
  const values: Record<string, string> = {}
  for (let builds = 0; builds < maxBuilds; builds++) {
    const { provide, read } = await makeRecorder(values, loaded)
    const { errors, services } = await build(loaded, provide)
    if (services !== undefined) {
      const server = services.get(serverKey) as McpServer["Service"] | undefined
      if (server === undefined) throw unusableFile(`The export of ${line.module} is a layer without a server`)
      // The path of a group is not a variable: those in it are.
      const paths = [...read.values()]
      const names = [...read].flatMap(([name, path]) =>
        name in values || !paths.some((other) => isWithin(other, path)) ? [name] : []
      )
      const all = [...new Set([...names, ...environment(), ...Object.keys(line.env)])].toSorted()
      return {
        options: server.options,
        tools: toolsOf(services.get(catalogKey) as Catalog),
        variables: all.map((name) => ({
          name,
          isRequired: name in values || (name in line.env && !names.includes(name)),
          isSecret: secretName.test(name)
        })),
        manifest
      }
    }
    const missing = [...read].filter(([name, path]) =>
      !(name in values) && errors.some((error) => isAbout(error, path))
    )
    if (missing.length === 0) {
      throw unusableFile(`The server of ${line.module} cannot be built: ${errors.join("; ")}`)
    }
    for (const [name] of missing) {
      const value = process.env[name]
      if (value === undefined) {
        throw unusableFile(
          `The server of ${line.module} cannot be built without the variable ${name}: give any value that it accepts, ` +
            `with --env ${name}=<value>. The value is not written`
        )
      }
      values[name] = value
    }
  }
  throw unusableFile(`The server of ${line.module} needs more than ${maxBuilds} variables`)
}

/**
 * `skein inspect --fleet`: the parts of a server that each of its processes would have apart. The server is built, and is
 * never served. Variables and changes of the catalog are found in the text of its files, so some can be missed.
 */
import type * as EffectModule from "effect/Effect"
import type * as LayerModule from "effect/Layer"
import { readFileSync } from "node:fs"
import { relative, sep } from "node:path"
import { projectFolder } from "../base/nodeProject.ts"
import { CommandFailed } from "../base/process.ts"
import { missingService, serverKey } from "./folderServer.ts"
import { findModule, unusableFile } from "./nodeLoadModule.ts"
import { recordFiles } from "./nodeProjectFiles.ts"
import { type LoadedServer, loadServer, missing, textOf, withoutStdout } from "./nodeRun.ts"

/** A part that each process has apart, and how processes can share it. */
export interface LocalPart {
  readonly what: string
  readonly remedy: string
}

/** A parsed command line of `inspect --fleet`. */
export interface FleetLine {
  readonly module: string
  readonly exportName: string | undefined
  /** Variables for the server. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** How many parts of the text of files are listed. */
const maxFound = 100

/** The keys of `@skein/runtime` and `@skein/server`, of all copies of the packages. */
const receiverKey = "@skein/runtime/ProcessLocal/Receiver"
const localPartsKey = Symbol.for("@skein/server/localParts")

/** A variable of a module that can change: `let`, or an empty collection. */
const variable =
  /^(?:export )?(?:(?:let|var) ([\w$]+)|const ([\w$]+)[^\n]*? = (?:new (?:Map|Set|WeakMap|Array)(?:<.*>)?\(\)|\[\]|\{\});?\s*$)/

/** A change of the catalog while the server runs. */
const change =
  /\b((?:Tool|Prompt|Resource|ResourceTemplate)\.(?:add|replace)|Catalog\.(?:remove|disable|enable|setEnabled)|\w*[sS]erver\.(?:add|remove|setEnabled))\(/

/** The mark of a line, or of the line below it, that is not reported. */
const mark = /\/\/ process-local\b/

/** The variables and changes of the catalog in the text of a file. */
export const partsOfText = (file: string, text: string): ReadonlyArray<LocalPart> => {
  const lines = text.split("\n")
  return lines.flatMap((line, index): ReadonlyArray<LocalPart> => {
    if (/^\s*(\*|\/[/*])/.test(line) || mark.test(line) || mark.test(lines[index - 1] ?? "")) return []
    const at = `${file}:${index + 1}`
    const [, changing, collection] = variable.exec(line) ?? []
    const name = changing ?? collection
    if (name !== undefined) {
      return [{
        what: `the variable ${name} (${at})`,
        remedy: "use State or a database; for a cache or a constant, write // process-local above it"
      }]
    }
    const [, called] = change.exec(line) ?? []
    return called === undefined ? [] : [{
      what: `the catalog, changed at run time by ${called} (${at})`,
      remedy: "use Catalog.visibleTo; if each process makes the change, write // process-local above it"
    }]
  })
}

/** The services of the server that are read. */
type Services = {
  readonly mapUnsafe: ReadonlyMap<string, { readonly [localPartsKey]?: EffectModule.Effect<ReadonlyArray<LocalPart>> }>
}

/** Builds the server, and returns the parts that it reports. */
const partsOfServer = async ({ Effect, Layer, layer }: LoadedServer, { module }: FleetLine) => {
  const parts: Array<LocalPart & { readonly variable?: string }> = []
  const found = Effect.flatMap(
    Layer.build(layer as LayerModule.Layer<unknown, unknown>),
    (services): EffectModule.Effect<ReadonlyArray<LocalPart>, string> => {
      const server = (services as unknown as Services).mapUnsafe.get(serverKey)
      if (server === undefined) return Effect.fail("it is a layer without a server")
      return server[localPartsKey] ?? Effect.fail("its version of @skein/server is older than skein inspect --fleet")
    }
  )
  const receiver = { key: receiverKey } as never
  const outcome = Effect.provideService(Effect.scoped(found), receiver, (part: LocalPart) => void parts.push(part))
  const problems = await withoutStdout(() =>
    Effect.runPromise(Effect.matchCause(outcome as EffectModule.Effect<ReadonlyArray<LocalPart>, unknown>, {
      onSuccess: (more) => {
        parts.push(...more)
        return []
      },
      onFailure: ({ reasons }) =>
        reasons.map((reason) => {
          const error = reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : "interrupted"
          const service = missingService(error)
          return service === undefined ? textOf(error) : missing(module, service)
        })
    }))
  )
  if (problems.length > 0) throw unusableFile(`The server of ${module} cannot be built: ${problems.join("; ")}`)
  return parts.flatMap(({ remedy, variable, what }) =>
    variable !== undefined && process.env[variable] !== undefined ? [] : [{ what, remedy }]
  )
}

/** Builds the server of a module or a folder, and returns the parts that each of its processes would have apart. */
export const localPartsOf = async (line: FleetLine): Promise<ReadonlyArray<LocalPart>> => {
  const path = findModule(line.module)
  for (const [name, value] of Object.entries(line.env)) if (value !== undefined) process.env[name] = value
  const folder = projectFolder(path)
  const { files, stop } = recordFiles(path)
  const nameOf = (file: string): string => relative(folder, file).replaceAll(sep, "/")
  try {
    const loaded = await loadServer({ ...line, dotenv: undefined, http: true, port: undefined, host: undefined })
    if (loaded === undefined) throw unusableFile(`The module ${line.module} exports no server`)
    const parts = await partsOfServer(loaded, line)
    const inFiles = files().toSorted().flatMap((file) => partsOfText(nameOf(file), readFileSync(file, "utf8")))
    return [...parts, ...inFiles.slice(0, maxFound)]
  } finally {
    stop()
  }
}

/** Writes the parts for a person. */
export const localPartsText = (parts: ReadonlyArray<LocalPart>): string =>
  ["Each process would have these parts apart:", ...parts.map(({ remedy, what }) => `- ${what}\n    ${remedy}`)].join(
    "\n"
  )

/** The failure of a server with such parts, after they were printed. */
export const hasLocalParts = new CommandFailed({ exitCode: 1 })

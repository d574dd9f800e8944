/**
 * The official JSON Schemas, read from the folder that `SKEIN_SPEC_DIR` names (relative to the repository; by default
 * `../shared/spec`). They are not part of this repository. Without them the oracle's tests are skipped with a message;
 * under `CI=true` they fail, unless `SKEIN_SPEC_DIR` is `none`.
 */
import * as Revision from "@skein/protocol/Revision"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, it } from "vitest"

/** A JSON Schema node with the keywords that the official schemas use. */
export interface Node {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly anyOf?: ReadonlyArray<Node>
  readonly allOf?: ReadonlyArray<Node>
  readonly not?: Node
  readonly properties?: Readonly<Record<string, Node>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean | Node
  readonly propertyNames?: Node
  readonly items?: Node
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly format?: string
}

/** The name of an official schema: a revision, or the tasks extension. */
export type DocumentName = Revision.Revision | "tasks"

/** One official schema file. */
export interface Document {
  readonly name: DocumentName
  readonly dialect: "draft-07" | "2020-12"
  /** The start of a reference to a definition: `#/definitions/` or `#/$defs/`. */
  readonly prefix: string
  readonly definitions: Readonly<Record<string, Node>>
}

const root = fileURLToPath(new URL("../../../../", import.meta.url))

/** The folder of the official schemas. */
export const directory = resolve(root, process.env["SKEIN_SPEC_DIR"] ?? "../shared/spec")

/** Returns the revision of a document's messages. For the extension that is the newest. */
export const carrier = (name: DocumentName): Revision.Revision => name === "tasks" ? "2026-07-28" : name

const fileOf = (name: DocumentName): string =>
  name === "tasks" ? join(directory, "extensions", "tasks.schema.json") : join(directory, name, "schema.json")

/** The names of all official schemas: the five revisions, oldest first, and the tasks extension. */
export const names: ReadonlyArray<DocumentName> = [...Revision.all, "tasks"]

/** Whether all official schemas exist. */
export const present = names.every((name) => existsSync(fileOf(name)))

const loaded = new Map<DocumentName, Document>()

/** Returns a schema. Each file is read once. */
export const load = (name: DocumentName): Document => {
  const known = loaded.get(name)
  if (known !== undefined) return known
  const file: {
    readonly $schema: string
    readonly definitions?: Document["definitions"]
    readonly $defs?: Document["definitions"]
  } = JSON.parse(readFileSync(fileOf(name), "utf8"))
  const definitions = file.definitions ?? file.$defs
  if (definitions === undefined) throw new Error(`${fileOf(name)} has no definitions`)
  const document: Document = {
    name,
    dialect: file.$schema.includes("draft-07") ? "draft-07" : "2020-12",
    prefix: file.definitions === undefined ? "#/$defs/" : "#/definitions/",
    definitions
  }
  loaded.set(name, document)
  return document
}

/**
 * Returns every name of a member in any revision, except those of the JSON-RPC envelope and `_meta`, which is reserved
 * everywhere.
 */
export const memberNames = (): ReadonlyArray<string> => {
  const found = new Set<string>()
  const walk = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return
    if ("properties" in node) { for (const name of Object.keys(node.properties as object)) found.add(name) }
    for (const child of Object.values(node)) walk(child)
  }
  for (const name of names) walk(load(name).definitions)
  for (const name of ["jsonrpc", "id", "method", "params", "result", "error", "_meta"]) found.delete(name)
  return [...found].sort()
}

/** An official example of 2026-07-28. */
export interface Example {
  readonly definition: string
  readonly file: string
  readonly value: unknown
}

/** Returns all examples: the files in `2026-07-28/examples/<definition>/`. */
export const examples = (): ReadonlyArray<Example> => {
  const folder = join(directory, "2026-07-28", "examples")
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => {
      const file = path.slice(folder.length + 1)
      return { file, definition: dirname(file), value: JSON.parse(readFileSync(path, "utf8")) as unknown }
    })
}

/** A `describe` that needs the official schemas. */
export const describeSpec = (name: string, tests: () => void): void => {
  if (present) {
    describe(name, tests)
  } else if (process.env["CI"] === "true" && process.env["SKEIN_SPEC_DIR"] !== "none") {
    it(`${name} · the official schemas are required in CI`, () => {
      throw new Error(`the official schemas are not at ${directory}: set SKEIN_SPEC_DIR`)
    })
  } else {
    it.skip(`${name} · not checked: the official schemas are not at ${directory}, set SKEIN_SPEC_DIR`, () => {})
  }
}

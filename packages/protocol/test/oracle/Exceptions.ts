/**
 * Where an official JSON Schema is narrower than the specification's own prose and TypeScript. The schemas are
 * generated from TypeScript, and their generator writes some of its unions with `integer` for `number` and without
 * `null`. Each exception replaces one node, and fails when the node is no longer what it was: a repaired schema makes
 * it stale.
 */
import { isDeepStrictEqual } from "node:util"
import * as Spec from "./Spec.ts"

interface Exception {
  readonly documents: ReadonlyArray<Spec.DocumentName>
  /** The path of the node inside `definitions` or `$defs`. */
  readonly path: ReadonlyArray<string | number>
  readonly official: unknown
  readonly meant: unknown
}

/**
 * `JSONValue` is "any JSON value": `string | number | boolean | null | JSONObject | JSONArray`. The generated schema
 * forgets `null` and fractions, so that `{ "experimental": { "x": { "ratio": 0.5 } } }` would be refused.
 */
const jsonValue: Exception = {
  documents: ["2026-07-28", "tasks"],
  path: ["JSONValue", "anyOf", 2, "type"],
  official: ["string", "integer", "boolean"],
  meant: ["string", "number", "boolean", "null"]
}

/**
 * The answer to a form: a field may be asked for as `{ "type": "number" }` with fractional bounds, so the answer may be
 * a fraction. The schema is the generated form of `string | number | boolean`, and says `integer`.
 */
const elicited: Exception = {
  documents: ["2025-11-25", "2026-07-28", "tasks"],
  path: ["ElicitResult", "properties", "content", "additionalProperties", "anyOf", 1, "type"],
  official: ["string", "integer", "boolean"],
  meant: ["string", "number", "boolean"]
}

/** The same, where revision 2025-06-18 has no lists of strings yet. */
const elicitedFirst: Exception = {
  ...elicited,
  documents: ["2025-06-18"],
  path: ["ElicitResult", "properties", "content", "additionalProperties", "type"]
}

/** Every exception. */
export const all: ReadonlyArray<Exception> = [jsonValue, elicited, elicitedFirst]

const widened = new Map<Spec.DocumentName, Spec.Document>()

/** An official document with its exceptions applied. */
export const load = (name: Spec.DocumentName): Spec.Document => {
  const known = widened.get(name)
  if (known !== undefined) return known
  const document = structuredClone(Spec.load(name))
  for (const { documents, path, official, meant } of all) {
    if (!documents.includes(name)) continue
    let node = document.definitions as Record<string | number, unknown>
    for (const step of path.slice(0, -1)) node = node[step] as Record<string | number, unknown>
    const last = path.at(-1)!
    if (!isDeepStrictEqual(node[last], official)) {
      throw new Error(`${name}: the exception at ${path.join("/")} is stale`)
    }
    node[last] = meant
  }
  widened.set(name, document)
  return document
}

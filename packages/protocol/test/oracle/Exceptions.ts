/**
 * Corrections to the official JSON Schemas where they are narrower than the prose and the TypeScript of the
 * specification. The schemas are generated from TypeScript, and the generator writes some unions with `integer` for
 * `number` and without `null`. Each exception replaces one node, and fails when the node has changed, since a corrected
 * schema makes it stale.
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
 * lacks `null` and fractions, so that it refuses `{ "experimental": { "x": { "ratio": 0.5 } } }`.
 */
const jsonValue: Exception = {
  documents: ["2026-07-28", "tasks"],
  path: ["JSONValue", "anyOf", 2, "type"],
  official: ["string", "integer", "boolean"],
  meant: ["string", "number", "boolean", "null"]
}

/**
 * The content of a submitted form: a field can be a `{ "type": "number" }` with fractional bounds, so its value can be
 * a fraction. The schema is generated from `string | number | boolean`, and has `integer`.
 */
const elicited: Exception = {
  documents: ["2025-11-25", "2026-07-28", "tasks"],
  path: ["ElicitResult", "properties", "content", "additionalProperties", "anyOf", 1, "type"],
  official: ["string", "integer", "boolean"],
  meant: ["string", "number", "boolean"]
}

/** The same in 2025-06-18, which does not have lists of strings. */
const elicitedFirst: Exception = {
  ...elicited,
  documents: ["2025-06-18"],
  path: ["ElicitResult", "properties", "content", "additionalProperties", "type"]
}

/** All exceptions. */
export const all: ReadonlyArray<Exception> = [jsonValue, elicited, elicitedFirst]

const widened = new Map<Spec.DocumentName, Spec.Document>()

/** Returns an official document with its exceptions applied. */
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

/**
 * The JSON Schemas that definitions carry: of Effect Schemas, and those that come from elsewhere.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { ObjectSchema } from "@skein/protocol/Tool"
import * as XMcpHeader from "@skein/protocol/XMcpHeader"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { DefinitionError } from "../../DefinitionError.ts"
import { annotate, type Definitions, isNonFinite, referenced, resolve } from "./annotations.ts"
import { clip, maxProblem, quoted } from "../text.ts"
import { findMissingJsonForm } from "./missingJsonForm.ts"

/**
 * `Schema.Number` allows the numbers that JSON cannot say, and names them as strings. A model is told the number alone:
 * it has no use for the others, and reading stays as lenient as the schema is.
 */
const withoutNonFinite = (node: unknown): unknown => {
  if (Array.isArray(node)) return node.map(withoutNonFinite)
  if (!isObject(node)) return node
  const { anyOf, ...rest } = node
  if (!Array.isArray(anyOf) || !anyOf.some(isNonFinite)) return mapValues(node, withoutNonFinite)
  const kept = anyOf.filter((member) => !isNonFinite(member)).map(withoutNonFinite)
  const others = mapValues(rest, withoutNonFinite)
  return kept.length === 1 ? { ...others, ...kept[0] as JsonObject } : { ...others, anyOf: kept }
}

const mapValues = (node: JsonObject, f: (value: unknown) => unknown): JsonObject =>
  Object.fromEntries(Object.entries(node).map(([key, value]) => [key, f(value)]))

interface Document {
  readonly root: JsonObject
  readonly definitions: Definitions
}

/** The JSON Schema of what a schema reads and writes as JSON, with no reference at its root. Throws where that cannot be said. */
const document = (schema: Schema.Constraint): Document => {
  const path = findMissingJsonForm(schema.ast)
  if (path !== undefined) {
    const where = path.length === 0 ? "" : ` at ${path.join(".")}`
    throw new TypeError(`What a declaration is in JSON is not known${where}: annotate it with toCodecJson`)
  }
  const { schema: root, definitions } = Schema.toJsonSchemaDocument(schema)
  const annotated = annotate(schema.ast, root, definitions)
  return { root: resolve(annotated.node, annotated.definitions), definitions: annotated.definitions }
}

/** With the definitions that it refers to: a class that is the root itself is written there, and not once more. */
const whole = ({ root, definitions }: Document): JsonObject => {
  const used = new Set<string>()
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit)
    if (!isObject(node)) return
    const name = referenced(node)
    if (name !== undefined && !used.has(name) && Object.hasOwn(definitions, name)) {
      used.add(name)
      visit(definitions[name])
    }
    Object.values(node).forEach(visit)
  }
  visit(root)
  if (used.size === 0) return root
  return { ...root, $defs: Object.fromEntries(Object.entries(definitions).filter(([name]) => used.has(name))) }
}

/** The root of what describes an object, with the `type` that the specification asks for; `undefined` where it is something else. */
const asObject = (node: JsonObject, definitions: Definitions): JsonObject | undefined => {
  if (node["type"] === "object") return node
  const { not, ...rest } = node
  // The empty struct is "anything but null" in Effect's JSON Schema.
  if (isObject(not) && not["type"] === "null") return { type: "object", ...rest }
  const { allOf, anyOf, oneOf } = node
  const is = (member: unknown): boolean =>
    isObject(member) && asObject(resolve(member, definitions), definitions) !== undefined
  const isAll = [anyOf, oneOf].some((members) => Array.isArray(members) && members.length > 0 && members.every(is))
  return isAll || (Array.isArray(allOf) && allOf.some(is)) ? { type: "object", ...node } : undefined
}

const nonObject = "Its arguments must be an object: give a struct, or the fields of one"

/** What describes the arguments of a tool: the root must be an object in every revision. */
export const input = (schema: Schema.Constraint): ObjectSchema => {
  const { definitions, root } = document(schema)
  const object = asObject(root, definitions)
  if (object === undefined) throw new TypeError(nonObject)
  return withoutNonFinite(whole({ root: object, definitions })) as ObjectSchema
}

/** The schema of no arguments. */
export const none: ObjectSchema = { type: "object", additionalProperties: false }

/** What describes the structured content of a tool. Of a union of objects older revisions are told too that it is one. */
export const output = (schema: Schema.Constraint): JsonObject => {
  const { definitions, root } = document(schema)
  return whole({ root: asObject(root, definitions) ?? root, definitions })
}

/** The JSON Schema of arguments that comes from elsewhere. */
export const objectOf = (given: JsonObject | boolean, verbatim: boolean): ObjectSchema => {
  const told = anyOf(given, verbatim)
  if (told["type"] === "object") return told as ObjectSchema
  throw new TypeError(verbatim ? `The schema of arguments must say "type": "object" at its root` : nonObject)
}

/** The JSON Schema of any value that comes from elsewhere: where it can be only an object, it says so at its root. */
export const anyOf = (given: JsonObject | boolean, verbatim: boolean): JsonObject => {
  if (typeof given === "boolean") return given ? {} : { not: {} }
  if (verbatim || given["type"] === "object") return given
  const definitions = isObject(given["$defs"]) ? given["$defs"] as Definitions : {}
  const { $ref, ...rest } = given
  const root = $ref === undefined ? given : { ...rest, ...resolve({ $ref }, definitions) }
  return asObject(root, definitions) ?? given
}

/** The arguments that clients mirror into headers, if there are any. */
export const headers = (inputSchema: ObjectSchema): ReadonlyArray<XMcpHeader.Param> | undefined => {
  const params = Result.getOrThrowWith(XMcpHeader.fromSchema(inputSchema), (problem) => new TypeError(problem))
  return params.length === 0 ? undefined : params
}

/** Runs what may throw because a schema cannot be said, or is one that the specification does not allow. */
export const attempt = <A>(
  what: string,
  { definition, kind }: Pick<DefinitionError, "kind" | "definition">,
  make: () => A
): Effect.Effect<A, DefinitionError> =>
  Effect.try({
    // A union that is a member of itself has no end, neither here nor where values are read by it.
    try: make,
    catch: (error) =>
      new DefinitionError({
        reason: "Schema",
        kind,
        definition,
        message: `The ${kind} ${quoted(definition)} cannot be offered for its ${what}: ` +
          clip(error instanceof Error ? error.message : String(error), maxProblem)
      })
  })

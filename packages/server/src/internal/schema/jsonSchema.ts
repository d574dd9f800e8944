/**
 * The JSON Schemas of definitions, whatever they are made from. `effectSchema.ts` makes those of Effect Schemas.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { ObjectSchema } from "@skein/protocol/Tool"
import * as XMcpHeader from "@skein/protocol/XMcpHeader"
import { clip, quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { DefinitionError, InvalidSchema } from "../../DefinitionError.ts"

/** The definitions that a JSON Schema refers to, by name. */
export interface Definitions {
  readonly [name: string]: JsonObject
}

/** Returns the name of the definition that a node refers to, from the JSON pointer in its `$ref`. */
export const referenced = (node: JsonObject): string | undefined => {
  const reference = node["$ref"]
  if (typeof reference !== "string" || !reference.startsWith(prefix)) return undefined
  return decodeURIComponent(reference.slice(prefix.length)).replaceAll("~1", "/").replaceAll("~0", "~")
}

const prefix = "#/$defs/"

/** Returns the definition that a node refers to, or the node itself. */
export const resolve = (node: JsonObject, definitions: Definitions): JsonObject => {
  const name = referenced(node)
  return name === undefined || !Object.hasOwn(definitions, name) ? node : definitions[name]!
}

/**
 * The largest text about invalid arguments, in UTF-16 units. Validation messages may be many times as long as the
 * arguments.
 */
export const maxProblemChars = 4096

/**
 * Makes the defect for a value of the author's that does not match a schema. The problems follow the message in one line,
 * shortened. It has no stack, which would show only this library.
 */
export const mismatch = (message: string, problem: string): Error => {
  const problems = clip(problem, maxProblemChars).replaceAll("\n  at ", " at ").replaceAll("\n", "; ")
  const error = new Error(`${message}: ${problems}`)
  error.stack = String(error)
  return error
}

/**
 * Returns the root of an object schema, with the `type` that the specification requires, or `undefined` for other
 * schemas.
 */
export const asObject = (node: JsonObject, definitions: Definitions): JsonObject | undefined => {
  if (node["type"] === "object") return node
  const { not, ...rest } = node
  // Effect writes the empty struct as "anything but null".
  if (isObject(not) && not["type"] === "null") return { type: "object", ...rest }
  const { allOf, anyOf, oneOf } = node
  const is = (member: unknown): boolean =>
    isObject(member) && asObject(resolve(member, definitions), definitions) !== undefined
  const isAll = [anyOf, oneOf].some((members) => Array.isArray(members) && members.length > 0 && members.every(is))
  return isAll || (Array.isArray(allOf) && allOf.some(is)) ? { type: "object", ...node } : undefined
}

export const nonObject = "it must describe an object; give a struct or the fields of one"

/** The schema of a tool without arguments. */
export const none: ObjectSchema = { type: "object", additionalProperties: false }

/** Checks a JSON Schema of arguments that another library or the author made. */
export const objectOf = (given: JsonObject | boolean, verbatim: boolean): ObjectSchema => {
  const schema = anyOf(given, verbatim)
  if (schema["type"] === "object") return schema as ObjectSchema
  throw new TypeError(verbatim ? `the schema of the arguments must have "type": "object" at its root` : nonObject)
}

/** Adds `type: "object"` to the root of a JSON Schema that another library made, if the schema allows objects only. */
export const anyOf = (given: JsonObject | boolean, verbatim: boolean): JsonObject => {
  if (typeof given === "boolean") return given ? {} : { not: {} }
  if (verbatim || given["type"] === "object") return given
  const definitions = isObject(given["$defs"]) ? given["$defs"] as Definitions : {}
  const { $ref, ...rest } = given
  const root = $ref === undefined ? given : { ...rest, ...resolve({ $ref }, definitions) }
  return asObject(root, definitions) ?? given
}

/** Returns the arguments that clients copy into HTTP headers, or `undefined` without any. */
export const headers = (inputSchema: ObjectSchema): ReadonlyArray<XMcpHeader.Param> | undefined => {
  const params = Result.getOrThrowWith(XMcpHeader.fromSchema(inputSchema), (problem) => new TypeError(problem))
  return params.length === 0 ? undefined : params
}

/** Runs a function that throws if a schema of the tool is invalid. Fails with `InvalidSchema` if it throws. */
export const tryForTool = <A>(
  tool: string,
  schema: "input" | "output",
  make: () => A
): Effect.Effect<A, DefinitionError> => trySchema("tool", tool, schema, make)

/** The same for the schema of any definition. */
export const trySchema = <A>(
  kind: DefinitionError["kind"],
  definition: string,
  schema: InvalidSchema["schema"],
  make: () => A
): Effect.Effect<A, DefinitionError> =>
  Effect.try({
    // A union that is a member of itself overflows the stack, here and wherever values are decoded by it.
    try: make,
    catch: (cause) => {
      const problem = clip(cause instanceof Error ? cause.message : String(cause), maxProblemChars)
      const message = `The ${kind} ${quote(definition)} has an invalid ${schema} schema: ${problem}`
      return new DefinitionError({ reason: new InvalidSchema({ message, schema, cause }), kind, definition })
    }
  })

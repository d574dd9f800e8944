/**
 * The signature of a tool as a program calls it: TypeScript, made of its schemas.
 *
 * Schemas may come from other servers, and a search writes signatures while it holds the event loop. The cost of a
 * signature is therefore bounded by its own bounds, and not by the size of the schema: a schema that refers to itself, or
 * that has more parts than a signature, becomes `unknown` at some place, and the walk ends as soon as a part alone is
 * longer than the signature may be.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { ToolEntry } from "@skein/server/Catalog"

const maxDepth = 8
/** Schemas, values of enumerations and members of objects together. */
const maxParts = 500

/** The state of one signature. */
interface Context {
  /** The schema that `#/…` refers to. */
  readonly root: JsonObject
  readonly maxChars: number
  /** How many parts may follow. */
  left: number
  /** Whether a part is longer than the signature may be, so that the rest need not be written. */
  isTooLong: boolean
}

const keyOf = (name: string): string => /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)

const union = (types: ReadonlyArray<string>): string => {
  const all = [...new Set(types)]
  return all.length === 0 || all.includes("unknown") ? "unknown" : all.join(" | ")
}

/** Writes a type that is followed by a suffix: `(A | B)[]`. A type in braces needs no parentheses. */
const grouped = (type: string): string => {
  let open = 0
  for (const char of type) {
    if (char === "{") open++
    else if (char === "}") open--
    else if (open === 0 && (char === "|" || char === "&")) return `(${type})`
  }
  return type
}

const simple: { readonly [type: string]: string } = {
  boolean: "boolean",
  integer: "number",
  null: "null",
  number: "number",
  string: "string"
}

/** Returns a part of the signature, or `unknown` if it alone is longer than the signature may be. */
const bounded = (text: string, context: Context): string => {
  if (text.length <= context.maxChars) return text
  context.isTooLong = true
  return "unknown"
}

/** Whether some parts may follow. They are counted before they are read. */
const take = (parts: number, context: Context): boolean => {
  if (context.isTooLong || parts > context.left) return false
  context.left -= parts
  return true
}

/** The schema that a reference to a part of the document leads to. */
const resolve = (reference: string, { maxChars, root }: Context): unknown => {
  if (reference.length > maxChars || (reference !== "#" && !reference.startsWith("#/"))) return undefined
  const keys = reference.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"))
  return keys.reduce<unknown>(
    (part, key) => isObject(part) && Object.hasOwn(part, key) ? part[key] : undefined,
    root
  )
}

/** The names of the members of an object, or `undefined` if no signature has as many. */
const namesOf = (value: unknown, context: Context): ReadonlyArray<string> | undefined => {
  const names: Array<string> = []
  for (const name in isObject(value) ? value : {}) {
    // Each member is written, with a separator: more of them are too long.
    if (names.length >= maxParts || name.length > context.maxChars) {
      context.isTooLong = true
      return undefined
    }
    names.push(name)
  }
  return names
}

const objectOf = (schema: JsonObject, context: Context, depth: number): string => {
  const { additionalProperties, properties, required } = schema
  const names = namesOf(properties, context)
  if (names === undefined || (Array.isArray(required) && required.length > maxParts)) {
    context.isTooLong = true
    return "unknown"
  }
  const needed = new Set<unknown>(Array.isArray(required) ? required : [])
  const members: Array<string> = []
  for (const name of names) {
    if (context.isTooLong) return "unknown"
    const type = typeOf((properties as JsonObject)[name], context, depth)
    members.push(`${keyOf(name)}${needed.has(name) ? "" : "?"}: ${type}`)
  }
  if (isObject(additionalProperties)) members.push(`[key: string]: ${typeOf(additionalProperties, context, depth)}`)
  return members.length === 0 ? "{ [key: string]: unknown }" : `{ ${members.join("; ")} }`
}

/** The type that has one JSON value only. */
const literalOf = (value: unknown, context: Context, depth: number): string => {
  if (typeof value === "string") {
    return value.length > context.maxChars
      ? bounded(value, context)
      : JSON.stringify(value)
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (depth >= maxDepth) return "unknown"
  if (Array.isArray(value)) {
    if (!take(value.length, context)) return "unknown"
    return bounded(`[${value.map((item) => literalOf(item, context, depth + 1)).join(", ")}]`, context)
  }
  const names = namesOf(value, context)
  if (names === undefined || !take(names.length, context)) return "unknown"
  const members = names.map((name) => `${keyOf(name)}: ${literalOf((value as JsonObject)[name], context, depth + 1)}`)
  return members.length === 0 ? "{}" : bounded(`{ ${members.join("; ")} }`, context)
}

const typeOf = (schema: unknown, context: Context, depth: number): string =>
  !isObject(schema) || depth >= maxDepth || !take(1, context)
    ? "unknown"
    : bounded(unboundedTypeOf(schema, context, depth), context)

const unboundedTypeOf = (schema: JsonObject, context: Context, depth: number): string => {
  // `typeOf` counts the schemas of a list one by one.
  const each = (schemas: ReadonlyArray<unknown>) =>
    schemas.length > context.left ? ["unknown"] : schemas.map((one) => typeOf(one, context, depth + 1))
  const { $ref, allOf, anyOf, oneOf, type } = schema
  if (typeof $ref === "string") return typeOf(resolve($ref, context), context, depth + 1)
  if (Object.hasOwn(schema, "const")) return literalOf(schema["const"], context, depth)
  const values = schema["enum"]
  if (Array.isArray(values)) {
    return take(values.length, context) ? union(values.map((value) => literalOf(value, context, depth))) : "unknown"
  }
  if (Array.isArray(anyOf)) return union(each(anyOf))
  if (Array.isArray(oneOf)) return union(each(oneOf))
  if (type === undefined && Array.isArray(allOf) && allOf.length > 0) return each(allOf).map(grouped).join(" & ")
  if (!Array.isArray(type)) return oneTypeOf(type, schema, context, depth)
  return take(type.length, context) ? union(type.map((one) => oneTypeOf(one, schema, context, depth))) : "unknown"
}

/** The type of the values of a schema that have one of its types. */
const oneTypeOf = (type: unknown, schema: JsonObject, context: Context, depth: number): string => {
  if (type === "array") return `${grouped(typeOf(schema["items"], context, depth + 1))}[]`
  if (type === "object" || (type === undefined && isObject(schema["properties"]))) {
    return objectOf(schema, context, depth + 1)
  }
  return typeof type === "string" && Object.hasOwn(simple, type) ? simple[type]! : "unknown"
}

/**
 * Returns the signature of a tool, such as `tools.add(args: { a: number; b: number }): Promise<string>`, or `undefined`
 * if it exceeds `maxChars`.
 */
export const signatureOf = (
  { inputSchema, name, outputSchema }: ToolEntry["definition"],
  maxChars: number
): string | undefined => {
  if (name.length > maxChars) return undefined
  const contextOf = (schema: object): Context => ({
    root: schema as JsonObject,
    maxChars,
    left: maxParts,
    isTooLong: false
  })
  const input = inputSchema as JsonObject
  const [inputContext, outputContext] = [contextOf(input), contextOf(outputSchema ?? {})]
  const names = namesOf(input["properties"], inputContext)
  if (names === undefined) return undefined
  const hasArguments = !isObject(input["properties"]) || names.length > 0 || isObject(input["additionalProperties"])
  const isOptional = !Array.isArray(input["required"]) || input["required"].length === 0
  const args = hasArguments ? `args${isOptional ? "?" : ""}: ${typeOf(input, inputContext, 0)}` : ""
  const output = outputSchema === undefined ? "string" : typeOf(outputSchema, outputContext, 0)
  if (inputContext.isTooLong || outputContext.isTooLong) return undefined
  const key = keyOf(name)
  const signature = `tools${key === name ? `.${name}` : `[${key}]`}(${args}): Promise<${output}>`
  return signature.length > maxChars ? undefined : signature
}

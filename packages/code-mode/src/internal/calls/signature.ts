/**
 * The signature of a tool as a program calls it: TypeScript, made of its schemas.
 *
 * Schemas may come from other servers. A schema that refers to itself, or that is larger than a signature may be,
 * becomes
 * `unknown` at some depth, so the cost is bounded.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { ToolEntry } from "@skein/server/Catalog"

const maxDepth = 8
const maxParts = 500

/** The state of one signature: the schema that `#/…` refers to, and how many parts may follow. */
interface Context {
  readonly root: JsonObject
  left: number
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

/** The schema that a reference to a part of the document leads to. */
const resolve = (reference: string, { root }: Context): unknown => {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined
  const keys = reference.split("/").slice(1).map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"))
  return keys.reduce<unknown>(
    (part, key) => isObject(part) && Object.hasOwn(part, key) ? part[key] : undefined,
    root
  )
}

const objectOf = (schema: JsonObject, context: Context, depth: number): string => {
  const { additionalProperties, properties, required } = schema
  const names = Array.isArray(required) ? required : []
  const members = isObject(properties)
    ? Object.entries(properties).map(([name, property]) =>
      `${keyOf(name)}${names.includes(name) ? "" : "?"}: ${typeOf(property, context, depth)}`
    )
    : []
  if (isObject(additionalProperties)) members.push(`[key: string]: ${typeOf(additionalProperties, context, depth)}`)
  return members.length === 0 ? "{ [key: string]: unknown }" : `{ ${members.join("; ")} }`
}

const typeOf = (schema: unknown, context: Context, depth: number): string => {
  if (!isObject(schema) || depth >= maxDepth || context.left-- <= 0) return "unknown"
  const each = (schemas: ReadonlyArray<unknown>) => schemas.map((one) => typeOf(one, context, depth + 1))
  const { $ref, allOf, anyOf, oneOf, type } = schema
  if (typeof $ref === "string") return typeOf(resolve($ref, context), context, depth + 1)
  if ("const" in schema) return JSON.stringify(schema["const"])
  if (Array.isArray(schema["enum"])) return union(schema["enum"].map((value) => JSON.stringify(value)))
  if (Array.isArray(anyOf)) return union(each(anyOf))
  if (Array.isArray(oneOf)) return union(each(oneOf))
  if (type === undefined && Array.isArray(allOf) && allOf.length > 0) return each(allOf).map(grouped).join(" & ")
  if (Array.isArray(type)) return union(type.map((one) => typeOf({ ...schema, type: one }, context, depth + 1)))
  if (type === "array") return `${grouped(typeOf(schema["items"], context, depth + 1))}[]`
  if (type === "object" || isObject(schema["properties"])) return objectOf(schema, context, depth + 1)
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
  const input = inputSchema as JsonObject
  const hasArguments = !isObject(input["properties"]) || Object.keys(input["properties"]).length > 0 ||
    isObject(input["additionalProperties"])
  const isOptional = !Array.isArray(input["required"]) || input["required"].length === 0
  const args = hasArguments
    ? `args${isOptional ? "?" : ""}: ${typeOf(input, { root: input, left: maxParts }, 0)}`
    : ""
  const output = outputSchema === undefined
    ? "string"
    : typeOf(outputSchema, { root: outputSchema as JsonObject, left: maxParts }, 0)
  const key = keyOf(name)
  const signature = `tools${key === name ? `.${name}` : `[${key}]`}(${args}): Promise<${output}>`
  return signature.length > maxChars ? undefined : signature
}

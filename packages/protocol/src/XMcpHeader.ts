/**
 * `x-mcp-header`: the parameters of a tool that a client mirrors into HTTP headers (2026-07-28,
 * basic/transports/streamable-http, custom headers from tool parameters).
 *
 * {@link fromSchema} reads the annotations of an `inputSchema`, once per tool. A client writes the headers of a call
 * with {@link encode}; a server compares them with the body by {@link mismatch}.
 *
 * @example
 * const params = Result.getOrThrow(XMcpHeader.fromSchema({
 *   type: "object",
 *   properties: { region: { type: "string", "x-mcp-header": "Region" } }
 * }))
 * XMcpHeader.encode(params, { region: "eu" }) // Result.succeed({ "Mcp-Param-Region": "eu" })
 */
import * as Result from "effect/Result"
import * as Header from "./Header.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { clip } from "./Text.ts"

/** The keyword of the annotation, in the schema of a property. */
export const keyword = "x-mcp-header"

/** A parameter that is mirrored into a header. */
export interface Param {
  /** The property names that lead to the value in the arguments of a call. */
  readonly path: ReadonlyArray<string>
  /** The full name of the header, as in `Mcp-Param-Region`. */
  readonly header: string
  /** The name of the header in lower case, for lookups. */
  readonly key: string
  readonly type: "string" | "integer" | "boolean"
}

const own = (object: JsonObject, key: string): unknown => Object.hasOwn(object, key) ? object[key] : undefined

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

// The keywords whose value is a schema or an array of schemas, and those whose value is an object of schemas.
// `properties` is handled separately: only a chain of `properties` may lead to an annotation.
const singleKeywords = [
  "items",
  "prefixItems",
  "additionalItems",
  "unevaluatedItems",
  "contains",
  "additionalProperties",
  "unevaluatedProperties",
  "propertyNames",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "contentSchema"
]
const mapKeywords = ["patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"]

// Looking each keyword of a schema up is faster than trying all of these: a schema has few keywords.
const subschemaKeywords: ReadonlyMap<string, "single" | "map"> = new Map([
  ...singleKeywords.map((name) => [name, "single"] as const),
  ...mapKeywords.map((name) => [name, "map"] as const)
])

/** A subschema on the stack of the traversal. */
interface Subschema {
  readonly schema: JsonObject
  /** The chain of `properties` to the subschema, the last first. `undefined` where another keyword is on the way. */
  readonly chain: Chain | undefined
}

interface Chain {
  readonly key: string
  readonly depth: number
  readonly parent: Chain | undefined
}

const root: Chain = { key: "", depth: 0, parent: undefined }

const pathOf = (chain: Chain): ReadonlyArray<string> => {
  const path = new Array<string>(chain.depth)
  for (let at = chain; at.parent !== undefined; at = at.parent) path[at.depth - 1] = at.key
  return path
}

const readParam = (value: unknown, { chain, schema }: Subschema): Param | string => {
  if (chain === undefined || chain.depth === 0) {
    return `${keyword} must be on a property that only "properties" keywords lead to`
  }
  if (chain.depth > maxDepth) return `${keyword} must not be nested deeper than ${maxDepth}`
  const path = pathOf(chain)
  const at = ` at '${clip(path.join("."))}'`
  if (typeof value !== "string" || value === "") return `${keyword}${at} must be a non-empty string`
  if (!token.test(value)) return `${keyword}${at} must be an HTTP token`
  const type = own(schema, "type")
  if (type !== "string" && type !== "integer" && type !== "boolean") {
    return `${keyword}${at} must be on a property of type string, integer or boolean`
  }
  const header = Header.paramPrefix + value
  return { path, header, key: header.toLowerCase(), type }
}

/** Pushes the subschemas of a schema in reverse, so that the properties are visited first and in order. */
const pushChildren = ({ chain, schema }: Subschema, stack: Array<Subschema>): void => {
  const push = (value: unknown, chain: Chain | undefined) => {
    if (isObject(value)) stack.push({ schema: value, chain })
  }
  for (const name of Object.keys(schema)) {
    const kind = subschemaKeywords.get(name)
    if (kind === undefined) continue
    const value = schema[name]
    if (kind === "map") {
      if (isObject(value)) { for (const key of Object.keys(value)) push(value[key], undefined) }
    } else if (Array.isArray(value)) { for (const item of value) push(item, undefined) }
    else push(value, undefined)
  }
  const properties = own(schema, "properties")
  if (!isObject(properties)) return
  const inOrder = Object.keys(properties)
  for (let i = inOrder.length - 1; i >= 0; i--) {
    const key = inOrder[i]!
    push(properties[key], chain === undefined ? undefined : { key, depth: chain.depth + 1, parent: chain })
  }
}

/** The most subschemas to visit. A schema with more is refused. */
const maxSchemas = 100_000

/** The deepest nesting of an annotated property. A deeper one is refused. */
const maxDepth = 64

/**
 * Reads the annotations of an `inputSchema`, in the order of its properties. Fails with a description of the first
 * invalid annotation. A client on Streamable HTTP MUST then exclude the tool from the result of `tools/list`, and
 * SHOULD log the reason.
 *
 * An annotation MUST be a token (RFC 9110), case-insensitively unique in the schema, and on a property whose `type` is
 * `string`, `integer` or `boolean` (a single name). Only a chain of `properties` keywords may lead to the property.
 * Values of `default`, `enum`, `const`, `examples` and unknown keywords contain no schemas and are not searched.
 *
 * The time is linear in the size of the schema. A schema with more than 100,000 subschemas, and an annotation nested
 * deeper than 64 properties, are refused.
 */
export const fromSchema = (inputSchema: unknown): Result.Result<ReadonlyArray<Param>, string> => {
  if (!isObject(inputSchema)) return Result.succeed([])
  const params: Array<Param> = []
  const taken = new Set<string>()
  const stack: Array<Subschema> = [{ schema: inputSchema, chain: root }]
  let visited = 0
  for (let subschema = stack.pop(); subschema !== undefined; subschema = stack.pop()) {
    if (++visited > maxSchemas) {
      return Result.fail(`the input schema has more than ${maxSchemas} subschemas`)
    }
    if (Object.hasOwn(subschema.schema, keyword)) {
      const param = readParam(subschema.schema[keyword], subschema)
      if (typeof param === "string") return Result.fail(param)
      if (taken.has(param.key)) {
        return Result.fail(`${keyword}: ${param.header} must be unique, ignoring case`)
      }
      taken.add(param.key)
      params.push(param)
    }
    pushChildren(subschema, stack)
  }
  return Result.succeed(params)
}

/** Returns the value at the exact path in the arguments, through own members of objects only. */
const valueAt = (args: unknown, path: ReadonlyArray<string>): unknown => {
  let value = args
  for (const key of path) {
    if (!isObject(value)) return undefined
    value = own(value, key)
  }
  return value
}

const isUnsafe = (value: number): boolean =>
  !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))

/**
 * Makes the headers of a call. A parameter that is absent or `null` gets no header; neither does an object or an array,
 * which the tool's schema refuses. Fails where an integer is not from -2^53 + 1 to 2^53 - 1.
 */
export const encode = (params: ReadonlyArray<Param>, args: unknown): Result.Result<Record<string, string>, string> => {
  const headers: Record<string, string> = {}
  for (const { header, path } of params) {
    const value = valueAt(args, path)
    if (typeof value === "string") headers[header] = Header.encode(value)
    else if (typeof value === "boolean") headers[header] = value ? "true" : "false"
    else if (typeof value === "number") {
      if (isUnsafe(value)) return Result.fail(`${header}: ${value} is outside the safe range of integers`)
      headers[header] = String(value)
    }
  }
  return Result.succeed(headers)
}

/**
 * Compares the headers of a call with its arguments. Returns a description of the first problem for
 * `McpError.headerMismatch`, or `undefined`.
 *
 * A header must be present, well-formed and equal to its value, or absent if the value is absent or `null`.
 * Integers are compared as numbers. Headers that no parameter names are ignored.
 */
export const mismatch = (params: ReadonlyArray<Param>, args: unknown, lookup: Header.Lookup): string | undefined => {
  for (const { header, key, path } of params) {
    const value = valueAt(args, path)
    const scalar = typeof value === "string" || typeof value === "boolean" || typeof value === "number"
      ? value
      : undefined
    const wrong = Header.mismatch(header, lookup(key), scalar)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

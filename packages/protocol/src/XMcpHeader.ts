/**
 * `x-mcp-header`: the parameters of a tool that a client mirrors into HTTP headers (2026-07-28, streamable HTTP, custom headers
 * from tool parameters). `fromSchema` reads the annotations of an `inputSchema` once; `encode` writes the headers of one call,
 * and `mismatch` compares them with its body.
 */
import * as Result from "effect/Result"
import * as Header from "./Header.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"

/** The keyword in a property's schema. */
export const keyword = "x-mcp-header"

/** A parameter that is mirrored. */
export interface Param {
  /** The chain of property names that leads to the value in the call's arguments. */
  readonly path: ReadonlyArray<string>
  /** The header's name in full: `Mcp-Param-Region`. */
  readonly header: string
  /** The same in lower case, to look it up with. */
  readonly key: string
  readonly type: "string" | "integer" | "boolean"
}

const own = (object: JsonObject, key: string): unknown => Object.hasOwn(object, key) ? object[key] : undefined

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

// The keywords that hold one schema or an array of them, and those that hold schemas by name. `properties` is apart: its
// chain is the only one that an annotation may be reached by.
const holders = [
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
const maps = ["patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"]

// A schema has few keywords, and there are many that may hold another one.
const holding: ReadonlyMap<string, "one" | "named"> = new Map([
  ...holders.map((name) => [name, "one"] as const),
  ...maps.map((name) => [name, "named"] as const)
])

interface Place {
  readonly schema: JsonObject
  /** The chain of `properties` that leads here, last first; `undefined` where something else was passed on the way. */
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

const readParam = (value: unknown, { chain, schema }: Place, maxDepth: number): Param | string => {
  if (chain === undefined || chain.depth === 0) {
    return `${keyword} must be on a property that is reached through "properties" alone`
  }
  if (chain.depth > maxDepth) return `${keyword} must not be nested deeper than ${maxDepth}`
  const path = pathOf(chain)
  const at = ` at '${path.join(".").slice(0, 128)}'`
  if (typeof value !== "string" || value === "") return `${keyword}${at} must be a string that is not empty`
  if (!token.test(value)) return `${keyword}${at} must be an HTTP token`
  const type = own(schema, "type")
  if (type !== "string" && type !== "integer" && type !== "boolean") {
    return `${keyword}${at} must be on a property of type string, integer or boolean`
  }
  const header = Header.paramPrefix + value
  return { path, header, key: header.toLowerCase(), type }
}

/** The subschemas of a schema, pushed in reverse so that properties come first and in their order. */
const pushChildren = ({ chain, schema }: Place, stack: Array<Place>): void => {
  const push = (value: unknown, chain: Chain | undefined) => {
    if (isObject(value)) stack.push({ schema: value, chain })
  }
  for (const name of Object.keys(schema)) {
    const kind = holding.get(name)
    if (kind === undefined) continue
    const held = schema[name]
    if (kind === "named") {
      if (isObject(held)) { for (const key of Object.keys(held)) push(held[key], undefined) }
    } else if (Array.isArray(held)) { for (const one of held) push(one, undefined) }
    else push(held, undefined)
  }
  const properties = own(schema, "properties")
  if (!isObject(properties)) return
  const inOrder = Object.keys(properties)
  for (let i = inOrder.length - 1; i >= 0; i--) {
    const key = inOrder[i]!
    push(properties[key], chain === undefined ? undefined : { key, depth: chain.depth + 1, parent: chain })
  }
}

/**
 * Reads the annotations of an `inputSchema`, in the order of its properties. It fails with the rule that one of them breaks; a
 * client on Streamable HTTP MUST then leave the tool out of `tools/list`, and SHOULD log the reason.
 *
 * An annotation MUST be a token of RFC 9110, unique without regard to case, on a property whose `type` is `string`, `integer` or
 * `boolean` (one name, not a list), reached from the root through `properties` alone. Data (`default`, `enum`, `const`,
 * `examples`) and unknown keywords hold no schemas and are not looked into.
 *
 * `maxSchemas` bounds how many subschemas are visited, 100,000 by default, and `maxDepth` how deep an annotated property may be
 * nested, 64 by default; beyond either it fails. Time is linear in the size of the schema.
 */
export const fromSchema = (
  inputSchema: unknown,
  options?: { readonly maxSchemas?: number | undefined; readonly maxDepth?: number | undefined }
): Result.Result<ReadonlyArray<Param>, string> => {
  if (!isObject(inputSchema)) return Result.succeed([])
  const maxSchemas = options?.maxSchemas ?? 100_000
  const maxDepth = options?.maxDepth ?? 64
  const params: Array<Param> = []
  const taken = new Set<string>()
  const stack: Array<Place> = [{ schema: inputSchema, chain: root }]
  let visited = 0
  for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
    if (++visited > maxSchemas) return Result.fail(`the input schema holds more than ${maxSchemas} schemas`)
    if (Object.hasOwn(place.schema, keyword)) {
      const param = readParam(place.schema[keyword], place, maxDepth)
      if (typeof param === "string") return Result.fail(param)
      if (taken.has(param.key)) {
        return Result.fail(`${keyword}: ${param.header} must be unique, without regard to case`)
      }
      taken.add(param.key)
      params.push(param)
    }
    pushChildren(place, stack)
  }
  return Result.succeed(params)
}

/** The value at the exact path in the arguments, through own members of objects only. */
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
 * The headers of a call. A parameter that is absent or `null` has none, nor has one whose value is an object or an array, which
 * the tool's schema refuses. It fails where a number is beyond the safe range of integers, from -2^53 + 1 to 2^53 - 1.
 */
export const encode = (params: ReadonlyArray<Param>, args: unknown): Result.Result<Record<string, string>, string> => {
  const headers: Record<string, string> = {}
  for (const { header, path } of params) {
    const value = valueAt(args, path)
    if (typeof value === "string") headers[header] = Header.encode(value)
    else if (typeof value === "boolean") headers[header] = value ? "true" : "false"
    else if (typeof value === "number") {
      if (isUnsafe(value)) return Result.fail(`${header}: ${value} is beyond the safe range of integers`)
      headers[header] = String(value)
    }
  }
  return Result.succeed(headers)
}

/**
 * Compares the headers of a call with its arguments: the first thing that is wrong, as `McpError.headerMismatch` takes it, or
 * `undefined`. A header that is missing though its value is there, present though its value is absent or `null`, malformed, or
 * different is wrong; integers are compared as numbers. Headers that no parameter names are not looked at.
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

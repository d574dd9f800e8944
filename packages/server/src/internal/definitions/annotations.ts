/**
 * What an author says of a schema, in the JSON Schema of it. Effect tells the titles and descriptions of what is JSON already;
 * of a date, a class or any other thing that is read from something else it tells what it is read from, and no more. A model
 * needs the words most just there.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { keyword } from "@skein/protocol/XMcpHeader"
import * as AST from "effect/SchemaAST"

/** The definitions that a JSON Schema refers to, by name. */
export interface Definitions {
  readonly [name: string]: JsonObject
}

/** The name of the definition that a node refers to: a JSON pointer in a fragment. */
export const referenced = (node: JsonObject): string | undefined => {
  const reference = node["$ref"]
  if (typeof reference !== "string" || !reference.startsWith(prefix)) return undefined
  return decodeURIComponent(reference.slice(prefix.length)).replaceAll("~1", "/").replaceAll("~0", "~")
}

const prefix = "#/$defs/"

/** What a node refers to, or the node itself. */
export const resolve = (node: JsonObject, definitions: Definitions): JsonObject => {
  const name = referenced(node)
  return name === undefined || !Object.hasOwn(definitions, name) ? node : definitions[name]!
}

/** Whether a node is what Effect writes for the numbers that JSON cannot say. */
export const isNonFinite = (node: unknown): boolean =>
  isObject(node) && Array.isArray(node["enum"]) && node["enum"].join() === "Infinity,-Infinity,NaN"

/** What is said of a schema: as a key of a struct, of the whole, before the last of its checks, or of what may be undefined. */
export const textAnnotation = (ast: AST.AST, key: "title" | "description"): string | undefined => {
  const text = annotation(ast, key)
  return typeof text === "string" ? text : undefined
}

/** What an author says of a schema under any key, in the same places. */
export const annotation = (ast: AST.AST, key: string): unknown => {
  const value = ast.context?.annotations?.[key] ?? AST.resolve(ast)?.[key] ?? ast.annotations?.[key]
  if (value !== undefined) return value
  const members = AST.isUnion(ast) ? ast.types.filter((type) => !AST.isUndefined(type)) : []
  return members.length === 1 ? annotation(members[0]!, key) : undefined
}

const formats: ReadonlyMap<unknown, string> = new Map([
  ["effect/schema/Date", "date-time"],
  ["effect/schema/DateTimeUtc", "date-time"],
  ["effect/schema/URL", "uri"]
])

/** The format of what travels as text and is no text: Effect tells the type only, and a model would have to guess. */
const formatOf = (ast: AST.AST): string | undefined =>
  formats.get((ast.annotations?.["representation"] as { readonly id?: unknown } | undefined)?.id)

/**
 * The default that is said after a schema was given one to decode with, and which Effect loses there. Of what travels as something
 * else (a number as text) it is no default of that.
 */
const defaultOf = (ast: AST.AST): unknown =>
  ast.encoding?.at(-1)?.to._tag === ast._tag ? annotation(ast, "default") : undefined

/** Fills in the titles, descriptions, defaults and formats that are missing, following the fields, items and members of the schema. */
export const annotate = (
  ast: AST.AST,
  node: JsonObject,
  given: Definitions
): { readonly node: JsonObject; readonly definitions: Definitions } => {
  const definitions = { ...given }
  const seen = new Set<string>()

  const say = (ast: AST.AST, node: JsonObject): JsonObject => {
    const title = "title" in node ? undefined : textAnnotation(ast, "title")
    // Of a key it may have been said in an `allOf` already.
    const description = "description" in node || "allOf" in node ? undefined : textAnnotation(ast, "description")
    // Whatever it is: one that is wrong is told to whoever defines the tool.
    const header = keyword in node ? undefined : annotation(ast, keyword)
    const format = node["type"] === "string" && !("format" in node) ? formatOf(ast) : undefined
    const fallback = "default" in node ? undefined : defaultOf(ast)
    return {
      ...node,
      ...(fallback === undefined ? undefined : { default: fallback }),
      ...(format === undefined ? undefined : { format }),
      ...(title === undefined ? undefined : { title }),
      ...(description === undefined ? undefined : { description }),
      ...(header === undefined ? undefined : { [keyword]: header })
    }
  }

  const inside = (ast: AST.AST, node: JsonObject): JsonObject => {
    const name = referenced(node)
    if (name !== undefined) {
      if (!seen.has(name) && Object.hasOwn(definitions, name)) {
        seen.add(name)
        definitions[name] = inside(ast, definitions[name]!)
      }
      return node
    }
    const { anyOf, items, properties } = node
    if (AST.isSuspend(ast)) return inside(ast.thunk(), node)
    // What is read from something else has the form of that.
    if (ast.encoding !== undefined) return inside(ast.encoding.at(-1)!.to, node)
    if (AST.isObjects(ast) && isObject(properties)) {
      const types = new Map<unknown, AST.AST>(ast.propertySignatures.map(({ name, type }) => [name, type]))
      const entries = Object.entries(properties).map(([name, child]) => [name, both(types.get(name), child)])
      return { ...node, properties: Object.fromEntries(entries) }
    }
    if (AST.isArrays(ast) && isObject(items)) return { ...node, items: both(ast.rest[0], items) }
    if (AST.isUnion(ast) && Array.isArray(anyOf) && anyOf.length === ast.types.length) {
      return { ...node, anyOf: anyOf.map((member, index) => both(ast.types[index], member)) }
    }
    return node
  }

  const both = (ast: AST.AST | undefined, node: unknown): unknown =>
    ast === undefined || !isObject(node) ? node : say(ast, inside(ast, node))

  return { node: both(ast, node) as JsonObject, definitions }
}

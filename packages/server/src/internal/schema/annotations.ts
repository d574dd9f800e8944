/**
 * Adds the annotations of an Effect Schema to its JSON Schema.
 *
 * Effect writes the titles and descriptions of JSON types. For a date, a class or another decoded type it writes the
 * encoded type only, although a model needs descriptions most for these.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { keyword } from "@skein/protocol/XMcpHeader"
import * as AST from "effect/SchemaAST"
import { omitUndefined } from "../base/json.ts"
import { type Definitions, referenced } from "./jsonSchema.ts"

/** Whether a node is the enum that Effect writes for `Infinity`, `-Infinity` and `NaN`. */
export const isNonFinite = (node: unknown): boolean =>
  isObject(node) && Array.isArray(node["enum"]) && node["enum"].join() === "Infinity,-Infinity,NaN"

/**
 * Returns the title or description of a schema. It may be an annotation of a struct's key, of the schema, of a schema
 * before its last check, or of the other member of a union with `undefined`.
 */
const textAnnotation = (ast: AST.AST, key: "title" | "description"): string | undefined => {
  const text = annotation(ast, key)
  return typeof text === "string" ? text : undefined
}

/** Returns the annotation with a key, from the same places. */
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

/**
 * The format of a type that is encoded as text. Effect writes the type `string` only, and a model would have to guess
 * the format.
 */
const formatOf = (ast: AST.AST): string | undefined =>
  formats.get((ast.annotations?.["representation"] as { readonly id?: unknown } | undefined)?.id)

/**
 * The default of a schema with a decoding default, which Effect does not write. If the encoded type differs (a number
 * as text), the default is not a value of the encoded type, and is left out.
 */
const defaultOf = (ast: AST.AST): unknown =>
  ast.encoding?.at(-1)?.to._tag === ast._tag ? annotation(ast, "default") : undefined

/**
 * Adds the missing titles, descriptions, defaults and formats to a JSON Schema, following the fields, items and members
 * of the schema.
 */
export const annotate = (
  ast: AST.AST,
  node: JsonObject,
  given: Definitions
): { readonly node: JsonObject; readonly definitions: Definitions } => {
  const definitions = { ...given }
  const seen = new Set<string>()

  const addAnnotations = (ast: AST.AST, node: JsonObject): JsonObject => {
    const title = "title" in node ? undefined : textAnnotation(ast, "title")
    // The description of a key may be in an `allOf` already.
    const description = "description" in node || "allOf" in node ? undefined : textAnnotation(ast, "description")
    // An invalid value is copied too: the definition of the tool then fails with a message.
    const header = keyword in node ? undefined : annotation(ast, keyword)
    const format = node["type"] === "string" && !("format" in node) ? formatOf(ast) : undefined
    const fallback = "default" in node ? undefined : defaultOf(ast)
    return { ...node, ...omitUndefined({ default: fallback, format, title, description, [keyword]: header }) }
  }

  const visit = (ast: AST.AST, node: JsonObject): JsonObject => {
    const name = referenced(node)
    if (name !== undefined) {
      if (!seen.has(name) && Object.hasOwn(definitions, name)) {
        seen.add(name)
        definitions[name] = visit(ast, definitions[name]!)
      }
      return node
    }
    const { anyOf, items, properties } = node
    if (AST.isSuspend(ast)) return visit(ast.thunk(), node)
    // The JSON Schema describes the encoded side.
    if (ast.encoding !== undefined) return visit(ast.encoding.at(-1)!.to, node)
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
    ast === undefined || !isObject(node) ? node : addAnnotations(ast, visit(ast, node))

  return { node: both(ast, node) as JsonObject, definitions }
}

/**
 * The JSON Schemas of Effect Schemas.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { ObjectSchema } from "@skein/protocol/Tool"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { annotate, isNonFinite } from "./annotations.ts"
import { asObject, type Definitions, nonObject, referenced, resolve } from "./jsonSchema.ts"

/**
 * Removes the encodings of `Infinity`, `-Infinity` and `NaN`, which `Schema.Number` writes as strings. A model has no
 * use for them. Decoding still accepts them.
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

/** A JSON Schema with the definitions that it refers to. */
interface Document {
  readonly root: JsonObject
  readonly definitions: Definitions
}

/**
 * Whether a declaration has a JSON form. A declaration that is JSON already has the annotation `toCodecJson: () =>
 * undefined`.
 */
const hasJsonForm = ({ annotations }: AST.Declaration): boolean =>
  typeof (annotations?.["toCodecJson"] ?? annotations?.["toCodec"]) === "function"

/**
 * Returns the path of the first declaration without a JSON form: empty for the schema itself, `undefined` if there is
 * none. Effect writes "any value" as the JSON Schema of such a declaration, but then refuses every value, because no JSON
 * value is an instance of a class, or a function.
 */
const findMissingJsonForm = (
  ast: AST.AST,
  seen: Set<AST.AST> = new Set()
): ReadonlyArray<string> | undefined => {
  if (seen.has(ast)) return undefined
  seen.add(ast)
  for (const [name, inner] of parts(ast)) {
    const found = findMissingJsonForm(inner, seen)
    if (found !== undefined) return name === undefined ? found : [name, ...found]
  }
  return AST.isDeclaration(ast) && ast.encoding === undefined && !hasJsonForm(ast) ? [] : undefined
}

type Part = readonly [name: string | undefined, ast: AST.AST]

const parts = (ast: AST.AST): ReadonlyArray<Part> => {
  // The encoded side decides about the JSON form.
  if (ast.encoding !== undefined) return [[undefined, ast.encoding.at(-1)!.to]]
  if (AST.isSuspend(ast)) return [[undefined, ast.thunk()]]
  if (AST.isUnion(ast)) return ast.types.map((type) => [undefined, type])
  if (AST.isDeclaration(ast)) return ast.typeParameters.map((type) => [undefined, type])
  if (AST.isArrays(ast)) return [...ast.elements, ...ast.rest].map((type) => ["[]", type])
  if (!AST.isObjects(ast)) return []
  return [
    ...ast.propertySignatures.map(({ name, type }): Part => [String(name), type]),
    ...ast.indexSignatures.map(({ type }): Part => ["*", type])
  ]
}

/**
 * Makes the JSON Schema of the encoded side of a schema, without a reference at its root. Throws if a part has no JSON
 * Schema.
 */
const document = (schema: Schema.Constraint): Document => {
  const path = findMissingJsonForm(schema.ast)
  if (path !== undefined) {
    const where = path.length === 0 ? "" : ` at ${path.join(".")}`
    throw new TypeError(`no JSON representation is known for this declaration${where}; add a toCodecJson annotation`)
  }
  const { schema: root, definitions } = Schema.toJsonSchemaDocument(schema)
  const annotated = annotate(schema.ast, root, definitions)
  return { root: resolve(annotated.node, annotated.definitions), definitions: annotated.definitions }
}

/** Adds the definitions that are used. A class at the root is written there and not again as a definition. */
const withDefinitions = ({ root, definitions }: Document): JsonObject => {
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

/** Makes the JSON Schema of the arguments of a tool. The root must be an object in every revision. */
export const input = (schema: Schema.Constraint): ObjectSchema => {
  const { definitions, root } = document(schema)
  const object = asObject(root, definitions)
  if (object === undefined) throw new TypeError(nonObject)
  return withoutNonFinite(withDefinitions({ root: object, definitions })) as ObjectSchema
}

/**
 * Makes the JSON Schema of structured content. A union of objects gets `type: "object"`, so that older revisions can
 * carry it.
 */
export const output = (schema: Schema.Constraint): JsonObject => {
  const { definitions, root } = document(schema)
  return withDefinitions({ root: asObject(root, definitions) ?? root, definitions })
}

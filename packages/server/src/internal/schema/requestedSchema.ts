/**
 * Turns schemas into forms: "limited to flat objects with primitive properties only" (elicitation, "Requested Schema").
 */
import type * as Wire from "@skein/protocol/Elicitation"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { annotate, annotation, isNonFinite } from "./annotations.ts"
import { type Definitions, resolve } from "./jsonSchema.ts"

type Field = Wire.PrimitiveSchemaDefinition

/** The keywords that a field of each type may have. All other checks of a schema apply to the response only. */
const keywords = {
  string: ["minLength", "maxLength", "format"],
  number: ["minimum", "maximum"],
  integer: ["minimum", "maximum"],
  boolean: [],
  array: ["minItems", "maxItems"]
} as const

const labels = ["title", "description", "default"] as const

const formats: ReadonlySet<unknown> = new Set(["email", "uri", "date", "date-time"])

/** Whether a keyword carries information. The bounds that every safe integer has do not. */
const isMeaningful = (key: string, value: unknown): boolean =>
  value !== undefined && (key !== "format" || formats.has(value)) && Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER

const pick = (node: JsonObject, keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(keys.filter((key) => isMeaningful(key, node[key])).map((key) => [key, node[key]]))

interface Option {
  readonly const: string
  readonly title?: string | undefined
}

/** The members of a node that is one of several. Zod writes `anyOf`, and authors of JSON Schema write `oneOf`. */
const membersOf = ({ anyOf, oneOf }: JsonObject): ReadonlyArray<unknown> | undefined =>
  Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined

/** Returns the values of a node that is a choice of texts. */
const optionsOf = (node: JsonObject): ReadonlyArray<Option> | undefined => {
  const { const: only, title } = node
  const values = typeof only === "string" ? [only] : node["enum"]
  const several = membersOf(node)
  if (several !== undefined) {
    const members = several.map((member) => isObject(member) ? optionsOf(member) : undefined)
    return members.every((member) => member !== undefined) ? members.flat() : undefined
  }
  if (!Array.isArray(values) || !values.every((value) => typeof value === "string")) return undefined
  return values.map((value) => typeof title === "string" ? { const: value, title } : { const: value })
}

const titled = (options: ReadonlyArray<Option>) => options.map((option) => ({ title: option.const, ...option }))

const hasTitles = (options: ReadonlyArray<Option>): boolean => options.some(({ title }) => title !== undefined)

/** Makes a choice. The title of a single `enum` belongs to the field, not to a value. */
const choice = (values: JsonObject, word: "oneOf" | "anyOf"): JsonObject | undefined => {
  const options = optionsOf(values)
  if (options === undefined || options.length === 0) return undefined
  if (membersOf(values) !== undefined && hasTitles(options)) return { [word]: titled(options) }
  return { type: "string", enum: options.map((option) => option.const) }
}

/** Makes one field, or returns why a form cannot have it. */
const fieldOf = (given: JsonObject, definitions: Definitions): Field | string => {
  const node = simplify(resolve(given, definitions))
  const { items, type } = node
  const labeled = pick(node, labels)
  const single = choice(node, "oneOf")
  if (single !== undefined) return { type: "string", ...single, ...labeled } as Field
  if (type === "array") {
    const several = isObject(items) ? choice(simplify(resolve(items, definitions)), "anyOf") : undefined
    return several === undefined
      ? "a list must be a choice of texts"
      : { type, ...labeled, ...pick(node, keywords.array), items: several } as Field
  }
  if (membersOf(node) !== undefined) return "it has several types"
  if (type === "object") return "it has fields of its own"
  if (typeof type !== "string" || !(type in keywords)) {
    return "it is not a text, a number, a boolean, or a choice of texts"
  }
  if (node["enum"] !== undefined) return "a choice must be of texts"
  return {
    type,
    ...labeled,
    ...pick({ ...node, ...inclusive(node) }, keywords[type as keyof typeof keywords])
  } as Field
}

/**
 * Replaces exclusive bounds, which forms do not have: with the next integer, or with the bound itself, which the
 * response is checked against.
 */
const inclusive = ({ exclusiveMaximum, exclusiveMinimum, type }: JsonObject): JsonObject => {
  const step = type === "integer" ? 1 : 0
  return {
    ...(typeof exclusiveMinimum === "number" ? { minimum: exclusiveMinimum + step } : undefined),
    ...(typeof exclusiveMaximum === "number" ? { maximum: exclusiveMaximum - step } : undefined)
  }
}

/** Removes the `null` that Effect writes for optional values, and the encodings of non-finite numbers. */
const simplify = (node: JsonObject): JsonObject => {
  const { allOf, anyOf, ...rest } = node
  if (Array.isArray(allOf)) return simplify(Object.assign({}, rest, anyOf === undefined ? {} : { anyOf }, ...allOf))
  if (!Array.isArray(anyOf)) return node
  const members = anyOf.filter((member) => !isNull(member) && !isNonFinite(member))
  return members.length === 1 && isObject(members[0])
    ? simplify({ ...members[0], ...rest })
    : { ...rest, anyOf: members }
}

const isNull = (node: unknown): boolean => isObject(node) && node["type"] === "null"

/**
 * The minimum length of a text. Effect counts UTF-16 units and JSON Schema counts characters, so Effect writes about
 * half of the author's number into the JSON Schema. People should see the author's number.
 */
const minLength = (ast: AST.AST | undefined): { readonly minLength?: number | undefined } => {
  // The last step of the encoding makes the sent value. For a field with a default that is the field itself.
  const sent = ast?.encoding?.at(-1)?.to ?? ast
  if (sent === undefined || !AST.isString(sent)) return {}
  const lengths = sent.checks?.flatMap((check) => {
    const { id, payload } = (check.annotations?.["representation"] ?? {}) as {
      id?: string | undefined
      payload?: JsonObject | undefined
    }
    return id === "effect/schema/isMinLength" ? [Number(payload?.["minLength"])] : []
  }) ?? []
  return lengths.length === 0 ? {} : { minLength: Math.max(...lengths) }
}

/** Writes a choice in the form of 2025-06-18 if its author wants that. */
const legacy = (field: Field, ast: AST.AST | undefined): Field => {
  if (ast === undefined || !("oneOf" in field) || annotation(ast, "enumNames") !== true) return field
  const { oneOf, ...rest } = field
  return { ...rest, enum: oneOf.map((option) => option.const), enumNames: oneOf.map(({ title }) => title) }
}

/** Returns the decoding defaults of the fields, as JSON. */
const defaultsOf = (schema: Schema.ConstraintCodec<unknown, unknown>): JsonObject => {
  if (!AST.isObjects(schema.ast)) return {}
  return Object.fromEntries(
    schema.ast.propertySignatures.flatMap(({ name, type }) => {
      const field = Schema.toCodecJson(Schema.make<Schema.ConstraintCodec<unknown, unknown>>(type))
      const one = Schema.Struct({ field })
      const read = Result.flatMap(Schema.decodeUnknownResult(one)({}), Schema.encodeUnknownResult(one))
      const value = Result.isSuccess(read) ? (read.success as JsonObject)["field"] : undefined
      return value === undefined || value === null ? [] : [[String(name), value]]
    })
  )
}

/** Makes the form of a schema, or returns one line that names the field that a form cannot have. */
export const toRequestedSchema = (
  schema: Schema.ConstraintCodec<unknown, unknown>
): Result.Result<Wire.RequestedSchema, string> => {
  const document = Result.try({ try: () => Schema.toJsonSchemaDocument(schema), catch: String })
  if (Result.isFailure(document)) return Result.fail(document.failure)
  const { definitions, node } = annotate(schema.ast, document.success.schema, document.success.definitions)
  const defaults = defaultsOf(schema)
  const types = new Map(
    AST.isObjects(schema.ast) ? schema.ast.propertySignatures.map(({ name, type }) => [name, type]) : []
  )
  return formOf(node, definitions, (name, field) => {
    const value = "default" in field ? undefined : defaults[name]
    return {
      ...legacy(field, types.get(name)),
      ...minLength(types.get(name)),
      ...(value === undefined ? undefined : { default: value })
    } as Field
  })
}

/** The same for a JSON Schema. */
export const toRequestedJsonSchema = (schema: JsonObject | boolean): Result.Result<Wire.RequestedSchema, string> => {
  const { $defs, ...node } = isObject(schema) ? schema : {}
  return formOf(node, (isObject($defs) ? $defs : {}) as Definitions, (_, field) => field)
}

/** Makes a form of an object. `finish` completes each field. */
const formOf = (
  object: JsonObject,
  definitions: Definitions,
  finish: (name: string, field: Field) => Field
): Result.Result<Wire.RequestedSchema, string> => {
  const { properties, required, type } = resolve(object, definitions)
  if (type !== "object" || !isObject(properties)) return Result.fail("a form must be a struct with at least one field")
  const fields: { [name: string]: Field } = {}
  for (const [name, node] of Object.entries(properties)) {
    const field = isObject(node) ? fieldOf(node, definitions) : "it has no type"
    if (typeof field === "string") {
      return Result.fail(`a form cannot have the field ${JSON.stringify(name)}: ${field}`)
    }
    fields[name] = finish(name, field)
  }
  const form = { type: "object", properties: fields } as const
  return Result.succeed(Array.isArray(required) && required.length > 0 ? { ...form, required } : form)
}

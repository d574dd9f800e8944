/**
 * Schemas as forms: "limited to flat objects with primitive properties only" (elicitation, "Requested Schema").
 */
import type * as Wire from "@skein/protocol/Elicitation"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { annotate, annotation, type Definitions, isNonFinite, resolve } from "./annotations.ts"

type Field = Wire.PrimitiveSchemaDefinition

/** What is taken over of each kind of field; what else a schema checks is checked on the answer. */
const kept = {
  string: ["minLength", "maxLength", "format"],
  number: ["minimum", "maximum"],
  integer: ["minimum", "maximum"],
  boolean: [],
  array: ["minItems", "maxItems"]
} as const

const labels = ["title", "description", "default"] as const

const formats: ReadonlySet<unknown> = new Set(["email", "uri", "date", "date-time"])

/** The bounds that every integer has say nothing. */
const isMeaningful = (key: string, value: unknown): boolean =>
  value !== undefined && (key !== "format" || formats.has(value)) && Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER

const pick = (node: JsonObject, keys: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(keys.filter((key) => isMeaningful(key, node[key])).map((key) => [key, node[key]]))

interface Option {
  readonly const: string
  readonly title?: string | undefined
}

/** The values that a node allows, if it allows a choice of texts. */
const optionsOf = (node: JsonObject): ReadonlyArray<Option> | undefined => {
  const { anyOf, enum: values, title } = node
  if (Array.isArray(anyOf)) {
    const members = anyOf.map((member) => isObject(member) ? optionsOf(member) : undefined)
    return members.every((member) => member !== undefined) ? members.flat() : undefined
  }
  if (!Array.isArray(values) || !values.every((value) => typeof value === "string")) return undefined
  return values.map((value) => typeof title === "string" ? { const: value, title } : { const: value })
}

const titled = (options: ReadonlyArray<Option>) => options.map((option) => ({ title: option.const, ...option }))

const hasTitles = (options: ReadonlyArray<Option>): boolean => options.some(({ title }) => title !== undefined)

/** A choice. What a single `enum` calls its title is the field's, and not a value's. */
const choice = (values: JsonObject, word: "oneOf" | "anyOf"): JsonObject | undefined => {
  const options = optionsOf(values)
  if (options === undefined || options.length === 0) return undefined
  if (Array.isArray(values["anyOf"]) && hasTitles(options)) return { [word]: titled(options) }
  return { type: "string", enum: options.map((option) => option.const) }
}

/** One field, or why it is none. */
const fieldOf = (given: JsonObject, definitions: Definitions): Field | string => {
  const node = simplify(resolve(given, definitions))
  const { items, type } = node
  const said = pick(node, labels)
  const single = choice(node, "oneOf")
  if (single !== undefined) return { type: "string", ...single, ...said } as Field
  if (type === "array") {
    const several = isObject(items) ? choice(simplify(resolve(items, definitions)), "anyOf") : undefined
    return several === undefined
      ? "a list may only hold a choice of texts"
      : { type, ...said, ...pick(node, kept.array), items: several } as Field
  }
  if (Array.isArray(node["anyOf"])) return "it may be of several types"
  if (type === "object") return "it has fields of its own"
  if (typeof type !== "string" || !(type in kept)) {
    return "it is not a text, a number, a yes or no, or a choice of texts"
  }
  if (node["enum"] !== undefined) return "a choice is one of texts"
  return { type, ...said, ...pick({ ...node, ...inclusive(node) }, kept[type as keyof typeof kept]) } as Field
}

/** A form has no exclusive bounds: of integers the next one is meant, of other numbers the bound itself is checked on the answer. */
const inclusive = ({ exclusiveMaximum, exclusiveMinimum, type }: JsonObject): JsonObject => {
  const step = type === "integer" ? 1 : 0
  return {
    ...(typeof exclusiveMinimum === "number" ? { minimum: exclusiveMinimum + step } : undefined),
    ...(typeof exclusiveMaximum === "number" ? { maximum: exclusiveMaximum - step } : undefined)
  }
}

/** Without the `null` that Effect writes for what may be undefined, and without the numbers that JSON does not have. */
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
 * The least length that a text is checked for. Effect counts UTF-16 units and JSON Schema characters, so that Effect writes about half
 * of it: people better see the number that the author meant.
 */
const minLength = (ast: AST.AST | undefined): { readonly minLength?: number | undefined } => {
  // What is sent is what the last step of the encoding makes: of a field with a default, the field itself.
  const sent = ast?.encoding?.at(-1)?.to ?? ast
  if (sent === undefined || !AST.isString(sent)) return {}
  const least = sent.checks?.flatMap((check) => {
    const { id, payload } = (check.annotations?.["representation"] ?? {}) as {
      id?: string | undefined
      payload?: JsonObject | undefined
    }
    return id === "effect/schema/isMinLength" ? [Number(payload?.["minLength"])] : []
  }) ?? []
  return least.length === 0 ? {} : { minLength: Math.max(...least) }
}

/** A choice whose author wants it in the way of 2025-06-18. */
const legacy = (field: Field, ast: AST.AST | undefined): Field => {
  if (ast === undefined || !("oneOf" in field) || annotation(ast, "enumNames") !== true) return field
  const { oneOf, ...rest } = field
  return { ...rest, enum: oneOf.map((option) => option.const), enumNames: oneOf.map(({ title }) => title) }
}

/** The default that reading gives to fields that are absent, as JSON. */
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

/** The form that asks for what a schema reads, or one line that names the field that no form can have. */
export const toRequestedSchema = (
  schema: Schema.ConstraintCodec<unknown, unknown>
): Result.Result<Wire.RequestedSchema, string> => {
  const document = Result.try({ try: () => Schema.toJsonSchemaDocument(schema), catch: String })
  if (Result.isFailure(document)) return Result.fail(document.failure)
  const annotated = annotate(schema.ast, document.success.schema, document.success.definitions)
  const { properties, required, type } = resolve(annotated.node, annotated.definitions)
  if (type !== "object" || !isObject(properties)) return Result.fail("A form is a struct with a field at least")
  const defaults = defaultsOf(schema)
  const types = new Map(
    AST.isObjects(schema.ast) ? schema.ast.propertySignatures.map(({ name, type }) => [name, type]) : []
  )
  const fields: { [name: string]: Field } = {}
  for (const [name, node] of Object.entries(properties)) {
    const field = isObject(node) ? fieldOf(node, annotated.definitions) : "it may be anything"
    if (typeof field === "string") {
      return Result.fail(`The field ${JSON.stringify(name)} cannot stand in a form: ${field}`)
    }
    const value = "default" in field ? undefined : defaults[name]
    fields[name] = {
      ...legacy(field, types.get(name)),
      ...minLength(types.get(name)),
      ...(value === undefined ? undefined : { default: value })
    } as Field
  }
  const form = { type: "object", properties: fields } as const
  return Result.succeed(Array.isArray(required) && required.length > 0 ? { ...form, required } : form)
}

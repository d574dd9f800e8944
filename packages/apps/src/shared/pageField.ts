/**
 * Fields as pages draw them: those of a form, and the inputs of a tree of components. `packages/apps/page/fields.ts` draws
 * them.
 */
import type { PrimitiveSchemaDefinition, RequestedSchema } from "@skein/protocol/Elicitation"

/** One of the values of a field. */
export interface PageOption {
  readonly value: string
  readonly label?: string | undefined
}

/** A field. */
export interface PageField {
  readonly name: string
  readonly kind:
    | "text"
    | "textarea"
    | "email"
    | "url"
    | "date"
    | "datetime"
    | "number"
    | "integer"
    | "checkbox"
    | "select"
    | "checkboxes"
  readonly label: string
  readonly description?: string | undefined
  /** Whether the user must fill it in. An empty field that is not required has no value. */
  readonly required?: boolean | undefined
  /** The least number, number of characters, or number of values. */
  readonly min?: number | undefined
  /** The greatest number, number of characters, or number of values. */
  readonly max?: number | undefined
  readonly options?: ReadonlyArray<PageOption> | undefined
  readonly initial?: unknown
  readonly placeholder?: string | undefined
}

const textKinds = { email: "email", uri: "url", date: "date", "date-time": "datetime" } as const

type Own = Pick<PageField, "kind" | "min" | "max" | "options">

const titled = (options: ReadonlyArray<{ readonly const: string; readonly title: string }>) =>
  options.map(({ const: value, title: label }) => ({ value, label }))

const plain = (values: ReadonlyArray<string>) => values.map((value) => ({ value }))

const ownOf = (schema: PrimitiveSchemaDefinition, isMultiline: boolean): Own => {
  if ("oneOf" in schema) return { kind: "select", options: titled(schema.oneOf) }
  if ("enum" in schema) {
    const names: ReadonlyArray<string> = "enumNames" in schema && schema.enumNames !== undefined ? schema.enumNames : []
    return { kind: "select", options: schema.enum.map((value, at) => ({ value, label: names[at] })) }
  }
  if (schema.type === "array") {
    const { items, maxItems: max, minItems: min } = schema
    return { kind: "checkboxes", min, max, options: "anyOf" in items ? titled(items.anyOf) : plain(items.enum) }
  }
  if (schema.type === "boolean") return { kind: "checkbox" }
  if (schema.type !== "string") return { kind: schema.type, min: schema.minimum, max: schema.maximum }
  const text = isMultiline ? "textarea" : "text"
  return {
    kind: schema.format === undefined ? text : textKinds[schema.format],
    min: schema.minLength,
    max: schema.maxLength
  }
}

/**
 * The fields of a form. A field with a default is required: an empty one would get the default, which the user has just
 * removed. An initial value makes none required.
 */
export const fieldsOf = (
  { properties, required = [] }: RequestedSchema,
  initial: { readonly [name: string]: unknown },
  multiline: ReadonlyArray<string>
): ReadonlyArray<PageField> =>
  Object.entries(properties).map(([name, schema]) => ({
    name,
    label: schema.title ?? name,
    description: schema.description,
    required: required.includes(name) || schema.default !== undefined,
    initial: Object.hasOwn(initial, name) ? initial[name] : schema.default,
    ...ownOf(schema, multiline.includes(name))
  }))

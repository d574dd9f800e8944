/**
 * Validates the content of a form: "Clients SHOULD validate all responses against the provided schema" (2025-11-25,
 * elicitation, form mode security). This client never sends content that does not fit.
 */
import type { ElicitValue, RequestedSchema } from "@skein/protocol/Elicitation"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Result from "effect/Result"
import { cut, quote } from "@skein/protocol/Text"

/** The values that the user entered. A member that is `undefined` is a field that was left empty. */
export interface Content {
  readonly [field: string]: ElicitValue | undefined
}

/** A form with a usable schema. */
export interface Form {
  /**
   * The valid defaults of the schema ("Clients that support defaults SHOULD pre-populate form fields with these
   * values").
   */
  readonly defaults: { readonly [field: string]: ElicitValue }
  /**
   * Returns the content to send for the entered values, or why they are not valid. The message contains names of fields
   * but no values.
   */
  readonly settle: (content: Content) => Result.Result<{ readonly [field: string]: ElicitValue }, string>
}

/** Describes why a value of a field is not valid; `undefined` if it is. */
type Check = (value: unknown, stepsPerChar: number) => string | undefined

// A form and its defaults are validated without a pause, so all of them together are bounded: the characters of the
// properties as JSON, and the steps, which a field gets by its share, its schema and its value.
const maxFormChars = 131_072
const sharedSteps = 100_000
const stepsPerDefaultChar = 4
const stepsPerContentChar = 20

/** How many fields a form may have. A form with more is refused with `-32602`. */
const maxFields = 1_000

// The formats of text fields. All of these expressions take linear time.

const isDate = (text: string): boolean => {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const time = Date.parse(`${text}T00:00:00Z`)
  // `Date.parse` reads a day beyond the end of a month as a day of the next month.
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

const isTime = (text: string): boolean =>
  /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i.test(text)

const formats: { readonly [format: string]: (text: string) => boolean } = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  // RFC 3986: characters other than ASCII are percent-encoded.
  uri: (text) => /^[a-z][a-z\d+.-]*:[\x21-\x7e]+$/i.test(text) && URL.canParse(text),
  date: isDate,
  // RFC 3339: with a time zone.
  "date-time": (text) => /^.{10}[t ]/i.test(text) && isDate(cut(text, 10)) && isTime(text.slice(11))
}

/** Whether a value has a format. Values other than strings, and formats that forms do not define, always match. */
const hasFormat = (format: string, value: unknown): boolean =>
  typeof value !== "string" || !Object.hasOwn(formats, format) || formats[format]!(value)

/** The characters of a value, without those that JSON adds. */
const charsOf = (value: unknown): number =>
  typeof value === "string"
    ? value.length
    : Array.isArray(value)
    ? value.reduce((sum, item) => sum + charsOf(item), 2)
    : 8

const fieldOf = (
  { problems }: SchemaValidation.Validation,
  name: string,
  schema: RequestedSchema["properties"][string],
  steps: number
): Check => {
  const format = "format" in schema ? schema.format : undefined
  return (value, stepsPerChar) => {
    // `NaN` and the infinities have no JSON form.
    if (typeof value === "number" && !Number.isFinite(value)) return "is not a finite number"
    // Entries define own members, so that a field may be called `__proto__`.
    const content = Object.fromEntries([[name, value]])
    if (problems(content, steps + stepsPerChar * charsOf(value)).length > 0) {
      return "does not match the schema of the field"
    }
    return format === undefined || hasFormat(format, value) ? undefined : `is not in the format ${format}`
  }
}

/**
 * Reads a form. `forms` is the number of forms that share the bounds. Fails with a one-line reason if the form cannot
 * be used.
 */
export const readForm = (
  { properties, required = [] }: RequestedSchema,
  forms = 1
): Result.Result<Form, string> => {
  const fields = new Map<string, Check>()
  const defaults = new Map<string, ElicitValue>()
  const given = Object.entries(properties)
  if (given.length > maxFields) return Result.fail(`The form has ${given.length} fields, more than ${maxFields}`)
  const maxSchemaChars = Math.floor(maxFormChars / forms)
  const compiled = SchemaValidation.compile({ properties }, { maxSchemaChars })
  if (Result.isFailure(compiled)) return Result.fail(`The form cannot be used: ${compiled.failure.message}`)
  const share = Math.floor(sharedSteps / (forms * given.length))
  for (const [name, schema] of given) {
    const check = fieldOf(compiled.success, name, schema, share + JSON.stringify(schema).length)
    fields.set(name, check)
    const { default: value } = schema
    // A default that its own schema refuses is ignored.
    if (value !== undefined && check(value, stepsPerDefaultChar) === undefined) defaults.set(name, value)
  }
  const unknown = required.find((name) => !fields.has(name))
  if (unknown !== undefined) return Result.fail(`The form requires ${quote(unknown)}, and has no such field`)
  const settle: Form["settle"] = (content) => {
    const strange = Object.keys(content).find((name) => content[name] !== undefined && !fields.has(name))
    if (strange !== undefined) return Result.fail(`the form has no field ${quote(strange)}`)
    const settled: Array<readonly [string, ElicitValue]> = []
    for (const [name, check] of fields) {
      const value = Object.hasOwn(content, name) ? content[name] : defaults.get(name)
      if (value === undefined) continue
      const wrong = check(value, stepsPerContentChar)
      if (wrong !== undefined) return Result.fail(`the value of ${quote(name)} ${wrong}`)
      settled.push([name, value])
    }
    const sent = new Set(settled.map(([name]) => name))
    const missing = required.find((name) => !sent.has(name))
    // Entries define own members, so that a field may be called `__proto__`.
    return missing === undefined
      ? Result.succeed(Object.fromEntries(settled))
      : Result.fail(`${quote(missing)} is required and was left empty`)
  }
  return Result.succeed({ defaults: Object.fromEntries(defaults), settle })
}

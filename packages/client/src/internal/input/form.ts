/**
 * What may be sent as the content of a form: "Clients SHOULD validate all responses against the provided schema"
 * (2025-11-25, elicitation, form mode security), and here nothing leaves that does not fit.
 */
import type { ElicitValue, RequestedSchema } from "@skein/protocol/Elicitation"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Result from "effect/Result"
import { quoted } from "../text.ts"

/** What was entered. A member that is `undefined` is a field that was left empty. */
export interface Content {
  readonly [field: string]: ElicitValue | undefined
}

/** A form that was read. */
export interface Form {
  /**
   * What the server would fill in ("Clients that support defaults SHOULD pre-populate form fields with these values").
   */
  readonly defaults: { readonly [field: string]: ElicitValue }
  /** What is sent for what was entered, or what is wrong with it: the names of fields and no values. */
  readonly settle: (content: Content) => Result.Result<{ readonly [field: string]: ElicitValue }, string>
}

interface Field {
  readonly problem: (value: unknown) => string | undefined
}

// The steps of all fields of all forms that come together, and those that any field has. A form is read in one go, defaults and all.
const maxSteps = 5_000_000
const leastSteps = 10_000

// The formats of the text fields of a form. None of these expressions takes more than linear time.

const isDate = (text: string): boolean => {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const time = Date.parse(`${text}T00:00:00Z`)
  // A day that the month does not have is read as one of the next month.
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

const isTime = (text: string): boolean =>
  /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i.test(text)

const formats: { readonly [format: string]: (text: string) => boolean } = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  // RFC 3986: other characters than those of ASCII are encoded.
  uri: (text) => /^[a-z][a-z\d+.-]*:[\x21-\x7e]+$/i.test(text) && URL.canParse(text),
  date: isDate,
  // RFC 3339: with a time zone.
  "date-time": (text) => /^.{10}[t ]/i.test(text) && isDate(text.slice(0, 10)) && isTime(text.slice(11))
}

/** Whether a value has a format. Values that are not text, and formats that forms do not define, always match. */
const hasFormat = (format: string, value: unknown): boolean =>
  typeof value !== "string" || !Object.hasOwn(formats, format) || formats[format]!(value)

const fieldOf = (schema: RequestedSchema["properties"][string], steps: number): Result.Result<Field, string> => {
  const format = "format" in schema ? schema.format : undefined
  return Result.mapBoth(SchemaValidation.compile(schema, { maxSteps: steps }), {
    onFailure: ({ message }) => message,
    onSuccess: ({ problems }) => ({
      problem: (value: unknown) => {
        // What says nothing about strings, as `NaN` and the infinities, has no JSON form.
        if (typeof value === "number" && !Number.isFinite(value)) return "is not a finite number"
        const [first] = problems(value)
        if (first !== undefined) return "does not fit"
        return format === undefined || hasFormat(format, value) ? undefined : `is no ${format}`
      }
    })
  })
}

/** Reads a form, one of `forms` that share the steps; a line that says why nobody can fill it in. */
export const readForm = (
  { properties, required = [] }: RequestedSchema,
  maxFields = 1_000,
  forms = 1
): Result.Result<Form, string> => {
  const fields = new Map<string, Field>()
  const defaults = new Map<string, ElicitValue>()
  const given = Object.entries(properties)
  if (given.length > maxFields) return Result.fail(`The form has ${given.length} fields, more than ${maxFields}`)
  const steps = Math.floor(Math.max(leastSteps, maxSteps / given.length) / forms)
  for (const [name, schema] of given) {
    const field = fieldOf(schema, steps)
    if (Result.isFailure(field)) return Result.fail(`The field ${quoted(name)} cannot be used: ${field.failure}`)
    fields.set(name, field.success)
    const { default: value } = schema
    // A default that its own field refuses is none.
    if (value !== undefined && field.success.problem(value) === undefined) defaults.set(name, value)
  }
  const unknown = required.find((name) => !fields.has(name))
  if (unknown !== undefined) return Result.fail(`The form requires ${quoted(unknown)}, and has no such field`)
  const settle: Form["settle"] = (content) => {
    const strange = Object.keys(content).find((name) => content[name] !== undefined && !fields.has(name))
    if (strange !== undefined) return Result.fail(`the form has no field ${quoted(strange)}`)
    const settled: Array<readonly [string, ElicitValue]> = []
    for (const [name, { problem }] of fields) {
      const value = Object.hasOwn(content, name) ? content[name] : defaults.get(name)
      if (value === undefined) continue
      const wrong = problem(value)
      if (wrong !== undefined) return Result.fail(`the value of ${quoted(name)} ${wrong}`)
      settled.push([name, value])
    }
    const sent = new Set(settled.map(([name]) => name))
    const missing = required.find((name) => !sent.has(name))
    // Entries define own members, so that a field may be called `__proto__`.
    return missing === undefined
      ? Result.succeed(Object.fromEntries(settled))
      : Result.fail(`${quoted(missing)} is required and was left empty`)
  }
  return Result.succeed({ defaults: Object.fromEntries(defaults), settle })
}

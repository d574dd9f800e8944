/**
 * The formats that a text field of a form may have: `email`, `uri`, `date` and `date-time`. None of the expressions
 * here takes more than linear time.
 */

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

/** Whether a value has a format. What is no text has any, and any text has a format that a form does not know. */
export const fits = (format: string, value: unknown): boolean =>
  typeof value !== "string" || !Object.hasOwn(formats, format) || formats[format]!(value)

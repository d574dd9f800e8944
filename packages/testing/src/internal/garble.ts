/**
 * From a message to the texts that are sent in its place.
 */
import type { Faults } from "./rules.ts"

/** A JSON object, as it is written by hand here. */
export interface Json {
  readonly [key: string]: unknown
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const html = "<!doctype html><title>502 Bad Gateway</title>\n<h1>Bad Gateway</h1>\n"

/** Adds members that nobody knows, to each object there is. */
const extended = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(extended)
  if (!isObject(value)) return value
  const members = Object.entries(value).map(([key, member]) => [key, key === "inputSchema" ? member : extended(member)])
  return {
    "x-rude": { nested: [null, 1, "✗"] },
    ...Object.fromEntries(members),
    "": 0,
    __proto__x: "x",
    toString: null
  }
}

const answerIs = (is: string, message: Json): string => {
  switch (is) {
    case "html":
      return html
    case "number":
      return "5"
    case "array":
      return "[]"
    case "object":
      return "{}"
    case "without result":
      return JSON.stringify({ jsonrpc: "2.0", id: message["id"] })
    case "half":
      return JSON.stringify(message).slice(0, JSON.stringify(message).length / 2)
    default:
      return ""
  }
}

const withId = (message: Json, how: string, other: unknown): ReadonlyArray<Json> => {
  const { id, ...rest } = message
  switch (how) {
    case "wrong":
      return [{ ...message, id: typeof id === "number" ? id + 1_000_000 : `${String(id)}-wrong` }]
    case "null":
      return [{ ...message, id: null }]
    case "string":
      return [{ ...message, id: String(id) }]
    case "missing":
      return [rest]
    case "twice":
      return [message, message]
    default:
      return [{ ...message, id: other ?? (typeof id === "number" ? id + 1 : id) }]
  }
}

/** What comes before the answer. */
const before = (faults: Faults, token: unknown): ReadonlyArray<string> => {
  const texts: Array<string> = []
  const notify = (method: string, params: Json) => texts.push(JSON.stringify({ jsonrpc: "2.0", method, params }))
  if (faults.has("Strangers")) {
    texts.push(JSON.stringify({ jsonrpc: "2.0", id: "stranger", method: "rude/request", params: {} }))
    notify("notifications/rude", { why: null })
    notify("notifications/cancelled", { requestId: "nobody" })
    notify("notifications/progress", { progressToken: "nobody", progress: 1 })
  }
  if (faults.has("Noise")) texts.push("This is not JSON.", "{\"jsonrpc\":\"2.0\",\"id\":", "null", "\u0000\u0007")
  const huge = faults.get("Huge")
  if (huge !== undefined && !huge.answer) {
    notify("notifications/message", { level: "info", data: "x".repeat(huge.bytes) })
  }
  const progress = faults.get("Progress")
  for (let n = 1; n <= (progress?.times ?? 0); n++) {
    notify("notifications/progress", { progressToken: token ?? "unasked", progress: n })
  }
  return texts
}

/** The texts in the place of an answer. `other` is the id of another request, `token` what progress is reported with. */
export const garble = (
  message: Json,
  faults: Faults,
  about: { readonly other?: unknown; readonly token?: unknown }
): ReadonlyArray<string> => {
  const refuse = faults.get("Refuse")
  const huge = faults.get("Huge")
  let answer: Json = refuse === undefined
    ? message
    : { jsonrpc: "2.0", id: message["id"], error: { code: refuse.code, message: "No.", data: { rude: true } } }
  if (huge?.answer === true && isObject(answer["result"])) {
    answer = { ...answer, result: { ...answer["result"], padding: "x".repeat(huge.bytes) } }
  }
  if (faults.has("Extras")) answer = extended(answer) as Json
  const how = faults.get("Id")?.how
  const answers = how === undefined ? [answer] : withId(answer, how, about.other)
  const is = faults.get("Answer")?.is
  return [
    ...before(faults, about.token),
    ...answers.map((each) => is === undefined ? JSON.stringify(each) : answerIs(is, each))
  ]
}

/**
 * Applies the faults of messages: turns a response into the texts that the server sends in its place.
 */
import type { Faults } from "./faults.ts"

/** A JSON object. */
export interface Json {
  readonly [key: string]: unknown
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const html = "<!doctype html><title>502 Bad Gateway</title>\n<h1>Bad Gateway</h1>\n"

/** Adds unknown members to each object of a value, except to the schemas of tools. */
const withExtraMembers = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withExtraMembers)
  if (!isObject(value)) return value
  const members = Object.entries(value).map((
    [key, member]
  ) => [key, key === "inputSchema" ? member : withExtraMembers(member)])
  return {
    "x-faulty": { nested: [null, 1, "✗"] },
    ...Object.fromEntries(members),
    "": 0,
    __proto__x: "x",
    toString: null
  }
}

const bodyInPlaceOf = (body: string, message: Json): string => {
  switch (body) {
    case "html":
      return html
    case "number":
      return "5"
    case "array":
      return "[]"
    case "object":
      return "{}"
    case "no result":
      return JSON.stringify({ jsonrpc: "2.0", id: message["id"] })
    case "truncated":
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
    case "duplicate":
      return [message, message]
    default:
      return [{ ...message, id: other ?? (typeof id === "number" ? id + 1 : id) }]
  }
}

/** The texts that precede the response. */
const precedingTexts = (faults: Faults, token: unknown): ReadonlyArray<string> => {
  const texts: Array<string> = []
  const notify = (method: string, params: Json) => texts.push(JSON.stringify({ jsonrpc: "2.0", method, params }))
  if (faults.has("UnknownMethods")) {
    texts.push(JSON.stringify({ jsonrpc: "2.0", id: "unknown", method: "faulty/request", params: {} }))
    notify("notifications/faulty", { reason: null })
    notify("notifications/cancelled", { requestId: "unknown" })
    notify("notifications/progress", { progressToken: "unknown", progress: 1 })
  }
  if (faults.has("InvalidJson")) texts.push("This is not JSON.", "{\"jsonrpc\":\"2.0\",\"id\":", "null", "\u0000\u0007")
  const large = faults.get("LargeMessage")
  if (large !== undefined && !large.response) {
    notify("notifications/message", { level: "info", data: "x".repeat(large.bytes) })
  }
  const progress = faults.get("Progress")
  for (let n = 1; n <= (progress?.times ?? 0); n++) {
    notify("notifications/progress", { progressToken: token ?? "unsolicited", progress: n })
  }
  return texts
}

/**
 * The texts that the server sends for a response: with `other`, the id of another request, and `token`, the progress
 * token of this one.
 */
export const faultyTexts = (
  message: Json,
  faults: Faults,
  context: { readonly other?: unknown; readonly token?: unknown }
): ReadonlyArray<string> => {
  const error = faults.get("ErrorResponse")
  const large = faults.get("LargeMessage")
  let response: Json = error === undefined
    ? message
    : { jsonrpc: "2.0", id: message["id"], error: { code: error.code, message: "Refused.", data: { faulty: true } } }
  if (large?.response === true && isObject(response["result"])) {
    response = { ...response, result: { ...response["result"], padding: "x".repeat(large.bytes) } }
  }
  if (faults.has("ExtraMembers")) response = withExtraMembers(response) as Json
  const how = faults.get("ResponseId")?.how
  const responses = how === undefined ? [response] : withId(response, how, context.other)
  const body = faults.get("ResponseBody")?.is
  return [
    ...precedingTexts(faults, context.token),
    ...responses.map((each) => body === undefined ? JSON.stringify(each) : bodyInPlaceOf(body, each))
  ]
}

/**
 * Applies the faults of messages: turns a response into the texts that the server sends in its place.
 */
import type { FaultOf, Faults } from "./faults.ts"

/** A JSON object. */
export interface Json {
  readonly [key: string]: unknown
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

/** Parses an object or an array. Returns undefined for another text. */
export const parse = (text: string): Json | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? value as Json : undefined
  } catch {
    return undefined
  }
}

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

/** The texts in place of a response, by the `ResponseBody` fault. */
const bodies: Readonly<Record<FaultOf<"ResponseBody">["is"], (message: Json) => string>> = {
  empty: () => "",
  html: () => "<!doctype html><title>502 Bad Gateway</title>\n<h1>Bad Gateway</h1>\n",
  number: () => "5",
  array: () => "[]",
  object: () => "{}",
  "no result": ({ id }) => JSON.stringify({ jsonrpc: "2.0", id }),
  truncated: (message) => JSON.stringify(message).slice(0, JSON.stringify(message).length / 2)
}

const offset = (id: unknown, by: number, fallback: unknown): unknown => typeof id === "number" ? id + by : fallback

/** The responses in place of one, by the `ResponseId` fault. */
const withIds: Readonly<
  Record<FaultOf<"ResponseId">["how"], (message: Json, otherId: unknown) => ReadonlyArray<Json>>
> = {
  wrong: (message) => [{ ...message, id: offset(message["id"], 1_000_000, `${String(message["id"])}-wrong`) }],
  null: (message) => [{ ...message, id: null }],
  string: (message) => [{ ...message, id: String(message["id"]) }],
  missing: (message) => [Object.fromEntries(Object.entries(message).filter(([key]) => key !== "id"))],
  duplicate: (message) => [message, message],
  other: (message, otherId) => [{ ...message, id: otherId ?? offset(message["id"], 1, message["id"]) }]
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

const progressTokenOf = ({ params }: Json): unknown => {
  const meta = isObject(params) ? params["_meta"] : undefined
  return isObject(meta) ? meta["progressToken"] : undefined
}

/** The texts that the server sends for a response to `request`. `otherId` is the id of the request before it. */
export const faultyTexts = (
  message: Json,
  faults: Faults,
  context: { readonly request: Json; readonly otherId: unknown }
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
  const responses = how === undefined ? [response] : withIds[how](response, context.otherId)
  const body = faults.get("ResponseBody")?.is
  return [
    ...precedingTexts(faults, progressTokenOf(context.request)),
    ...responses.map((each) => body === undefined ? JSON.stringify(each) : bodies[body](each))
  ]
}

/**
 * The JSON-RPC 2.0 envelope, as the Model Context Protocol uses it.
 *
 * `parse` and `parseText` are total: whatever JSON they are given, they answer with a message or with an `Invalid` that holds
 * the error to send back and the id that could be read. Unknown members are ignored.
 */

/** The id of a request: a string or an integer, never `null`. Integers beyond 2^53 - 1 cannot be echoed and are refused. */
export type Id = string | number

/** Any JSON object. */
export interface JsonObject {
  readonly [key: string]: unknown
}

/** A message that expects an answer. */
export interface Request {
  readonly _tag: "Request"
  readonly id: Id
  readonly method: string
  readonly params: JsonObject | undefined
}

/** A message that expects no answer. */
export interface Notification {
  readonly _tag: "Notification"
  readonly method: string
  readonly params: JsonObject | undefined
}

/** The answer to a request that succeeded. */
export interface Success {
  readonly _tag: "Success"
  readonly id: Id
  readonly result: JsonObject | Encoded
}

/** The answer to a request that failed, or to something whose id could not be read. */
export interface Failure {
  readonly _tag: "Failure"
  readonly id: Id | undefined
  readonly error: ErrorObject
}

/** The `error` member of a failure. */
export interface ErrorObject {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** One JSON-RPC message. */
export type Message = Request | Notification | Success | Failure

/**
 * Something that was not a message, and the error that says so. `id` is the id that could be read, if any. `answer` is true
 * when it looks like the answer to a request (a result or an error, and no method), which it fails; `notification` when it looks
 * like a notification (a method, and no id). Neither is ever answered itself.
 */
export interface Invalid {
  readonly _tag: "Invalid"
  readonly answer: boolean
  readonly notification?: boolean | undefined
  readonly id: Id | undefined
  readonly error: ErrorObject
}

/** Several messages in one array. Only revision 2025-03-26 allows it. */
export interface Batch<M = Message> {
  readonly _tag: "Batch"
  readonly members: ReadonlyArray<M>
  /** The members as JSON texts, if they are encoded already: `encode` then writes these. */
  readonly texts?: ReadonlyArray<string> | undefined
}

/** What a transport reads. */
export type Inbound = Message | Invalid | Batch<Message | Invalid>

/** What a transport writes. */
export type Outbound = Message | Batch

/**
 * A result that is JSON text already, written out as it is: a listing that is serialised once per change, for instance. The text
 * is a JSON object without a line break; it is not checked.
 */
export class Encoded {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Makes a request. */
export const request = (id: Id, method: string, params?: JsonObject): Request => ({
  _tag: "Request",
  id,
  method,
  params
})

/** Makes a notification. */
export const notification = (method: string, params?: JsonObject): Notification => ({
  _tag: "Notification",
  method,
  params
})

/** Makes a successful answer. */
export const success = (id: Id, result: JsonObject | Encoded): Success => ({ _tag: "Success", id, result })

/** Makes a failed answer. */
export const failure = (id: Id | undefined, error: ErrorObject): Failure => ({ _tag: "Failure", id, error })

/** Whether the value can be the id of a request. */
export const isId = (value: unknown): value is Id => typeof value === "string" || Number.isSafeInteger(value)

/** Whether the value is a JSON object: neither `null` nor an array. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const invalid = (id: unknown, message: string, answer = false): Invalid => ({
  _tag: "Invalid",
  answer,
  id: isId(id) ? id : undefined,
  error: { code: -32600, message: `Invalid Request: ${message}` }
})

/**
 * Reads one JSON value as a message. Some peers write every member that they know, so that a `method`, an `error` or `params` of
 * `null` are taken as absent, and so is an `id` of `null` on an error answer, which JSON-RPC uses where the request's id could not
 * be read. Of an answer with both a result and an error, the error counts.
 */
export const parse = (value: unknown): Message | Invalid => {
  if (!isObject(value)) return invalid(undefined, "a message is a JSON object")
  const id = value["id"]
  const method = value["method"] ?? undefined
  const error = value["error"]
  const result = value["result"]
  const answer = method === undefined && (error !== undefined || result !== undefined)
  if (value["jsonrpc"] !== "2.0") return invalid(id, "\"jsonrpc\" must be \"2.0\"", answer)
  if (method !== undefined) {
    if (typeof method !== "string") return invalid(id, "\"method\" must be a string")
    const params = value["params"] ?? undefined
    if (params !== undefined && !isObject(params)) {
      const refused = invalid(id, "\"params\" must be an object")
      return id === undefined ? { ...refused, notification: true } : refused
    }
    if (id === undefined) return { _tag: "Notification", method, params }
    if (!isId(id)) return invalid(id, "\"id\" must be a string or an integer")
    return { _tag: "Request", id, method, params }
  }
  if (error !== undefined && error !== null) {
    if (id !== undefined && id !== null && !isId(id)) return invalid(id, "\"id\" must be a string or an integer", true)
    if (!isObject(error) || !Number.isInteger(error["code"]) || typeof error["message"] !== "string") {
      return invalid(id, "\"error\" must hold an integer \"code\" and a string \"message\"", true)
    }
    const { code, message, data } = error as unknown as ErrorObject
    return {
      _tag: "Failure",
      id: id ?? undefined,
      error: data === undefined ? { code, message } : { code, message, data }
    }
  }
  if (result === undefined) return invalid(id, "a message has a \"method\", a \"result\" or an \"error\"", answer)
  if (!isId(id)) return invalid(id, "\"id\" must be a string or an integer", true)
  if (!isObject(result)) return invalid(id, "\"result\" must be an object", true)
  return { _tag: "Success", id, result }
}

/**
 * Reads JSON text: one message, or an array of them as a `Batch` with each member read on its own. An array of more than
 * `maxBatch` members, 10,000 by default, is one `Invalid`: a few bytes each would become a message or an error each.
 */
export const parseText = (text: string, maxBatch = 10_000): Inbound => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return {
      _tag: "Invalid",
      answer: false,
      id: undefined,
      error: { code: -32700, message: "Parse error: not valid JSON" }
    }
  }
  if (!Array.isArray(value)) return parse(value)
  if (value.length === 0) return invalid(undefined, "a batch holds at least one message")
  if (value.length > maxBatch) return invalid(undefined, `a batch holds at most ${maxBatch} messages`)
  return { _tag: "Batch", members: value.map(parse) }
}

const json = (value: unknown): string => {
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) throw new TypeError("The value has no JSON form")
  return text
}

const encodeOne = (message: Message): string => {
  switch (message._tag) {
    case "Success": {
      const result = message.result instanceof Encoded ? message.result.text : json(message.result)
      return `{"jsonrpc":"2.0","id":${json(message.id)},"result":${result}}`
    }
    case "Failure": {
      const id = message.id === undefined ? "" : `"id":${json(message.id)},`
      return `{"jsonrpc":"2.0",${id}"error":${json(message.error)}}`
    }
    case "Request": {
      const params = message.params === undefined ? "" : `,"params":${json(message.params)}`
      return `{"jsonrpc":"2.0","id":${json(message.id)},"method":${json(message.method)}${params}}`
    }
    case "Notification": {
      const params = message.params === undefined ? "" : `,"params":${json(message.params)}`
      return `{"jsonrpc":"2.0","method":${json(message.method)}${params}}`
    }
  }
}

/**
 * Writes a message as JSON text without a line break. Throws, as `JSON.stringify` does, a `TypeError` when a value has no JSON form
 * (a cycle, a `BigInt`, a `toJSON` that gives nothing) and a `RangeError` when it nests too deep for the stack; what a `toJSON` or
 * a getter throws comes through.
 *
 * A failure without an id is written without the member, as 2025-11-25 and later have it. Older schemas require one there and
 * allow no `null`, so that no spelling satisfies them.
 */
export const encode = (message: Outbound): string =>
  message._tag === "Batch" ? `[${(message.texts ?? message.members.map(encodeOne)).join(",")}]` : encodeOne(message)

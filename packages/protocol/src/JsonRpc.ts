/**
 * JSON-RPC 2.0 messages, as the Model Context Protocol uses them.
 *
 * {@link parse} and {@link parseText} do not throw. They return a message, or an {@link Invalid} with the error to send
 * back and the id, as far as it could be read. Unknown members are ignored.
 *
 * @example
 * const text = JsonRpc.encode(JsonRpc.request(1, "tools/call", { name: "add" }))
 * const inbound = JsonRpc.parseText(text)
 */
import * as Json from "./Json.ts"

/**
 * The id of a request: a string or an integer, never `null`. Integers beyond 2^53 - 1 lose precision and are refused.
 */
export type Id = string | number

/** Any JSON object. */
export interface JsonObject {
  readonly [key: string]: unknown
}

/** A request: the receiver must respond. */
export interface Request {
  readonly _tag: "Request"
  readonly id: Id
  readonly method: string
  readonly params: JsonObject | undefined
}

/** A notification: the receiver must not respond. */
export interface Notification {
  readonly _tag: "Notification"
  readonly method: string
  readonly params: JsonObject | undefined
}

/** The response to a request that succeeded. */
export interface Success {
  readonly _tag: "Success"
  readonly id: Id
  readonly result: JsonObject | Encoded
}

/** The response to a request that failed, or to a message whose id could not be read. */
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
  /** The HTTP response, if it is not 200. Not enumerable, so it is never a part of the message. */
  readonly http?: HttpError | undefined
}

/** The HTTP status and the headers of an error response, where the transport is HTTP and nothing was sent before. */
export interface HttpError {
  readonly status: number
  readonly headers?: { readonly [name: string]: string } | undefined
}

/** One JSON-RPC message. */
export type Message = Request | Notification | Success | Failure

/** A value that is not a message, with the error to send back. */
export interface Invalid {
  readonly _tag: "Invalid"
  /**
   * Whether the value looks like a response (it has a result or an error, and no method). Never respond to it; its
   * request, if `id` names one, fails.
   */
  readonly answer: boolean
  /** Whether the value looks like a notification (it has a method and no id). Never respond to it. */
  readonly notification?: boolean | undefined
  /** The id, if it could be read. */
  readonly id: Id | undefined
  readonly error: ErrorObject
}

/** Several messages in one array. Only revision 2025-03-26 allows batches. */
export interface Batch<M = Message> {
  readonly _tag: "Batch"
  readonly members: ReadonlyArray<M>
  /** The members as JSON texts, if they are encoded already: `encode` then writes these, and does not read `members`. */
  readonly texts?: ReadonlyArray<string> | undefined
}

/** A value that a transport received. */
export type Inbound = Message | Invalid | Batch<Message | Invalid>

/** A value that a transport can send. */
export type Outbound = Message | Batch

/**
 * A result that is JSON text already. Use it for a result that is sent many times, such as a list that is serialized
 * once per change. The text must be a JSON object without line breaks, which is not checked. A surrogate without a
 * partner becomes U+FFFD, as {@link encode} does.
 */
export class Encoded {
  readonly text: string
  constructor(text: string) {
    this.text = Json.wellFormed(text)
  }
}

/**
 * Makes a request.
 *
 * @example
 * JsonRpc.request(1, "tools/call", { name: "add", arguments: { a: 1, b: 2 } })
 */
export const request = (id: Id, method: string, params?: JsonObject): Request => ({
  _tag: "Request",
  id,
  method,
  params
})

/**
 * Makes a notification.
 *
 * @example
 * JsonRpc.notification("notifications/progress", { progressToken: 1, progress: 0.5 })
 */
export const notification = (method: string, params?: JsonObject): Notification => ({
  _tag: "Notification",
  method,
  params
})

/** Makes the response to a request that succeeded. */
export const success = (id: Id, result: JsonObject | Encoded): Success => ({ _tag: "Success", id, result })

/**
 * Makes the response to a request that failed. `id` is `undefined` where the id of the request could not be read.
 * `McpError.toErrorObject` makes the error.
 */
export const failure = (id: Id | undefined, error: ErrorObject): Failure => ({ _tag: "Failure", id, error })

/** Whether the value is a valid id of a request. */
export const isId = (value: unknown): value is Id => typeof value === "string" || Number.isSafeInteger(value)

const digits = /^(?:0|[1-9]\d{0,15})$/

/**
 * The id of a request of this side, as a peer repeats it. Requests of Skein have integers as ids, and some peers send
 * them back as text: a text of digits is read as its number.
 *
 * @example
 * JsonRpc.ownId("7") // 7
 */
export const ownId = <A>(id: A): A | number => typeof id === "string" && digits.test(id) ? Number(id) : id

/** Whether the value is a JSON object: neither `null` nor an array. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Whether a value stays the same when it is written as JSON and read again. A member that is `undefined` is left out, and
 * does not count.
 */
export const isJson = (value: unknown): boolean => {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true
  if (typeof value === "number") return Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isJson)
  if (!isObject(value) || ![Object.prototype, null].includes(Object.getPrototypeOf(value))) return false
  return Object.values(value).every((member) => member === undefined || isJson(member))
}

const invalid = (id: unknown, message: string, answer = false): Invalid => ({
  _tag: "Invalid",
  answer,
  id: isId(id) ? id : undefined,
  error: { code: -32600, message: `Invalid Request: ${message}` }
})

/**
 * Reads a JSON value as one message.
 *
 * A `method`, an `error` or `params` of `null` count as absent, because some peers write every member that they define.
 * A `result` of `null` without an error is an empty result: some servers answer so to `ping` and `logging/setLevel`. An
 * `id` of `null` in an error response counts as absent too: JSON-RPC requires it where the id of the request could
 * not be read. In a response with both a result and an error, the error counts.
 */
export const parse = (value: unknown): Message | Invalid => {
  if (!isObject(value)) return invalid(undefined, "a message must be a JSON object")
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
      const problem = invalid(id, "\"params\" must be an object")
      return id === undefined ? { ...problem, notification: true } : problem
    }
    if (id === undefined) return { _tag: "Notification", method, params }
    if (!isId(id)) return invalid(id, "\"id\" must be a string or an integer")
    return { _tag: "Request", id, method, params }
  }
  if (error !== undefined && error !== null) {
    if (id !== undefined && id !== null && !isId(id)) return invalid(id, "\"id\" must be a string or an integer", true)
    if (!isObject(error) || !Number.isInteger(error["code"]) || typeof error["message"] !== "string") {
      return invalid(id, "\"error\" must have an integer \"code\" and a string \"message\"", true)
    }
    const { code, message, data } = error as unknown as ErrorObject
    return {
      _tag: "Failure",
      id: id ?? undefined,
      error: data === undefined ? { code, message } : { code, message, data }
    }
  }
  if (result === undefined) return invalid(id, "a message must have a \"method\", a \"result\" or an \"error\"", answer)
  if (!isId(id)) return invalid(id, "\"id\" must be a string or an integer", true)
  if (result === null) return { _tag: "Success", id, result: {} }
  if (!isObject(result)) return invalid(id, "\"result\" must be an object", true)
  return { _tag: "Success", id, result }
}

/**
 * Reads JSON text: one message, or an array as a {@link Batch} whose members are read one by one. Numbers that JavaScript
 * rounds are remembered: {@link encode} writes them as they were (see `Json`).
 *
 * An array of more than `maxBatch` members, 10,000 by default, is one {@link Invalid}: otherwise a few bytes per member
 * would cost a message or an error object each.
 */
export const parseText = (text: string, maxBatch = 10_000): Inbound => {
  let value: unknown
  try {
    value = Json.parse(text)
  } catch {
    return {
      _tag: "Invalid",
      answer: false,
      id: undefined,
      error: { code: -32700, message: "Parse error: not valid JSON" }
    }
  }
  if (!Array.isArray(value)) return parse(value)
  if (value.length === 0) return invalid(undefined, "a batch must have at least one message")
  if (value.length > maxBatch) return invalid(undefined, `a batch must have at most ${maxBatch} messages`)
  return { _tag: "Batch", members: value.map(parse) }
}

const json = (value: unknown): string => {
  const text = Json.stringify(value)
  if (text === undefined) throw new TypeError("the value has no JSON form")
  return text
}

/** An id is written exactly, also if it is not well formed: the peers compare those of a request and its response. */
const idOf = (id: Id): string => JSON.stringify(id)

const encodeOne = (message: Message): string => {
  switch (message._tag) {
    case "Success": {
      const result = message.result instanceof Encoded ? message.result.text : json(message.result)
      return `{"jsonrpc":"2.0","id":${idOf(message.id)},"result":${result}}`
    }
    case "Failure": {
      const id = message.id === undefined ? "" : `"id":${idOf(message.id)},`
      return `{"jsonrpc":"2.0",${id}"error":${json(message.error)}}`
    }
    case "Request": {
      const params = message.params === undefined ? "" : `,"params":${json(message.params)}`
      return `{"jsonrpc":"2.0","id":${idOf(message.id)},"method":${json(message.method)}${params}}`
    }
    case "Notification": {
      const params = message.params === undefined ? "" : `,"params":${json(message.params)}`
      return `{"jsonrpc":"2.0","method":${json(message.method)}${params}}`
    }
  }
}

/**
 * Writes a message as JSON text without line breaks. The text is well-formed Unicode: a surrogate without a partner
 * becomes U+FFFD, since peers in other languages refuse a message that contains its escape (RFC 8259, 8.2). Only ids are
 * written as they are.
 *
 * Throws as `JSON.stringify` does: a `TypeError` for a value without a JSON form (a cycle, a `bigint`, a `toJSON` that
 * returns `undefined`), a `RangeError` for a value nested deeper than the stack, and any error of a `toJSON` or a
 * getter.
 *
 * A failure without an id is written without the member `id`, as 2025-11-25 and later specify. The schemas of older
 * revisions require an id and do not allow `null`, so no form conforms to them.
 */
export const encode = (message: Outbound): string =>
  message._tag === "Batch" ? `[${(message.texts ?? message.members.map(encodeOne)).join(",")}]` : encodeOne(message)

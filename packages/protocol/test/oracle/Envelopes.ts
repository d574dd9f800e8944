/** The official definitions that are JSON-RPC messages. `JsonRpc` reads and writes them. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { RequestId } from "@skein/protocol/Message"
import { AnyObject } from "@skein/protocol/Primitive"
import { ErrorObject } from "@skein/protocol/Task"
import type { Source } from "./Messages.ts"

/** A schema to generate the envelope from, and the functions that read and write it. */
export interface Envelope {
  readonly schema: Schema.Codec<unknown>
  readonly read: (raw: unknown) => Result.Result<unknown, string>
  readonly write: (value: unknown) => unknown
}

type Tag = JsonRpc.Message["_tag"]

const jsonrpc = Schema.Literal("2.0")
const params = Schema.optionalKey(AnyObject)
const request = Schema.Struct({ jsonrpc, id: RequestId, method: Schema.String, params })
const notification = Schema.Struct({ jsonrpc, method: Schema.String, params })
const success = Schema.Struct({
  jsonrpc,
  id: RequestId,
  // Required in the newest revision, and an unknown member in older ones.
  result: Schema.Struct({ resultType: Schema.String, value: Schema.optionalKey(Schema.String) })
})
const failure = Schema.Struct({ jsonrpc, id: RequestId, error: ErrorObject })

/**
 * Reads one message of one of the kinds. Returns the raw value, which has the members that JSON-RPC does not define.
 */
const readOne = (tags: ReadonlyArray<Tag>, raw: unknown): Result.Result<unknown, string> => {
  const message = JsonRpc.parse(raw)
  if (message._tag === "Invalid") return Result.fail(message.error.message)
  return tags.includes(message._tag)
    ? Result.succeed(raw)
    : Result.fail(`Expected ${tags.join(" or ")}, got ${message._tag}`)
}

const known = ["jsonrpc", "id", "method", "params", "result", "error"]
const knownOfError = ["code", "message", "data"]

const others = (value: JsonRpc.JsonObject, names: ReadonlyArray<string>): JsonRpc.JsonObject =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)))

/** Writes one message with `JsonRpc`, and adds the members that JSON-RPC does not define. */
const writeOne = (value: unknown): unknown => {
  const message = JsonRpc.parse(value)
  if (message._tag === "Invalid" || !JsonRpc.isObject(value)) return value
  const written = JSON.parse(JsonRpc.encode(message)) as JsonRpc.JsonObject
  const error = value["error"]
  return {
    ...others(value, known),
    ...written,
    ...(JsonRpc.isObject(error) ? { error: { ...others(error, knownOfError), ...written["error"] as object } } : {})
  }
}

const one = (schema: Schema.Codec<unknown>, ...tags: ReadonlyArray<Tag>): Envelope => ({
  schema,
  read: (raw) => readOne(tags, raw),
  write: writeOne
})

const batch = ({ schema, read, write }: Envelope): Envelope => ({
  schema: Schema.Array(schema),
  read: (raw) => {
    if (!Array.isArray(raw)) return Result.fail("a batch must be an array")
    const failure = raw.map(read).find(Result.isFailure)
    return failure ?? Result.succeed(raw)
  },
  write: (value) => Array.isArray(value) ? value.map(write) : value
})

const either = (first: Envelope, second: Envelope): Envelope => ({
  schema: Schema.Union([first.schema, second.schema]),
  read: (raw) => Result.orElse(first.read(raw), () => second.read(raw)),
  write: (value) => Result.isSuccess(first.read(value)) ? first.write(value) : second.write(value)
})

/** Returns the envelopes of a source, by their official names. */
export const envelopes = (source: Source): Iterable<readonly [name: string, envelope: Envelope]> => {
  const requests = one(request, "Request")
  const notifications = one(notification, "Notification")
  const shared = [["JSONRPCRequest", requests], ["JSONRPCNotification", notifications]] as const
  if (source === "tasks") return shared
  const successes = one(success, "Success")
  const failures = one(failure, "Failure")
  const responses = one(Schema.Union([success, failure]), "Success", "Failure")
  const message = one(
    Schema.Union([request, notification, success, failure]),
    "Request",
    "Notification",
    "Success",
    "Failure"
  )
  if (source >= "2025-11-25") {
    return [
      ...shared,
      ["JSONRPCResultResponse", successes],
      ["JSONRPCErrorResponse", failures],
      ["JSONRPCResponse", responses],
      ["JSONRPCMessage", message]
    ]
  }
  const older = [...shared, ["JSONRPCResponse", successes], ["JSONRPCError", failures]] as const
  if (source !== "2025-03-26") return [...older, ["JSONRPCMessage", message]]
  const batchRequest = batch(one(Schema.Union([request, notification]), "Request", "Notification"))
  const batchResponse = batch(responses)
  return [
    ...older,
    ["JSONRPCBatchRequest", batchRequest],
    ["JSONRPCBatchResponse", batchResponse],
    ["JSONRPCMessage", either(message, either(batchRequest, batchResponse))]
  ]
}

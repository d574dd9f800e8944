/** The JSON-RPC envelopes among the official definitions: read and written by `JsonRpc`. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { AnyObject, RequestId } from "../Common.ts"
import * as JsonRpc from "../JsonRpc.ts"
import { ErrorObject } from "../Task.ts"
import type { Source } from "./source.ts"

/** An envelope: what generates it, and how it is read and written. */
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
  // A `resultType` is of no harm to older revisions, and required of any result in the newest.
  result: Schema.Struct({ resultType: Schema.String, value: Schema.optionalKey(Schema.String) })
})
const failure = Schema.Struct({ jsonrpc, id: RequestId, error: ErrorObject })

/** One message, which must be of one of the kinds. The envelope members that JSON-RPC does not know are kept beside it. */
const readOne = (tags: ReadonlyArray<Tag>, raw: unknown): Result.Result<unknown, string> => {
  const message = JsonRpc.parse(raw)
  if (message._tag === "Invalid") return Result.fail(message.error.message)
  return tags.includes(message._tag)
    ? Result.succeed(raw)
    : Result.fail(`a ${message._tag} where one of ${tags} was meant`)
}

const known = ["jsonrpc", "id", "method", "params", "result", "error"]
const knownOfError = ["code", "message", "data"]

const others = (value: JsonRpc.JsonObject, names: ReadonlyArray<string>): JsonRpc.JsonObject =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)))

/** What `JsonRpc` writes of the message, with the members that it does not know put back. */
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
    if (!Array.isArray(raw)) return Result.fail("a batch is an array")
    const bad = raw.map(read).find(Result.isFailure)
    return bad ?? Result.succeed(raw)
  },
  write: (value) => Array.isArray(value) ? value.map(write) : value
})

const either = (first: Envelope, second: Envelope): Envelope => ({
  schema: Schema.Union([first.schema, second.schema]),
  read: (raw) => Result.orElse(first.read(raw), () => second.read(raw)),
  write: (value) => Result.isSuccess(first.read(value)) ? first.write(value) : second.write(value)
})

/** The envelopes of a source. */
export const of = (source: Source): Iterable<readonly [name: string, envelope: Envelope]> => {
  const requests = one(request, "Request")
  const notifications = one(notification, "Notification")
  const shared = [["JSONRPCRequest", requests], ["JSONRPCNotification", notifications]] as const
  if (source === "tasks") return shared
  const successes = one(success, "Success")
  const failures = one(failure, "Failure")
  const answers = one(Schema.Union([success, failure]), "Success", "Failure")
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
      ["JSONRPCResponse", answers],
      ["JSONRPCMessage", message]
    ]
  }
  const older = [...shared, ["JSONRPCResponse", successes], ["JSONRPCError", failures]] as const
  if (source !== "2025-03-26") return [...older, ["JSONRPCMessage", message]]
  const asked = batch(one(Schema.Union([request, notification]), "Request", "Notification"))
  const answered = batch(answers)
  return [
    ...older,
    ["JSONRPCBatchRequest", asked],
    ["JSONRPCBatchResponse", answered],
    ["JSONRPCMessage", either(message, either(asked, answered))]
  ]
}

/**
 * Requests input from the client, in all revisions: validates and encodes the input request, sends it, and decodes the
 * response.
 */
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import { type CallOptions, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { InputError, type Reason } from "../../InputError.ts"
import { InOnce } from "./onceStore.ts"
import { sessionOf } from "../dispatch/session.ts"

/** Options of an input request that is sent as a task. */
export interface TaskOptions {
  /** How long the client should retain the task after its creation: the `timeout` of the input request by default. */
  readonly ttl?: Duration.Input | undefined
}

/** Options of an input request. */
export interface Options extends CallOptions {
  readonly task?: TaskOptions | undefined
}

/** An input request. */
export interface InputRequest<P, R> {
  readonly method: Method.RequestMethod<P, R>
  readonly params: P
  /** The capabilities that the client must declare for it, and has not declared. */
  readonly missing: (capabilities: JsonObject, revision: Revision) => JsonObject | undefined
  /** Why it is not valid, for any client. */
  readonly problem?: string | undefined
}

/** Fails with an `InputError`. */
export const refuse = (
  method: string,
  revision: Revision,
  reason: Reason,
  message: string,
  cause?: unknown
): Effect.Effect<never, InputError> => Effect.fail(new InputError({ reason, method, message, revision, cause }))

/** The `InputError` of a failed request: an error response of the client is `Rejected`, the other reasons keep their names. */
const reasons: { readonly [tag in RequestError["reason"]["_tag"]]: Reason } = {
  Closed: "Closed",
  Timeout: "TimedOut",
  LimitExceeded: "Limit",
  Unsupported: "Unsupported",
  InvalidResponse: "InvalidAnswer",
  MessageRejected: "Closed"
}

const toInputError = (error: McpError.McpError | RequestError, method: string, revision: Revision): InputError =>
  McpError.isMcpError(error)
    ? new InputError({
      reason: "Rejected",
      method,
      message: `The client rejected ${method}: ${error.message}`,
      revision,
      cause: error
    })
    : new InputError({
      reason: reasons[error.reason._tag],
      method,
      message: error.message,
      revision,
      cause: error
    })

/** Validates an input request, and encodes its params. */
const encode = <P, R>(
  { method, missing, params, problem }: InputRequest<P, R>,
  { caller: { capabilities, revision }, method: about }: RequestContext
): Effect.Effect<JsonObject, InputError> => {
  const { name } = method
  // "The server SHOULD NOT send requests other than pings and logging before receiving the `initialized` notification."
  if (about === Method.Initialize.name) {
    return refuse(name, revision, "Unsupported", `requests to the client are not available while handling ${about}`)
  }
  if (problem !== undefined) return refuse(name, revision, "InvalidQuestion", problem)
  if (Method.request(name, revision) === undefined && Method.inputRequest(name, revision) === undefined) {
    return refuse(name, revision, "Unsupported", `${revision} has no ${name}`)
  }
  const written = Codec.encodeParams(method, revision, params)
  if (Result.isFailure(written)) return refuse(name, revision, "Unsupported", written.failure.message)
  const lacking = missing(capabilities, revision)
  if (lacking !== undefined) {
    const message = `The client has not declared the capabilities for ${name}: ${JSON.stringify(lacking)}`
    return Effect.fail(
      new InputError({ reason: "MissingCapability", method: name, message, revision, missing: lacking })
    )
  }
  const read = Codec.decodeParams(method, revision, written.success)
  return Result.isSuccess(read)
    ? Effect.succeed(written.success)
    : refuse(name, revision, "InvalidQuestion", `invalid ${name}: ${read.failure}`)
}

/**
 * Sends the input request as a task, if `options.task` is set and the client supports it. Its module is loaded on
 * demand.
 */
const asTask = (
  request: RequestContext,
  method: Method.AnyRequest,
  params: JsonObject,
  { task, timeout, ...options }: Options
): ReturnType<RequestContext["request"]> | undefined => {
  const { capabilities, revision } = request.caller
  if (task === undefined || revision !== "2025-11-25") return undefined
  // A task of this server has no session.
  const session = sessionOf(request.caller)
  if (session === undefined || !Method.has(capabilities, Method.taskCapability(method), revision)) return undefined
  const limit = timeout ?? task.ttl ?? request.inputTimeout ?? Infinity
  return Effect.flatMap(
    Effect.promise(() => import("../legacyTasks/requestInputAsTask.ts")),
    ({ ask }) => ask(request, session, method, params, limit, task.ttl, options)
  )
}

/**
 * Sends an input request and decodes the response. One that a person answers gets a longer timeout, unless it has its
 * own.
 */
export const ask = <P, R>(
  input: InputRequest<P, R>,
  options: Options | undefined,
  byPerson = false
): Effect.Effect<R, InputError, McpRequest> =>
  Effect.withFiber((fiber) => {
    const request = Context.getUnsafe(fiber.context, McpRequest)
    const { method } = input
    const { caller: { revision } } = request
    const within = fiber.getRef(InOnce).at(-1)
    if (within !== undefined) {
      return Effect.die(
        new Error(`${method.name} inside once(${JSON.stringify(within)}): request input before or after it`)
      )
    }
    return Effect.flatMap(encode(input, request), (params) => {
      const sent = Object.keys(params).length === 0 ? undefined : params
      const timeout = options?.timeout ?? (byPerson ? request.inputTimeout : undefined)
      const timed = timeout === undefined ? options : { ...options, timeout }
      const asked = options?.task === undefined
        ? undefined
        : asTask(request, method as Method.AnyRequest, params, options)
      return Effect.matchEffect(asked ?? request.request(method.name, sent, timed), {
        onFailure: (error) => Effect.fail(toInputError(error, method.name, revision)),
        onSuccess: (answer) => {
          const result = Codec.decodeResult(method, revision, answer)
          return Result.isSuccess(result)
            ? Effect.succeed(result.success)
            : refuse(method.name, revision, "InvalidAnswer", `invalid response to ${method.name}: ${result.failure}`)
        }
      })
    })
  })

/**
 * One input request, in any revision: validates and encodes it, sends it to the client, and decodes the response.
 */
import * as Codec from "@skein/protocol/Codec"
import * as Json from "@skein/protocol/Json"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import { type CallOptions, McpRequest, type RequestContext, unavailable } from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as InputError from "../../InputError.ts"
import { InOnce } from "../base/onceStore.ts"
import { sessionOf } from "../base/session.ts"

/** Options of the task that an input request becomes, in 2025-11-25. */
export interface TaskOptions {
  /** How long the client should retain the task after its creation. The `timeout` of the input request by default. */
  readonly ttl?: Duration.Input | undefined
}

/** How an input request is sent. */
export interface Options extends CallOptions {
  readonly task?: TaskOptions | undefined
}

/** An input request. */
export interface InputRequest<P, R> {
  readonly method: Method.RequestMethod<P, R>
  readonly params: P
  /** Returns the capabilities that the client must declare and has not declared. */
  readonly missing: (capabilities: JsonObject, revision: Revision) => JsonObject | undefined
  /** Why no client may receive the input request, if it is invalid. */
  readonly problem?: string | undefined
}

/** Fails with an `InputError` of this reason. */
export const failInput = (
  method: string,
  revision: Revision,
  reason: InputError.Reason
): Effect.Effect<never, InputError.InputError> => Effect.fail(new InputError.InputError({ reason, method, revision }))

/** The reason that a failed request to the client has as an input request. */
const reasons = {
  Unsupported: InputError.Unsupported,
  Timeout: InputError.Timeout,
  LimitExceeded: InputError.LimitExceeded,
  InvalidResponse: InputError.InvalidResponse,
  Closed: InputError.Closed,
  MessageRejected: InputError.Closed
} as const

const toInputError = (
  error: McpError.McpError | RequestError,
  method: string,
  revision: Revision
): InputError.InputError => {
  const reason = McpError.isMcpError(error)
    ? new InputError.ProtocolError({ message: `The client refused ${method}: ${error.message}`, error })
    : new reasons[error.reason._tag]({ message: error.message, cause: error })
  return new InputError.InputError({ reason, method, revision })
}

/** Encodes the params of an input request, or fails with the reason why the client cannot receive it. */
const encode = <P, R>(
  { method, missing, params, problem }: InputRequest<P, R>,
  request: RequestContext,
  to: string | undefined
): Effect.Effect<JsonObject, InputError.InputError> => {
  const { name } = method
  const { capabilities, revision } = request.caller
  const unsupported = (message: string) => failInput(name, revision, new InputError.Unsupported({ message }))
  // "The server SHOULD NOT send requests other than pings and logging before receiving the `initialized` notification."
  if (request.method === Method.Initialize.name) return unsupported(unavailable(request, name))
  const wrong = problem ??
    (to === undefined || request.asksOthers
      ? undefined
      : `${name} has \`to\`, and only a task asks others than its caller`)
  if (wrong !== undefined) return failInput(name, revision, new InputError.InvalidRequest({ message: wrong }))
  if (Method.request(name, revision) === undefined && Method.inputRequest(name, revision) === undefined) {
    return unsupported(`${revision} does not have ${name}`)
  }
  const encoded = Codec.encodeParams(method, revision, params)
  if (Result.isFailure(encoded)) return unsupported(encoded.failure.message)
  // The client of another person answers it.
  const lacking = to === undefined ? missing(capabilities, revision) : undefined
  if (lacking !== undefined) {
    const message = `${name} needs a capability that the client has not declared: ${JSON.stringify(lacking)}`
    return failInput(name, revision, new InputError.MissingCapability({ message, capabilities: lacking }))
  }
  // Decoding finds the faults that the types of the params cannot express.
  const decoded = Codec.decodeParams(method, revision, encoded.success)
  return Result.isSuccess(decoded)
    ? Effect.succeed(encoded.success)
    : failInput(name, revision, new InputError.InvalidRequest({ message: `invalid ${name}: ${decoded.failure}` }))
}

/**
 * Sends the input request as a task if the options say so and the client supports it; otherwise returns `undefined`.
 * The module for it is imported on the first use.
 */
const requestAsTask = (
  request: RequestContext,
  method: Method.AnyRequest,
  params: JsonObject,
  { task, timeout, ...options }: Options
): ReturnType<RequestContext["request"]> | undefined => {
  const { capabilities, revision } = request.caller
  if (task === undefined || revision !== "2025-11-25") return undefined
  // A handler that runs in a task of this server has no session.
  const session = sessionOf(request.caller)
  if (session === undefined || !Method.has(capabilities, Method.taskCapability(method), revision)) return undefined
  const limit = timeout ?? task.ttl ?? request.inputTimeout ?? Infinity
  request.exchange.markAsked()
  return Effect.flatMap(
    Effect.promise(() => import("./legacyTasks/requestInputAsTask.ts")),
    ({ ask }) => ask(request, session, method, params, limit, task.ttl, options)
  )
}

/**
 * Sends an input request and decodes the response. With `byPerson` and without a `timeout` in the options, it waits as
 * long as the request allows for an answer of a person.
 */
export const requestInput = <P, R>(
  input: InputRequest<P, R>,
  options: Options | undefined,
  byPerson = false
): Effect.Effect<R, InputError.InputError, McpRequest> =>
  Effect.withFiber((fiber) => {
    const request = Context.getUnsafe(fiber.context, McpRequest)
    const { method } = input
    const { caller: { revision } } = request
    const within = fiber.getRef(InOnce).at(-1)
    if (within !== undefined) {
      return Effect.die(
        new Error(`${method.name} is not allowed inside of once(${JSON.stringify(within)}): send it before or after`)
      )
    }
    return Effect.flatMap(encode(input, request, options?.to), (params) => {
      const sent = Object.keys(params).length === 0 ? undefined : params
      const timeout = options?.timeout ?? (byPerson ? request.inputTimeout : undefined)
      const timed = timeout === undefined ? options : { ...options, timeout }
      const task = options?.task === undefined
        ? undefined
        : requestAsTask(request, method as Method.AnyRequest, params, options)
      return Effect.matchEffect(task ?? request.request(method.name, sent, timed), {
        onFailure: (error) => Effect.fail(toInputError(error, method.name, revision)),
        onSuccess: (answer) => {
          const invalid = (why: string) => {
            const message = `invalid response to ${method.name}: ${why}`
            return failInput(method.name, revision, new InputError.InvalidResponse({ message }))
          }
          // The content of a form, or the arguments of the tool calls of a model.
          const rounded = Json.integerIn(answer, "content")
          if (rounded !== undefined) return invalid(`${rounded.path} ${Json.problem(rounded)}`)
          const result = Codec.decodeResult(method, revision, answer, [])
          return Result.isSuccess(result) ? Effect.succeed(result.success) : invalid(result.failure)
        }
      })
    })
  })

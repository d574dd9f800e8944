/**
 * One question to the client, in whatever era: it is checked, written, asked and its answer read.
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

/** How a question is asked as a task. */
export interface TaskOptions {
  /** How long the client should keep the task from its creation: the `timeout` of the question by default. */
  readonly ttl?: Duration.Input | undefined
}

/** How a question may be asked. */
export interface Options extends CallOptions {
  readonly task?: TaskOptions | undefined
}

/** What is asked. */
export interface InputRequest<P, R> {
  readonly method: Method.RequestMethod<P, R>
  readonly params: P
  /** What the client must have declared, and has not. */
  readonly missing: (capabilities: JsonObject, revision: Revision) => JsonObject | undefined
  /** Why it may not be asked, whoever is asked. */
  readonly problem?: string | undefined
}

/** Refuses a question, with one line that says why. */
export const failInput = (
  method: string,
  revision: Revision,
  reason: Reason,
  message: string,
  cause?: unknown
): Effect.Effect<never, InputError> => Effect.fail(new InputError({ reason, method, message, revision, cause }))

/** "Limit" and so on mean the same here; what the client says itself is a reason of its own. */
const toInputError = (error: McpError.McpError | RequestError, method: string, revision: Revision): InputError =>
  McpError.isMcpError(error)
    ? new InputError({
      reason: "Rejected",
      method,
      message: `The client refused ${method}: ${error.message}`,
      revision,
      cause: error
    })
    : new InputError({
      reason: error.reason === "Refused" ? "Closed" : error.reason,
      method,
      message: error.message,
      revision,
      cause: error
    })

/** What is the matter with a question to a client, or its params as they are written. */
const write = <P, R>(
  { method, missing, params, problem }: InputRequest<P, R>,
  { caller: { capabilities, revision }, method: about }: RequestContext
): Effect.Effect<JsonObject, InputError> => {
  const { name } = method
  // "The server SHOULD NOT send requests other than pings and logging before receiving the `initialized` notification."
  if (about === Method.Initialize.name) {
    return failInput(name, revision, "Unsupported", `Nobody can be asked about ${about}`)
  }
  if (problem !== undefined) return failInput(name, revision, "InvalidQuestion", problem)
  if (Method.request(name, revision) === undefined && Method.inputRequest(name, revision) === undefined) {
    return failInput(name, revision, "Unsupported", `${revision} has no ${name}`)
  }
  const written = Codec.encodeParams(method, revision, params)
  if (Result.isFailure(written)) return failInput(name, revision, "Unsupported", written.failure.message)
  const lacking = missing(capabilities, revision)
  if (lacking !== undefined) {
    const message = `The client has not declared what ${name} needs: ${JSON.stringify(lacking)}`
    return Effect.fail(
      new InputError({ reason: "MissingCapability", method: name, message, revision, missing: lacking })
    )
  }
  const read = Codec.decodeParams(method, revision, written.success)
  return Result.isSuccess(read)
    ? Effect.succeed(written.success)
    : failInput(name, revision, "InvalidQuestion", `${name} cannot be asked so: ${read.failure}`)
}

/** Asks as a task, if that is wished and the client takes it. Nothing of it is loaded before. */
const requestAsTask = (
  exchange: RequestContext,
  method: Method.AnyRequest,
  params: JsonObject,
  { task, timeout, ...options }: Options
): ReturnType<RequestContext["request"]> | undefined => {
  const { capabilities, revision } = exchange.caller
  if (task === undefined || revision !== "2025-11-25") return undefined
  // There is none where what asks is a task of this side's own.
  const session = sessionOf(exchange.caller)
  if (session === undefined || !Method.has(capabilities, Method.taskCapability(method), revision)) return undefined
  const atMost = timeout ?? task.ttl ?? exchange.patience ?? Infinity
  return Effect.flatMap(
    Effect.promise(() => import("../legacyTasks/requestInputAsTask.ts")),
    ({ ask }) => ask(exchange, session, method, params, atMost, task.ttl, options)
  )
}

/** Asks, and reads the answer; with the patience that a question to a human needs, where it says nothing of its own. */
export const requestInput = <P, R>(
  question: InputRequest<P, R>,
  options: Options | undefined,
  human = false
): Effect.Effect<R, InputError, McpRequest> =>
  Effect.withFiber((fiber) => {
    const exchange = Context.getUnsafe(fiber.context, McpRequest)
    const { method } = question
    const { caller: { revision } } = exchange
    const within = fiber.getRef(InOnce).at(-1)
    if (within !== undefined) {
      return Effect.die(
        new Error(`${method.name} inside of once(${JSON.stringify(within)}): ask before it or after it`)
      )
    }
    return Effect.flatMap(write(question, exchange), (params) => {
      const given = Object.keys(params).length === 0 ? undefined : params
      const timeout = options?.timeout ?? (human ? exchange.patience : undefined)
      const timed = timeout === undefined ? options : { ...options, timeout }
      const asked = options?.task === undefined
        ? undefined
        : requestAsTask(exchange, method as Method.AnyRequest, params, options)
      return Effect.matchEffect(asked ?? exchange.request(method.name, given, timed), {
        onFailure: (error) => Effect.fail(toInputError(error, method.name, revision)),
        onSuccess: (answer) => {
          const result = Codec.decodeResult(method, revision, answer)
          return Result.isSuccess(result)
            ? Effect.succeed(result.success)
            : failInput(
              method.name,
              revision,
              "InvalidAnswer",
              `The answer to ${method.name} is none: ${result.failure}`
            )
        }
      })
    })
  })

/**
 * Sends input requests as tasks (2025-11-25, tasks: the duties of a requestor). The client creates a task and returns it
 * immediately. The server polls the task and fetches its result later, so that no request is open while a user thinks.
 */
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { McpError } from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { CallOptions, RequestContext } from "@skein/runtime/RequestContext"
import { InvalidResponse, RequestError, Timeout } from "@skein/runtime/RequestError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ServerSession } from "../../base/session.ts"

type Response<A> = Effect.Effect<A, McpError | RequestError>

/** The members of a task that the server uses. */
interface State {
  readonly taskId: string
  readonly status: string
  readonly pollIntervalMs?: number | undefined
}

const revision = "2025-11-25"

// Milliseconds between two polls: the default, and the bounds for the interval that a client suggests.
const pollInterval = 1_000
const minPollInterval = 100
const maxPollInterval = 60_000

const invalid = (method: string, why: string): RequestError =>
  new RequestError({ reason: new InvalidResponse({ message: `invalid response to ${method}: ${why}` }), method })

const getTask = (request: RequestContext, taskId: string): Response<State> => {
  const { name } = Method.LegacyGetTask
  return Effect.flatMap(request.request(name, { taskId }), (raw) => {
    const read = Codec.decodeResult(Method.LegacyGetTask, revision, raw, [])
    return Result.isSuccess(read) ? Effect.succeed(read.success) : Effect.fail(invalid(name, read.failure))
  })
}

/** Polls the task until its result can be fetched. A poll that times out is repeated. */
const awaitTask = Effect.fnUntraced(
  function*(request: RequestContext, task: State) {
    let state = task
    while (state.status === "working") {
      const suggested = state.pollIntervalMs ?? pollInterval
      yield* Effect.sleep(Math.min(Math.max(minPollInterval, suggested), maxPollInterval))
      state = yield* Effect.catchIf(
        getTask(request, task.taskId),
        (error) => error instanceof RequestError && error.reason._tag === "Timeout",
        () => Effect.succeed(state)
      )
    }
    // "When the requestor encounters the `input_required` status, it SHOULD preemptively call `tasks/result`."
    return yield* request.request(Method.LegacyGetTaskPayload.name, { taskId: task.taskId }, {
      timeout: Infinity,
      maxTimeout: Infinity
    })
  }
)

/**
 * Cancels the task. The session sends the cancellation, since the request may have ended, and nothing waits for the
 * response.
 */
const cancel = ({ peer }: ServerSession, { taskId }: State): Effect.Effect<void> =>
  Effect.asVoid(Effect.forkIn(
    Effect.ignore(peer.request(Method.LegacyCancelTask.name, { taskId })),
    peer.scope,
    { startImmediately: true }
  ))

/**
 * Sends the input request as a task, and returns the response that the client would have sent without a task. It takes
 * at most `timeout`, which is also how long the client should retain the task, unless `ttl` is given. The
 * task is cancelled on a timeout and on an interruption.
 */
export const ask = (
  request: RequestContext,
  session: ServerSession,
  method: Method.AnyRequest,
  params: JsonObject,
  timeout: Duration.Input,
  ttl: Duration.Input | undefined,
  options: CallOptions
): Response<JsonObject> => {
  const { name } = method
  const ttlMillis = Duration.toMillis(ttl === undefined ? timeout : ttl)
  const augmented = { ...params, task: Number.isFinite(ttlMillis) ? { ttl: Math.round(ttlMillis) } : {} }
  // The timeouts of the task do not apply to the response that creates it.
  const { timeout: _, maxTimeout: __, ...rest } = options
  return Effect.flatMap(request.request(name, augmented, rest), (raw): Response<JsonObject> => {
    const created = Codec.decodeAnswer(method, revision, raw, [])
    if (Result.isFailure(created)) return Effect.fail(invalid(name, created.failure))
    // The client has answered without a task.
    if (created.success._tag !== "LegacyTask") return Effect.succeed(raw)
    const { task } = created.success.result
    const message = `No response to ${name} within ${Duration.toMillis(timeout)} ms (its task)`
    return Effect.timeoutOrElse(awaitTask(request, task), {
      duration: timeout,
      orElse: () =>
        Effect.andThen(
          cancel(session, task),
          Effect.fail(new RequestError({ reason: new Timeout({ message }), method: name }))
        )
    }).pipe(Effect.onInterrupt(() => cancel(session, task)))
  })
}

/**
 * A question that is asked as a task (2025-11-25, tasks: what a requestor does): the client answers at once with a task, and what
 * becomes of that is asked for later, so that no request is open while a user thinks.
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
import type { ServerSession } from "../dispatch/session.ts"

type Asked<A> = Effect.Effect<A, McpError | RequestError>

/** The part of a task that matters here. */
interface State {
  readonly taskId: string
  readonly status: string
  readonly pollIntervalMs?: number | undefined
}

const revision = "2025-11-25"

// A client that does not say how long to wait between two looks, and one that says next to nothing.
const pollInterval = 1_000
const leastInterval = 100

const invalid = (method: string, why: string): RequestError =>
  new RequestError({ reason: new InvalidResponse({ message: `The answer to ${method} is none: ${why}` }), method })

const look = (exchange: RequestContext, taskId: string): Asked<State> => {
  const { name } = Method.LegacyGetTask
  return Effect.flatMap(exchange.request(name, { taskId }), (raw) => {
    const read = Codec.decodeResult(Method.LegacyGetTask, revision, raw)
    return Result.isSuccess(read) ? Effect.succeed(read.success) : Effect.fail(invalid(name, read.failure))
  })
}

/** Looks at the task until there is something to fetch. A look that is not answered in time says nothing: the next one may be. */
const follow = (exchange: RequestContext, task: State): Asked<JsonObject> =>
  Effect.gen(function*() {
    let state = task
    while (state.status === "working") {
      yield* Effect.sleep(Math.max(leastInterval, state.pollIntervalMs ?? pollInterval))
      state = yield* Effect.catchIf(
        look(exchange, task.taskId),
        (error) => error instanceof RequestError && error.reason._tag === "Timeout",
        () => Effect.succeed(state)
      )
    }
    // "When the requestor encounters the `input_required` status, it SHOULD preemptively call `tasks/result`."
    return yield* exchange.request(Method.LegacyGetTaskPayload.name, { taskId: task.taskId }, {
      timeout: Infinity,
      maxTimeout: Infinity
    })
  })

/** The task is not wanted any more. The request may be over by now, so that it is the session that says so; nobody waits for it. */
const cancel = ({ peer }: ServerSession, { taskId }: State): Effect.Effect<void> =>
  Effect.asVoid(Effect.forkIn(
    Effect.ignore(peer.request(Method.LegacyCancelTask.name, { taskId })),
    peer.scope,
    { startImmediately: true }
  ))

/**
 * Asks, and gives the answer as the question itself would have had it. It takes no longer than `timeout`, which is also what the
 * client is asked to keep the task for, unless `ttl` says otherwise. The task is cancelled when nobody waits for it any more.
 */
export const ask = (
  exchange: RequestContext,
  session: ServerSession,
  method: Method.AnyRequest,
  params: JsonObject,
  timeout: Duration.Input,
  ttl: Duration.Input | undefined,
  options: CallOptions
): Asked<JsonObject> => {
  const { name } = method
  const kept = Duration.toMillis(ttl ?? timeout)
  const augmented = { ...params, task: Number.isFinite(kept) ? { ttl: Math.round(kept) } : {} }
  // How long the answer takes is no matter of how long the task does.
  const { timeout: _, maxTimeout: __, ...rest } = options
  return Effect.flatMap(exchange.request(name, augmented, rest), (raw): Asked<JsonObject> => {
    const created = Codec.decodeAnswer(method, revision, raw)
    if (Result.isFailure(created)) return Effect.fail(invalid(name, created.failure))
    // It has answered at once.
    if (created.success._tag !== "LegacyTask") return Effect.succeed(raw)
    const { task } = created.success.result
    const message = `No answer to ${name} within ${Duration.toMillis(timeout)} ms (its task)`
    return Effect.timeoutOrElse(follow(exchange, task), {
      duration: timeout,
      orElse: () =>
        Effect.andThen(
          cancel(session, task),
          Effect.fail(new RequestError({ reason: new Timeout({ message }), method: name }))
        )
    }).pipe(Effect.onInterrupt(() => cancel(session, task)))
  })
}

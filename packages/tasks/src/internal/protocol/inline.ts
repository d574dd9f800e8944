/**
 * A call that waits for the result of its task: for clients that know nothing of tasks, or are not to get one.
 *
 * It says how far the task has come, and asks the task's questions as its own. A client that ends the call ends the task; a server
 * that stops does not. In the request era the call comes again with the answers: it keeps the task's id. Nobody else knows the task:
 * with its result it is forgotten.
 */
import type { ErrorObject, JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import type { ToolCall, ToolCallResult } from "@skein/server/Extension"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isFinal, type Question, type State } from "../../TaskState.ts"
import * as refused from "../engine/refused.ts"
import { abandon, type Face, type ModelTools, told } from "./taskService.ts"
import { can } from "./inputCapability.ts"
import * as patience from "./longPolling.ts"
import { Unbegun } from "./beforeTask.ts"
import * as wire from "./wire.ts"

/** What a round of the request era remembers the task under. */
const key = "@skein/tasks"

/** Begins the task of a call that is prepared, or finds the one that it has begun in a round before. */
const begin = (
  face: Face,
  call: ToolCall,
  args: JsonObject,
  tools: ModelTools | undefined
): Effect.Effect<string, McpError.McpError> => {
  const { request: exchange } = call
  const asked = tools === undefined ? exchange.caller : patience.answering(exchange.caller)
  const round = exchange.round ??= exchange.rounds?.(exchange)
  const begun = Effect.map(face.submit(call, args, undefined, asked), ({ id }) => id)
  return round === undefined ? begun : round.once(key, begun) as typeof begun
}

/** See the module's text. */
export const wait = (face: Face, call: ToolCall): ToolCallResult => {
  const { request: exchange } = call
  const tools = patience.toolsOf(face, call)
  return Effect.uninterruptibleMask((restore) =>
    // What prepares a task may ask, which nothing may that runs once: it runs in each round, and what it has asked is answered.
    Effect.flatMap(restore(face.prepare(call)), (args) => {
      if (args instanceof Unbegun) return Effect.succeed(args.result)
      // Once it may have begun, nothing but its id lets go of it.
      return Effect.flatMap(begin(face, call, args, tools), (id) => {
        const last = Effect.tap(watch(face, exchange, id, tools), () => told(face.engine.forget(id)))
        const ended = Effect.flatMap(last, wire.ended)
        const answer = tools === undefined ? ended : patience.within(face, tools, call, id, ended)
        return Effect.onInterrupt(restore(answer), () => left(face, exchange, id))
      })
    })
  )
}

/**
 * Interrupted for a round's questions, a call comes again; and who stops is this server, not its task, which goes on when a worker is
 * there. Otherwise nobody wants the result any more.
 */
const left = (face: Face, exchange: RequestContext, id: string): Effect.Effect<void> =>
  exchange.stopped || (exchange.instead !== undefined && !exchange.cancelled) ? Effect.void : abandon(face, id)

/** Waits for the end of a task, and is its client meanwhile. */
const watch = (
  face: Face,
  exchange: RequestContext,
  id: string,
  tools: ModelTools | undefined
): Effect.Effect<State, McpError.McpError> =>
  Effect.scoped(Effect.gen(function*() {
    const asking = new Map<string, Fiber.Fiber<void>>()
    const last = yield* told(
      Stream.runLast(Stream.tap(face.engine.watch(id), (state) => follow(face, exchange, asking, state, tools)))
    )
    if (Option.isSome(last) && isFinal(last.value)) return last.value
    return yield* Effect.fail(
      new McpError.McpError({ reason: "InternalError", message: "The task of this call is gone" })
    )
  }))

/** Reports progress, asks what is new, and leaves what is not wanted any more. */
const follow = (
  face: Face,
  exchange: RequestContext,
  asking: Map<string, Fiber.Fiber<void>>,
  state: State,
  tools: ModelTools | undefined
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const open = new Set(state.questions.map(({ key }) => key))
    for (const [key, fiber] of asking) {
      if (open.has(key)) continue
      asking.delete(key)
      yield* Fiber.interrupt(fiber)
    }
    for (const question of state.questions) {
      if (asking.has(question.key)) continue
      // It is the model's to answer, or its user's.
      if (tools !== undefined && !can(exchange.caller, question)) continue
      asking.set(question.key, yield* Effect.forkScoped(ask(face, exchange, state.id, question)))
    }
    if (state.progress !== undefined) yield* exchange.progress(state.progress)
  })

/** A user may take as long as the task lives: its end withdraws the question. In the request era the call itself has an end. */
const patient = { timeout: Duration.infinity, maxTimeout: Duration.infinity }

/** Asks one question through the call, and gives its answer to the task: what a client refuses is the handler's to deal with. */
const ask = (
  face: Face,
  exchange: RequestContext,
  id: string,
  { key, method, params }: Question
): Effect.Effect<void> =>
  exchange.request(method, params, Revision.era(exchange.caller.revision) === "session" ? patient : { key }).pipe(
    Effect.catch((error) => Effect.succeed(refused.make(refusal(error, exchange)))),
    Effect.flatMap((answer) => face.engine.answer(id, key, answer)),
    Effect.catchCause((cause) => Effect.logWarning(`The answer to ${method} did not reach its task`, cause)),
    Effect.asVoid
  )

const refusal = (error: McpError.McpError | RequestError, { caller: { revision } }: RequestContext): ErrorObject =>
  McpError.isMcpError(error) ? McpError.toErrorObject(error, revision) : { code: -32603, message: error.message }

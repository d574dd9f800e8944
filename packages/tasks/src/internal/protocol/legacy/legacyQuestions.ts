/**
 * Who is asked the questions of a task, of those that wait for its result.
 *
 * "The requestor should call `tasks/result` to receive input requests": the open questions of a task go out on the stream of such
 * a call, all at once. Each is asked by one call at a time, the last one that can ask it: a client that has lost the stream of an
 * earlier call comes back with another, and whoever asks last is surely there. It is withdrawn where it was asked before, and when
 * it was answered elsewhere, timed out, or its task is over. When the call ends that asks a question, the one before it asks.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { withRelated } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { TaskEngine } from "../../../TaskEngine.ts"
import type { Question, State } from "../../../TaskState.ts"
import * as refused from "../../engine/refused.ts"
import { can } from "../inputCapability.ts"
import { revision } from "./legacyWire.ts"
import * as wire from "../wire.ts"

type Fork = (effect: Effect.Effect<void>) => Fiber.Fiber<void>

// A user may take as long as the task lives: its end withdraws the question.
const patient = { timeout: Duration.infinity, maxTimeout: Duration.infinity }

/** A `tasks/result` that waits. */
class Waiter {
  readonly exchange: RequestContext
  readonly fork: Fork
  /** What its client is asked. */
  readonly asked = new Map<string, Fiber.Fiber<void>>()
  /** What could not be asked here, for reasons of the transport. */
  readonly failed = new Set<string>()

  constructor(exchange: RequestContext, fork: Fork) {
    this.exchange = exchange
    this.fork = fork
  }

  withdraw(key: string): void {
    const fiber = this.asked.get(key)
    this.asked.delete(key)
    fiber?.interruptUnsafe()
  }

  leave(): void {
    for (const key of [...this.asked.keys()]) this.withdraw(key)
  }
}

/** Asks a question, as it is said in this revision. An answer that is none is kept as it is: whoever asked sees that. */
const ask = (
  exchange: RequestContext,
  state: State,
  question: Question
): Effect.Effect<JsonObject, McpError.McpError | RequestError> => {
  const { method, params } = wire.question(state, question, revision)
  return Effect.map(
    exchange.request(method, withRelated(params as JsonObject | undefined, state.id), patient),
    (answer) => Result.getOrElse(wire.answer(state, question, revision, answer), () => answer)
  )
}

/** The calls that wait for one task. */
class Desk {
  readonly #engine: TaskEngine["Service"]
  readonly #waiters: Array<Waiter> = []
  /** What was answered here, while its question may still be shown as open. */
  readonly #answered = new Set<string>()
  #state: State

  constructor(engine: TaskEngine["Service"], state: State) {
    this.#engine = engine
    this.#state = state
  }

  get empty(): boolean {
    return this.#waiters.length === 0
  }

  join(waiter: Waiter): void {
    this.#waiters.push(waiter)
    this.#arrange()
  }

  leave(waiter: Waiter): void {
    waiter.leave()
    this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
    this.#arrange()
  }

  /** Each call watches the task by itself: the newest that any of them has seen counts. */
  see(state: State): void {
    if (state.version < this.#state.version) return
    this.#state = state
    for (const key of this.#answered) if (!this.#open(key)) this.#answered.delete(key)
    this.#arrange()
  }

  #open(key: string): boolean {
    return this.#state.questions.some((question) => question.key === key)
  }

  #arrange(): void {
    for (const waiter of this.#waiters) {
      for (const key of [...waiter.asked.keys()]) if (!this.#open(key)) waiter.withdraw(key)
    }
    for (const question of this.#state.questions) {
      const { key } = question
      if (this.#answered.has(key)) continue
      const asker = this.#waiters.findLast(({ exchange, failed }) => !failed.has(key) && can(exchange.caller, question))
      for (const waiter of this.#waiters) if (waiter !== asker) waiter.withdraw(key)
      if (asker !== undefined && !asker.asked.has(key)) this.#ask(asker, question)
    }
  }

  #ask(waiter: Waiter, question: Question): void {
    const state = this.#state
    const asking = Effect.matchEffect(Effect.suspend(() => ask(waiter.exchange, state, question)), {
      onSuccess: (answer) => this.#settle(waiter, question.key, answer),
      onFailure: (error) =>
        McpError.isMcpError(error)
          ? this.#settle(waiter, question.key, refused.make(McpError.toErrorObject(error, revision)))
          : this.#failed(waiter, question.key)
    })
    // Known before it runs: it may fail at once.
    const fiber = waiter.fork(Effect.andThen(Effect.yieldNow, asking))
    waiter.asked.set(question.key, fiber)
  }

  /** It has an answer. That is kept, whatever becomes of the call that brought it. */
  #settle(waiter: Waiter, key: string, answer: JsonObject): Effect.Effect<void> {
    return Effect.uninterruptible(Effect.suspend(() => {
      waiter.asked.delete(key)
      this.#answered.add(key)
      return Effect.matchEffect(this.#engine.answer(this.#state.id, key, answer), {
        onSuccess: () => Effect.void,
        onFailure: (error) =>
          Effect.andThen(
            Effect.logError("The answer to a question of a task was not kept", error),
            Effect.suspend(() => {
              this.#answered.delete(key)
              return this.#failed(waiter, key)
            })
          )
      })
    }))
  }

  #failed(waiter: Waiter, key: string): Effect.Effect<void> {
    return Effect.sync(() => {
      waiter.asked.delete(key)
      waiter.failed.add(key)
      this.#arrange()
    })
  }
}

/** The tasks whose results somebody waits for, here. */
export class Desks {
  readonly #engine: TaskEngine["Service"]
  readonly #desks = new Map<string, Desk>()

  constructor(engine: TaskEngine["Service"]) {
    this.#engine = engine
  }

  /** Lets a call ask the questions of a task until the scope closes. It shows what it sees of the task. */
  join(state: State, exchange: RequestContext): Effect.Effect<(state: State) => void, never, Scope.Scope> {
    return Effect.flatMap(FiberSet.makeRuntime<never, void, never>(), (fork) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const desk = this.#desks.get(state.id) ?? new Desk(this.#engine, state)
            this.#desks.set(state.id, desk)
            const waiter = new Waiter(exchange, fork)
            desk.join(waiter)
            return { desk, waiter }
          }),
          ({ desk, waiter }) =>
            Effect.sync(() => {
              desk.leave(waiter)
              if (desk.empty) this.#desks.delete(state.id)
            })
        ),
        ({ desk }) => (state) => desk.see(state)
      ))
  }
}

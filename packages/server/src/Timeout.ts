/**
 * A time limit: how long the handling of a request may take.
 *
 * It is about every method but `subscriptions/listen`, which has no end, and `tasks/result` (2025-11-25), which "MUST block the response
 * until the task reaches a terminal status", in days perhaps. When the time is over the handler is interrupted, and the
 * request is answered: a tool's call with a result that has `isError`, so that a model hears of it, everything else with `-32603`;
 * both say how long it was. A handler that ignores its interruption is left behind after `interruptTimeout`, and the log says so.
 *
 * Time that the client takes to answer a question counts in the session era, where the handler waits for it. Middleware that is
 * listed before this one is not timed: list a concurrency limit before, and waiting for room does not count.
 *
 * @example
 * const limit = Timeout.layer({ timeout: "10 seconds", tools: { report: "5 minutes" }, methods: { "prompts/get": "1 second" } })
 */
import type * as McpError from "@skein/protocol/McpError"
import type { Answer, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import * as refusal from "./internal/limits/failRequest.ts"
import { namedBy } from "./internal/dispatch/target.ts"
import type * as Middleware from "./Middleware.ts"

/** The limits. `Infinity` is none. */
export interface Options {
  /** For what is not named below: 1 minute by default. */
  readonly timeout?: Duration.Input | undefined
  /** By method. `subscriptions/listen` and `tasks/result` have a limit only here. */
  readonly methods?: { readonly [method: string]: Duration.Input } | undefined
  /** By the name of the tool. */
  readonly tools?: { readonly [name: string]: Duration.Input } | undefined
  /** How long a handler may take to end after its interruption: 5 seconds by default. The answer waits for it. */
  readonly interruptTimeout?: Duration.Input | undefined
}

/** Limits how long the handling of a request may take. */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  captured.layer<never>((catalog) => {
    const limitFor = limitOf(options)
    const grace = Duration.fromInputUnsafe(options.interruptTimeout ?? "5 seconds")
    return catalog.middleware.add((next) => (exchange) => {
      const limit = limitFor(exchange)
      return Duration.isFinite(limit)
        ? Effect.suspend(() => new Timed(exchange, limit, grace).run(next))
        : next(exchange)
    })
  })

const endless = ["subscriptions/listen", "tasks/result"]

const limitOf = ({ timeout, methods, tools }: Options): (exchange: RequestContext) => Duration.Duration => {
  const read = (table: { readonly [name: string]: Duration.Input } = {}) =>
    new Map(Object.entries(table).map(([name, input]) => [name, Duration.fromInputUnsafe(input)]))
  const others = Duration.fromInputUnsafe(timeout ?? "1 minute")
  const byMethod = new Map([...endless.map((method) => [method, Duration.infinity] as const), ...read(methods)])
  const byTool = read(tools)
  return (exchange) =>
    (exchange.method === "tools/call" ? byTool.get(namedBy(exchange) ?? "") : undefined) ??
      byMethod.get(exchange.method) ?? others
}

type Handled = Effect.Effect<Answer, McpError.McpError>

/** One request, handled in a fiber of its own: that costs no timer where it ends at once. The fiber ends when this one does. */
class Timed {
  readonly #exchange: RequestContext
  readonly #limit: Duration.Duration
  readonly #grace: Duration.Duration
  #child: Fiber.Fiber<Answer, McpError.McpError> | undefined = undefined
  #leftBehind = false

  constructor(exchange: RequestContext, limit: Duration.Duration, grace: Duration.Duration) {
    this.#exchange = exchange
    this.#limit = limit
    this.#grace = grace
  }

  run(next: Middleware.Handler): ReturnType<Middleware.Handler> {
    return Effect.onExitPrimitive(
      Effect.contextWith((context: Context.Context<McpRequest>) => {
        this.#child = Effect.runForkWith(context)(next(this.#exchange))
        return this.#child.pollUnsafe() ?? this.#wait(this.#child)
      }),
      () =>
        this.#child === undefined || this.#leftBehind || this.#child.pollUnsafe() !== undefined
          ? undefined
          : Fiber.interrupt(this.#child)
    )
  }

  #wait(child: Fiber.Fiber<Answer, McpError.McpError>): Handled {
    return Effect.flatMap(
      Effect.timeoutOption(Fiber.await(child), this.#limit),
      (exit) => Option.isSome(exit) ? exit.value : this.#stop(child)
    )
  }

  #stop(child: Fiber.Fiber<Answer, McpError.McpError>): Handled {
    const request = refusal.describeRequest(this.#exchange)
    const limitMs = Duration.toMillis(this.#limit)
    const answer = refusal.failRequest(this.#exchange, `${request} took longer than ${refusal.formatMillis(limitMs)}`, {
      limitMs
    })
    return Effect.flatMap(Effect.timeoutOption(Fiber.interrupt(child), this.#grace), (ended) => {
      if (Option.isSome(ended)) return answer
      this.#leftBehind = true
      return Effect.andThen(
        refusal.withoutRequest(Effect.logWarning(`${request} ignores its interruption and was left behind`)),
        answer
      )
    })
  }
}

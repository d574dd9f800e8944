/**
 * A time limit: how long the handling of a request may take.
 *
 * It applies to every method but `subscriptions/listen`, which has no end, and `tasks/result` (2025-11-25), which "MUST
 * block the response until the task reaches a terminal status". At the limit the handler is interrupted. The call of a
 * tool is answered with a result with `isError`, so that the model sees it; every other method with `-32603`. Both
 * messages contain the limit. A handler that does not stop within 5 seconds is abandoned, with a warning in the
 * log.
 *
 * In a session-based revision the handler waits for the client's answer to an input request, and that time counts.
 * Middleware that is listed before this one is not timed. If a concurrency limit is listed before it, the time that
 * a request waits there does not count.
 *
 * @example
 * const limit = Timeout.layer({
 *   timeout: "10 seconds",
 *   tools: { report: "5 minutes" },
 *   methods: { "prompts/get": "1 second" }
 * })
 */
import type * as McpError from "@skein/protocol/McpError"
import type { Answer, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Defaults from "@skein/runtime/Options"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { Bounds } from "./internal/base/fixedBounds.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { registerLayer } from "./internal/handlers/captureServices.ts"
import { describeRequest, failureAnswer, formatMillis, withoutRequest } from "./internal/middleware/failureAnswer.ts"
import type * as Middleware from "./Middleware.ts"

/** The limits. `Infinity` disables one. */
export interface Options {
  /** The limit of requests without one of their own below: 1 minute by default. */
  readonly timeout?: Duration.Input | undefined
  /** Limits by method. `subscriptions/listen` and `tasks/result` have a limit only if they are listed here. */
  readonly methods?: { readonly [method: string]: Duration.Input } | undefined
  /** Limits by the name of the tool. */
  readonly tools?: { readonly [name: string]: Duration.Input } | undefined
}

/**
 * Limits how long the handling of a request may take.
 *
 * @example
 * Timeout.layer({ timeout: "10 seconds" })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  registerLayer<never>((catalog) => {
    const { interruptTimeout } = Context.get(catalog[internals].base, Bounds)
    const limitFor = limitOf(options)
    return catalog[internals].middleware.add((next) => (request) => {
      const limit = limitFor(request)
      return Duration.isFinite(limit)
        ? Effect.suspend(() => timed(request, limit, interruptTimeout, next))
        : next(request)
    })
  })

const endless = ["subscriptions/listen", "tasks/result"]

const limitOf = (
  { methods, timeout, tools }: Options
): (request: RequestContext) => Duration.Duration => {
  const read = (table: { readonly [name: string]: Duration.Input } = {}) =>
    new Map(Object.entries(table).map(([name, input]) => [name, Duration.fromInputUnsafe(input)]))
  const others = Duration.millis(Defaults.resolve({ timeout }, {}, { timeout: "1 minute" }).timeout)
  const byMethod = new Map([...endless.map((method) => [method, Duration.infinity] as const), ...read(methods)])
  const byTool = read(tools)
  return (request) =>
    (request.method === "tools/call" ? byTool.get(request.target ?? "") : undefined) ??
      byMethod.get(request.method) ?? others
}

/**
 * Handles a request in a fiber of its own, so that a handler that ends synchronously costs no timer. The fiber ends
 * with its parent.
 */
const timed = (
  request: RequestContext,
  limit: Duration.Duration,
  interruptTimeout: number,
  next: Middleware.Handler
): ReturnType<Middleware.Handler> => {
  let child: Fiber.Fiber<Answer, McpError.McpError> | undefined
  let isAbandoned = false
  return Effect.onExitPrimitive(
    Effect.contextWith((context: Context.Context<McpRequest>) => {
      const fiber = child = Effect.runForkWith(context)(next(request))
      return fiber.pollUnsafe() ?? Effect.flatMap(
        Effect.timeoutOption(Fiber.await(fiber), limit),
        (exit) =>
          Option.isSome(exit)
            ? exit.value
            : stop(request, fiber, limit, interruptTimeout, () => {
              isAbandoned = true
            })
      )
    }),
    () => child === undefined || isAbandoned || child.pollUnsafe() !== undefined ? undefined : Fiber.interrupt(child)
  )
}

const stop = (
  request: RequestContext,
  fiber: Fiber.Fiber<Answer, McpError.McpError>,
  limit: Duration.Duration,
  interruptTimeout: number,
  abandon: () => void
): Effect.Effect<Answer, McpError.McpError> => {
  const described = describeRequest(request)
  const limitMs = Duration.toMillis(limit)
  const answer = failureAnswer(request, `${described} took longer than ${formatMillis(limitMs)}`, { limitMs })
  return Effect.flatMap(Effect.timeoutOption(Fiber.interrupt(fiber), interruptTimeout), (ended) => {
    if (Option.isSome(ended)) return answer
    abandon()
    return Effect.andThen(
      withoutRequest(
        Effect.logWarning(`${described} did not stop within ${formatMillis(interruptTimeout)}; abandoning it`)
      ),
      answer
    )
  })
}

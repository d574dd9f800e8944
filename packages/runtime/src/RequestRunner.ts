/**
 * Runs inbound requests, of sessions and stateless ones alike: starts the handler in a fiber, sends its outcome to the
 * sink of the request, and logs defects.
 */
import * as Conventions from "@skein/protocol/Conventions"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { logValue, quote } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { type Answer, type Dispatcher, type Exchange, McpRequest, type RequestContext } from "./RequestContext.ts"

/** Whole milliseconds of a clock's monotonic time. Ages and deadlines are measured in it, since it cannot be set. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)

// The most characters of the target of a request in a log line. It may be a long URI.
const maxTargetChars = 256

/** The most requests that a log line names. */
const maxNames = 10

/** A request in a log line: its method, and the tool, prompt or resource that it names. */
const describe = ({ method, params }: Pick<JsonRpc.Request, "method" | "params">): string => {
  const target = Conventions.targetOf(method, params)
  return target === undefined ? logValue(method) : `${logValue(method)} ${quote(target, maxTargetChars)}`
}

/** Logs the requests that this side interrupts because it stops. */
export const logInterrupted = (requests: ReadonlyArray<Exchange>): Effect.Effect<void> => {
  if (requests.length === 0) return Effect.void
  const names = requests.slice(0, maxNames).map(describe)
  if (requests.length > maxNames) names.push("…")
  return Effect.logWarning(`Requests interrupted (${requests.length}): ${names.join(", ")}`)
}

/** The JSON-RPC error that a request ended with, if there is one. A defect beside the error takes precedence. */
export const errorOf = (exit: Exit.Exit<Answer, McpError.McpError>): McpError.McpError | undefined => {
  if (exit._tag === "Success" || exit.cause.reasons.some(Cause.isDieReason)) return undefined
  const error = exit.cause.reasons.find(Cause.isFailReason)?.error
  return McpError.isMcpError(error) ? error : undefined
}

/**
 * Checks that the result is an object: a handler may be untyped, and `JSON.stringify` writes the value that `toJSON`
 * returns.
 */
const resultOf = (value: Answer): Answer => {
  const toJSON = (value as { readonly toJSON?: unknown } | null | undefined)?.toJSON
  const written: unknown = typeof toJSON === "function" ? toJSON.call(value, "") : value
  if (JsonRpc.isObject(written)) return value
  throw new TypeError("The result is not an object")
}

/** Counts the requests that end, for `McpServer.inspect`. A cancelled request is not counted. */
export interface RequestTally {
  readonly answered: (request: Exchange, answer: Answer) => void
  readonly failed: (request: Exchange, error: McpError.McpError) => void
}

/** Answers the requests of peers. */
export interface RequestHandler<R = never> {
  readonly dispatch: Dispatcher<R | McpRequest>
  readonly tally?: RequestTally | undefined
  /**
   * The answer to a request whose handler has died, in the place of `-32603` with the reference. Must not throw.
   * `undefined` leaves the error.
   */
  readonly answerDefect?:
    | ((request: RequestContext, reference: string, cause: Cause.Cause<unknown>) => Answer | undefined)
    | undefined
}

/**
 * Runs the requests of one peer, or of many that share a dispatcher and services. It has no state of its own: each
 * request and its sink do.
 */
export class RequestRunner<R = never> {
  /** The services that every request starts with. */
  readonly context: Context.Context<R>
  readonly #handler: RequestHandler<R>
  readonly #clock: Clock.Clock

  constructor(handler: RequestHandler<R>, context: Context.Context<R>) {
    this.context = context
    this.#handler = handler
    this.#clock = Context.get(context, Clock.Clock)
  }

  /** Milliseconds of the monotonic clock. */
  now(): number {
    return monotonicMillis(this.#clock)
  }

  /** Runs a request. When this returns, the response was sent, or the request has suspended. */
  start(exchange: Exchange): void {
    let effect: Effect.Effect<Answer, McpError.McpError, R | McpRequest>
    try {
      effect = this.#handler.dispatch(exchange.received)
    } catch (defect) {
      // A handler may throw before it returns an effect.
      effect = Effect.die(defect)
    }
    const fiber = this.#fork(exchange, effect)
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return this.#finish(exchange, exit)
    exchange.suspend(fiber, this.now())
    this.#observe(exchange, fiber)
  }

  #fork(
    exchange: Exchange,
    effect: Effect.Effect<Answer, McpError.McpError, R | McpRequest>
  ): Fiber.Fiber<Answer, McpError.McpError> {
    const services = exchange.origin?.context
    const context = services === undefined ? this.context : Context.merge(services, this.context)
    return Effect.runForkWith(Context.add(context, McpRequest, exchange.received))(effect)
  }

  #observe(exchange: Exchange, fiber: Fiber.Fiber<Answer, McpError.McpError>): void {
    fiber.addObserver((exit) => {
      const replacement = exchange.takeReplacement(exit)
      if (replacement !== undefined) {
        const next = this.#fork(exchange, replacement)
        exchange.fiber = next
        return this.#observe(exchange, next)
      }
      this.#finish(exchange, exit)
      exchange.sink.ended?.(exchange)
    })
  }

  #finish(exchange: Exchange, exit: Exit.Exit<Answer, McpError.McpError>): void {
    exchange.state = "Done"
    const { sink } = exchange
    if (exchange.cancelled) return sink.discard(exchange)
    try {
      if (Exit.isSuccess(exit)) return this.#answer(exchange, resultOf(exit.value))
      const error = errorOf(exit)
      return error === undefined ? this.#die(exchange, exit.cause) : this.#fail(exchange, error)
    } catch (error) {
      // The result or the error has no JSON form, and nothing was sent.
      this.#die(exchange, Cause.die(error))
    }
  }

  /** Answers a request that ended with a defect, or that an operator or the handler itself has interrupted. */
  #die(exchange: Exchange, cause: Cause.Cause<unknown>): void {
    const reference = this.#logDefect(exchange, cause)
    const answer = cause.reasons.some(Cause.isDieReason)
      ? this.#handler.answerDefect?.(exchange.received, reference, cause)
      : undefined
    if (answer === undefined) this.#fail(exchange, McpError.internal(reference))
    else this.#answer(exchange, answer)
  }

  #answer(exchange: Exchange, answer: Answer): void {
    exchange.sink.respond(exchange, JsonRpc.success(exchange.id, answer))
    this.#handler.tally?.answered(exchange, answer)
  }

  #fail(exchange: Exchange, error: McpError.McpError): void {
    this.#handler.tally?.failed(exchange, error)
    exchange.sink.respond(
      exchange,
      JsonRpc.failure(exchange.id, McpError.toErrorObject(error, exchange.caller.revision))
    )
  }

  /**
   * Logs a defect, a result that is not an object, or a handler that interrupted itself. Returns the error for the
   * peer, which contains only a reference to the log entry.
   */
  defect(request: Pick<JsonRpc.Request, "method" | "params">, cause: Cause.Cause<unknown>): McpError.McpError {
    return McpError.internal(this.#logDefect(request, cause))
  }

  #logDefect(request: Pick<JsonRpc.Request, "method" | "params">, cause: Cause.Cause<unknown>): string {
    const reference = globalThis.crypto.randomUUID()
    const name = describe(request)
    this.log(Effect.logError(`${name} failed, reference ${reference}`, cause))
    return reference
  }

  /** Logs with the loggers among the services. */
  log(effect: Effect.Effect<void>): void {
    Effect.runForkWith(this.context)(effect)
  }
}

/**
 * Retry: runs the handler of a tool again after a failure.
 *
 * It applies to tools whose annotations say that a repeated call is harmless: `readOnlyHint` or `idempotentHint`. Another
 * choice of `tools` is a promise of yours that it is. A failure is an error that the handler fails with. Defects,
 * JSON-RPC errors (`McpError`), invalid arguments and results with `isError` that a handler makes itself are not
 * retried, unless `when` returns `true` for the first two. A call for which the handler has requested input of the client is
 * not retried: its user would be asked again. Nor is a cancelled one.
 *
 * All attempts are one request: one entry of an audit log, one span, and one `Timeout` around them. Progress of a later
 * attempt is sent only if it is greater than that of an earlier one. The later run of a task does not pass it.
 *
 * @example
 * const patient = Retry.layer({
 *   when: ({ error }) => error instanceof HttpClientError,
 *   maxAttempts: 5,
 *   schedule: Schedule.exponential("1 second")
 * })
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as McpError from "@skein/protocol/McpError"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type { Catalog, Handled, HandlerServices } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { InputError } from "./InputError.ts"
import { failureOfExit } from "./internal/handlers/handlerError.ts"
import { namesVersion } from "./internal/handlers/toolVersion.ts"
import * as Middleware from "./Middleware.ts"

/** A failed attempt. */
export interface Attempt {
  readonly call: Middleware.ToolCall
  /** The failure of the handler, an `McpError`, or the defect. */
  readonly error: unknown
  /** Whether the handler died. */
  readonly isDefect: boolean
  /** The number of the attempt, from 1. */
  readonly attempt: number
}

/** Which calls are retried, and when. */
export interface Options<R = never> {
  /** The tools: by default those with `readOnlyHint` or `idempotentHint` among their annotations. */
  readonly tools?: Middleware.Tools | undefined
  /** Which failures are retried: by default failures of the handler, without defects, `McpError` and `InputError`. */
  readonly when?: ((attempt: Attempt) => boolean) | undefined
  /** How often the handler runs for one call, the first run included: 3 by default. */
  readonly maxAttempts?: number | undefined
  /** The delays: those of `backoff` by default. */
  readonly schedule?: Schedule.Schedule<unknown, unknown, never, R> | undefined
}

/** The tools whose annotations say that a repeated call is harmless. */
export const harmless: Middleware.Tools = ({ definition: { annotations } }) =>
  annotations?.readOnlyHint === true || annotations?.idempotentHint === true

const transient = ({ error, isDefect }: Attempt): boolean =>
  !isDefect && !McpError.isMcpError(error) && !(error instanceof InputError)

/**
 * The delays between the attempts: from 200 milliseconds on, doubled each time up to 5 seconds, with jitter, by default.
 *
 * @example
 * const patient = Retry.layer({ schedule: Retry.backoff("1 second", "1 minute") })
 */
export const backoff = (
  delay: Duration.Input = "200 millis",
  maxDelay: Duration.Input = "5 seconds"
): Schedule.Schedule<unknown> =>
  Schedule.jittered(Schedule.min([Schedule.exponential(delay), Schedule.spaced(maxDelay)]))

/** The exit of an attempt that is retried. */
class Again extends Data.TaggedError("Again")<{ readonly exit: Exit.Exit<CallToolResult, McpError.McpError> }> {}

/**
 * Retries failed calls of tools.
 *
 * @example
 * const twice = Retry.layer({ tools: ["quote"], maxAttempts: 2 })
 */
export const layer = <R = never>(
  options: Options<R> = {}
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> => {
  const { maxAttempts = 3, tools = harmless, when = transient } = options
  const schedule: Schedule.Schedule<unknown, unknown, never, R> = options.schedule ?? backoff()
  return Middleware.callTool((call, next): Effect.Effect<CallToolResult, McpError.McpError, R | McpRequest> => {
    const { request } = call
    // A round that continues: the client was asked in an earlier one.
    if (request.original.params?.["requestState"] !== undefined || namesVersion(request)) return next()
    let attempt = 0
    const judge = (
      exit: Exit.Exit<CallToolResult, McpError.McpError>
    ): Effect.Effect<CallToolResult, McpError.McpError | Again> => {
      attempt++
      const failure = failureOfExit(exit)
      if (failure === undefined || request.exchange.hasAsked || attempt >= maxAttempts) return exit
      return when({ call, attempt, ...failure }) ? Effect.fail(new Again({ exit })) : exit
    }
    const once = Effect.flatMap(Effect.exit(Effect.suspend((): Handled<CallToolResult> => next())), judge)
    const retried = Effect.retry(once, { schedule, while: (error) => error instanceof Again })
    return Effect.catch(
      retried,
      (error): Effect.Effect<CallToolResult, McpError.McpError> =>
        error instanceof Again ? error.exit : Effect.fail(error)
    )
  }, { tools }) as Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>>
}

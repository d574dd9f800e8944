/**
 * Handlers that return a value or a promise, for layers that take a handler of effects and have no `async` of their
 * own, such as those of other packages. `Tool.async`, `Resource.async`, `ResourceTemplate.async` and `Prompt.async` use
 * it.
 *
 * @example
 * const handler = AsyncHandler.toEffect(async ({ city }: { city: string }, { signal }) => fetchText(city, signal))
 * const added = Tool.add(forecast, handler)
 */
import type { Awaitable } from "@skein/runtime/Awaitable"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type * as Effect from "effect/Effect"
import type { AsyncHandler } from "./HandlerContext.ts"
import type { HandlerError } from "./HandlerError.ts"
import * as asyncHandler from "./internal/handlers/asyncHandler.ts"
import * as attempts from "./internal/base/attempt.ts"

export type { AsyncHandler } from "./HandlerContext.ts"

/**
 * Converts an async handler to a handler that returns an effect. `HandlerContext` has the rules for its errors, and for
 * its early end.
 *
 * @example
 * const handler = AsyncHandler.toEffect(async ({ city }: { city: string }, { signal }) => fetchText(city, signal))
 * const live = Tool.layer(forecast, handler)
 */
export const toEffect: <Input, A, R = never>(
  handler: AsyncHandler<Input, A, R>
) => (input: Input) => Effect.Effect<A, HandlerError, R | McpRequest> = asyncHandler.toEffect

/**
 * Calls a function that returns a value, a promise or an effect, for options that take any of them. An error that it
 * throws, or with which its promise rejects, becomes a failure if a client may see its message, and a defect otherwise.
 *
 * @example
 * const headers = AsyncHandler.settle(() => options.credentials(operation))
 */
export const settle: <A, E = never, R = never>(
  run: (signal: AbortSignal) => Awaitable<A, E, R>
) => Effect.Effect<A, E | HandlerError, R> = attempts.settle

/**
 * Calls a function that returns a value or a promise. An error that it throws becomes a failure if a client may see its
 * message, and a defect otherwise.
 *
 * @example
 * const text = AsyncHandler.attempt((signal) => fetch(url, { signal }).then((response) => response.text()))
 */
export const attempt: <A>(
  run: (signal: AbortSignal) => A | Promise<A>
) => Effect.Effect<A, HandlerError> = attempts.attempt

/**
 * Middleware: what stands around the dispatcher, for every request of every method in both eras.
 *
 * A middleware is a function from dispatcher to dispatcher. It is called with the `Exchange`: the method, the params as they came,
 * and who asks. What the next one answers is the result as it is written, an object or JSON text already (`JsonRpc.Encoded`);
 * what it fails with is a JSON-RPC error.
 *
 * @example
 * const timed = Middleware.layer((next) => (exchange) =>
 *   Effect.tap(Effect.timed(next(exchange)), ([duration]) => Effect.logInfo(`${exchange.method} took ${duration}`)).pipe(
 *     Effect.map(([, answer]) => answer)
 *   ))
 * const server = McpServer.layer({ name: "timed", version: "1.0.0" }, timed, Tool.layer(greet, greeting))
 */
import type * as McpError from "@skein/protocol/McpError"
import type { Answer, Dispatcher, McpRequest } from "@skein/runtime/Exchange"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/captured.ts"

/** What handles a request: the server itself, or a middleware and all that is behind it. `R` is what it needs besides. */
export type Handler<R = never> = Dispatcher<McpRequest | R>

/** Wraps what handles requests. It is called once per change of the server's middleware, not once per request. */
export type Middleware<R = never> = (next: Handler) => Handler<R>

/** Adds a middleware to a server. Those that are listed first stand outside of those that are listed later. */
export const layer = <R = never>(
  middleware: Middleware<R>
): Layer.Layer<never, DefinitionError, Catalog | captured.Needed<R>> =>
  captured.layer<R>((catalog, provide) =>
    catalog.middleware.add((next) => {
      const handler = middleware(next)
      return (exchange) => provide(handler(exchange) as Effect.Effect<Answer, McpError.McpError, R>)
    })
  )

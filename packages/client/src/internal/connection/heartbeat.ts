/**
 * Asks the server now and then whether it is still there.
 *
 * 2025-11-25, ping: "Implementations SHOULD periodically issue pings to detect connection health", and where no answer
 * comes, the sender "MAY: Consider the connection stale, Terminate the connection, Attempt reconnection procedures".
 */
import * as McpError from "@skein/protocol/McpError"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { NegotiatedConnection } from "./connection.ts"

/** How often, and how long the answer is waited for. */
export interface Heartbeat {
  readonly interval: Duration.Input
  readonly timeout: Duration.Input
}

/**
 * Whether a failure tells that nobody is there. An error of the server is an answer; so is a refusal that is no fault
 * of its.
 */
const dead = (error: McpError.McpError | RequestError): boolean => {
  if (McpError.isMcpError(error)) return false
  const { reason } = error
  if (reason._tag === "MessageRejected") return (reason.cause.status ?? 0) >= 500
  return reason._tag === "Timeout" || reason._tag === "Closed"
}

/** Beats for as long as the scope, and ends the line as lost when no answer comes. */
export const heartbeat = (options: Heartbeat) => {
  const interval = Duration.fromInputUnsafe(options.interval)
  const timeout = Duration.fromInputUnsafe(options.timeout)
  return (connection: NegotiatedConnection): Effect.Effect<void, never, Scope.Scope> => {
    const method = connection.isRequestEra ? "server/discover" : "ping"
    // Also while the server asks the user something, when the timeouts of other requests stand still.
    const beat = Effect.suspend(() =>
      connection.peer.request(method, connection.stamp({}), { timeout, maxTimeout: timeout })
    )
    const beats: Effect.Effect<void> = Effect.flatMap(
      Effect.flip(
        Effect.forever(Effect.andThen(
          Effect.sleep(interval),
          Effect.catchIf(beat, (error) => !dead(error), () => Effect.void)
        ))
      ),
      (cause) =>
        Effect.sync(() => {
          const message = `The server does not answer ${method} any more: ${cause.message}`
          connection.peer.close({
            _tag: "Lost",
            cause: new TransportError({ reason: new ConnectionLost({ message, cause }) })
          })
        })
    )
    return Effect.asVoid(Effect.forkScoped(beats))
  }
}

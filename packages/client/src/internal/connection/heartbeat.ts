/**
 * Checks periodically whether the server still answers.
 *
 * 2025-11-25, ping: "Implementations SHOULD periodically issue pings to detect connection health". If no response
 * comes, the sender "MAY: Consider the connection stale, Terminate the connection, Attempt reconnection procedures".
 */
import * as McpError from "@skein/protocol/McpError"
import type { RequestError } from "@skein/runtime/RequestError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { connectionLost } from "../base/errors.ts"
import type { NegotiatedConnection } from "./connection.ts"

/** The interval of the checks, and the timeout of each. */
export interface Heartbeat {
  readonly interval: Duration.Input
  readonly timeout: Duration.Input
}

/**
 * Whether a failure means that the server is gone. An error that the server sent is an answer, and so is an HTTP status
 * below 500.
 */
const dead = (error: McpError.McpError | RequestError): boolean => {
  if (McpError.isMcpError(error)) return false
  const { reason } = error
  if (reason._tag === "MessageRejected") return (reason.cause.status ?? 0) >= 500
  return reason._tag === "Timeout" || reason._tag === "Closed"
}

/** Checks the server as long as the scope lasts, and ends the connection as lost if no response comes. */
export const heartbeat = (
  { interval, timeout }: Heartbeat,
  connection: NegotiatedConnection
): Effect.Effect<void, never, Scope.Scope> => {
  const method = connection.isStateless ? "server/discover" : "ping"
  // It also runs during input requests of the server, when the timeouts of other requests are paused.
  const beat = Effect.suspend(() =>
    connection.peer.request(method, connection.stamp({}), { timeout, maxTimeout: timeout })
  )
  const beats = Effect.forever(
    Effect.andThen(Effect.sleep(interval), Effect.catchIf(beat, (error) => !dead(error), () => Effect.void))
  )
  const beating = Effect.catch(beats, (cause) =>
    Effect.sync(() => {
      const message = `The server does not respond to ${method}: ${cause.message}`
      connection.peer.close({ _tag: "Lost", cause: connectionLost(message, cause) })
    }))
  return Effect.asVoid(Effect.forkScoped(beating))
}

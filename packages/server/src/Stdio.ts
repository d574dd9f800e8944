/**
 * A server on stdio, in a process that a client has started.
 *
 * @example
 * Stdio.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, tools))
 */
import type { TransportError } from "@skein/runtime/TransportError"
import type { Peer } from "@skein/runtime/Peer"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { problemOfLayer, type ServerMistake } from "./internal/composition/serverMistake.ts"
import { AnswersEarly } from "./internal/dispatch/lateDispatcher.ts"
import * as connection from "./internal/process/stdioConnection.ts"
import type { MainOptions as ProcessOptions } from "./internal/process/nodeMain.ts"
import * as main from "./internal/process/nodeMain.ts"
import { McpServer } from "./McpServer.ts"

export type { StdioOptions as Options } from "./internal/process/stdioConnection.ts"

/** Options of the connection and of the process. */
export interface MainOptions extends connection.StdioOptions, ProcessOptions {}

/**
 * Serves stdin and stdout until the connection ends, and returns how it ended. When stdin ends, requests in progress
 * may finish within the `shutdownTimeout` of `Limits`. Meanwhile stdout carries protocol messages only; other output to
 * stdout is redirected to stderr.
 *
 * Fails with `TransportError` if another server is using stdout.
 *
 * @example
 * const end = yield* Stdio.serve()
 */
export const serve = (options?: connection.StdioOptions): Effect.Effect<SessionEnd, TransportError, McpServer> =>
  serveUntil(options, () => Effect.void)

/** `onInterrupt` runs before the requests in progress are interrupted. */
const serveUntil = (options: connection.StdioOptions | undefined, onInterrupt: (peer: Peer) => Effect.Effect<void>) =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* McpServer
    const peer = yield* server.serve(yield* connection.connect(options))
    return yield* Effect.onInterrupt(peer.ended, () => onInterrupt(peer))
  }))

const logShutdown = (peer: Peer): Effect.Effect<void> =>
  Effect.logInfo(`Shutting down (requests: ${[...peer.requests].length})`)

/**
 * Serves stdin and stdout in the background, for a process that does other work too.
 *
 * @example
 * Stdio.layer().pipe(Layer.provide(Server))
 */
export const layer = (options?: connection.StdioOptions): Layer.Layer<never, TransportError, McpServer> =>
  Layer.effectDiscard(Effect.forkScoped(serve(options)))

/**
 * Runs the process as a server on stdio.
 *
 * - stdin ends, or stdout is closed: requests in progress may finish within `shutdownTimeout` (5 seconds). The exit code
 *   is 0.
 * - SIGTERM or SIGINT: requests in progress are interrupted, and finalizers run within `shutdownTimeout` (5 seconds).
 *   The exit code is 143 or 130. A second signal exits immediately.
 * - The server cannot be built, dies, or loses its connection (stdin or stdout fails, or the client does not read): the
 *   cause is written to stderr, and the exit code is 1.
 *
 * @example
 * Stdio.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, tools))
 */
export const runMain = <E, S>(
  server: Layer.Layer<McpServer, E> | (ServerMistake<S, McpServer> & S),
  options?: MainOptions
): void => {
  const problem = problemOfLayer(server)
  if (problem !== undefined) return main.runStdioMain(main.invalid(problem), options)
  const served = Effect.provide(serveUntil(options, logShutdown), server as Layer.Layer<McpServer, E>)
  main.runStdioMain(
    Effect.flatMap(
      Effect.provideService(served, AnswersEarly, true),
      (end) => end._tag === "Lost" ? Effect.fail(end.cause) : Effect.void
    ),
    options
  )
}

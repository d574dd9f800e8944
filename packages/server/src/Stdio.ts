/**
 * A server on stdio: the process that a client started.
 *
 * @example
 * Stdio.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, tools))
 */
import type { TransportError } from "@skein/runtime/TransportError"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as connection from "./internal/stdio/connection.ts"
import * as main from "./internal/stdio/nodeMain.ts"
import { McpServer } from "./McpServer.ts"

/** What the connection reads and writes, and its bounds. */
export interface Options extends connection.StdioOptions {}

/** Options of the connection and of the process. */
export interface MainOptions extends Options, main.MainOptions {}

/**
 * Serves stdin and stdout until the client is gone, and says how that came. When stdin ends, what is in flight may finish
 * within the server's `drainTimeout`. Nothing but protocol reaches stdout meanwhile: what else is written there goes to stderr.
 *
 * Fails with `TransportError` `Open` when another server has stdout.
 */
export const serve = (options?: Options): Effect.Effect<SessionEnd, TransportError, McpServer> =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* McpServer
    const peer = yield* server.serve(yield* connection.connect(options))
    return yield* peer.ended
  }))

/** Serves stdin and stdout in the background, for a process that does more than that. */
export const layer = (options?: Options): Layer.Layer<never, TransportError, McpServer> =>
  Layer.effectDiscard(Effect.forkScoped(serve(options)))

/**
 * Serves stdin and stdout as the whole life of this process.
 *
 * - stdin ends, or stdout is closed: what is in flight may finish within `drainTimeout` (5 seconds), exit 0.
 * - SIGTERM or SIGINT: what is in flight is interrupted, finalizers run within `grace` (5 seconds), exit 143 or 130. A second
 *   signal exits at once.
 * - The server cannot be built, or dies, or its connection is lost (stdin or stdout breaks, or the client does not read): the
 *   cause goes to stderr, exit 1.
 */
export const runMain = <E>(server: Layer.Layer<McpServer, E>, options?: MainOptions): void =>
  main.runStdioMain(
    Effect.flatMap(
      Effect.provide(serve(options), server),
      (end) => end._tag === "Lost" ? Effect.fail(end.cause) : Effect.void
    ),
    options
  )

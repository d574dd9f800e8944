/**
 * A server that misbehaves on purpose, for the tests of clients: over HTTP in this process, or as a program over stdio.
 *
 * The server implements each revision without Skein's server, so that no library prevents a fault. It records the calls
 * that it carried out, so that a test can check that none was repeated. A {@link Scenario.Scenario} describes its
 * faults.
 *
 * Its tools take a `key` that identifies a call. `echo` returns the key, `add` adds `a` and `b`, `progress` reports
 * progress `n` times, `ask` asks the user for a word and returns the key and the user's answer, `slow` takes `ms`
 * milliseconds.
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import { FaultyHttpServer } from "./internal/httpServer.ts"
import type { ToolCall } from "./internal/protocolHandler.ts"
import * as stdioServer from "./internal/stdioServer.ts"
import type { StdioProgram } from "./internal/stdioServer.ts"
import type { Scenario } from "./Scenario.ts"

export type { ToolCall }

/** A faulty server over HTTP. The counts are getters: each read returns the current number. */
export interface HttpServer {
  /** The URL of its endpoint. */
  readonly url: string
  /** The HTTP requests that the server received. */
  readonly requestCount: number
  /** The GET requests that it received. */
  readonly streamCount: number
  /** The GET requests that resumed a stream (`Last-Event-ID`). */
  readonly resumptionCount: number
  /** The sessions that were opened. */
  readonly sessionCount: number
  /** The connections that were accepted. */
  readonly connectionCount: number
  /** The connections that are open. */
  readonly openConnections: number
  /** How often the port has closed and opened again. */
  readonly restartCount: number
  /** The tool calls that were carried out, in order. */
  readonly calls: ReadonlyArray<ToolCall>
  /** How often the call with that key was carried out. */
  readonly callCount: (key: string) => number
  /** Closes each connection, with an RST or with a FIN. */
  readonly closeConnections: (how: "reset" | "end") => Effect.Effect<void>
  /** Drops all sessions. The server responds 404 to their next requests. */
  readonly forgetSessions: Effect.Effect<void>
  /** Closes the port and each connection, and drops all sessions. */
  readonly stop: Effect.Effect<void>
  /** Opens the same port again, after `stop`. */
  readonly start: Effect.Effect<void>
  /** `stop`, then `start`. Does nothing while another restart is under way. */
  readonly restart: Effect.Effect<void>
  /** Sends a notification on the standalone SSE stream of each session. */
  readonly notify: (method: string, params?: object | undefined) => Effect.Effect<void>
}

/**
 * Starts a faulty server on a free port of 127.0.0.1. The scope stops it. Its delays use the clock of the fiber that
 * starts it: under `TestClock` the test advances them. Dies if no port can be opened.
 *
 * @example
 * const server = yield* FaultyServer.http({ faults: [Scenario.rule("request", Scenario.cut(100))] })
 * const client = yield* Client.make(Http.transport({ url: server.url }))
 * yield* Effect.flip(client.callTool("echo", { key: "once" }))
 * expect(server.callCount("once")).toBe(1)
 */
export const http = Effect.fnUntraced(function*(scenario: Scenario): Effect.fn.Return<HttpServer, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const server = new FaultyHttpServer(scenario, fork)
  yield* Effect.acquireRelease(server.start, () => server.stop)
  return server
})

export type { StdioProgram } from "./internal/stdioServer.ts"

/**
 * Prepares a program that is a faulty server over stdio. Each process starts the scenario from its beginning. The
 * scenario is passed as an argument, and the processes record their calls in a temporary file that the scope removes.
 *
 * @example
 * const { args, command } = yield* FaultyServer.stdio({ faults: [Scenario.rule("request", Scenario.cut(17))] })
 * const client = yield* Client.make(Stdio.transport({ command, args }))
 */
export const stdio: (scenario: Scenario) => Effect.Effect<StdioProgram, never, Scope.Scope> = stdioServer.stdio

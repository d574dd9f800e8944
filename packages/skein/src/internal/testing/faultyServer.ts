/**
 * Servers that misbehave on purpose, by a scenario: over HTTP, and over stdio.
 */
import * as Core from "@skein/testing/FaultyServer"
import * as CoreScenario from "@skein/testing/Scenario"
import * as Effect from "effect/Effect"
import type { Revision } from "../base/messages.ts"
import { open, type Opened } from "./opened.ts"

/** A tool call that a faulty server has carried out. */
export interface CarriedOutCall {
  /** The id of the JSON-RPC request. */
  readonly id: unknown
  /** The name of the tool. */
  readonly tool: string
  /** The argument `key`, which identifies the call. */
  readonly key: string | undefined
}

/**
 * A fault of one exchange: a request and its response.
 *
 * Faults of the connection:
 * - `Cut`: the connection ends after so many bytes of the response, with an RST (`reset`) or in order.
 * - `Drip`: each byte is written separately. `Delay`: the request waits so many milliseconds, up to 50.
 * - `Stall`: the server sends nothing more. `StopReading`: it reads nothing more of the request.
 *
 * Faults of HTTP: another `Status`, `ContentType` (`""` omits it) or session id, a `Redirect`, forgotten sessions. With
 * `handled` the request is carried out first.
 *
 * Faults of streams: events that are sent twice, in the opposite order, or in another format; a `retry` field of `ms`
 * milliseconds; `CloseStream` ends the stream after its first event, and the rest can be fetched with `Last-Event-ID`.
 *
 * Faults of messages: another id or body of the response, an error, unknown members and methods, a large message, progress
 * that the client did not ask for, events that are not JSON.
 *
 * `Restart`: the port closes, all sessions are dropped, and the port opens again.
 */
export type Fault =
  | { readonly _tag: "Cut"; readonly afterBytes: number; readonly reset: boolean }
  | { readonly _tag: "Drip" }
  | { readonly _tag: "Delay"; readonly ms: number }
  | { readonly _tag: "Stall"; readonly after: "request" | "head" | "event" }
  | { readonly _tag: "StopReading" }
  | {
    readonly _tag: "Status"
    readonly status:
      | 200
      | 202
      | 204
      | 400
      | 401
      | 403
      | 404
      | 405
      | 408
      | 409
      | 410
      | 429
      | 500
      | 501
      | 502
      | 503
      | 504
    readonly body: "empty" | "html" | "error" | "garbage"
    readonly retryAfterSeconds?: number
    readonly handled: boolean
  }
  | {
    readonly _tag: "ContentType"
    readonly type:
      | ""
      | "text/html"
      | "text/plain"
      | "application/json"
      | "text/event-stream"
      | "Text/Event-Stream; charset=UTF-8"
      | "nonsense"
  }
  | {
    readonly _tag: "Redirect"
    readonly status: 301 | 302 | 303 | 307 | 308
    readonly to: "same" | "loop" | "closed port"
  }
  | { readonly _tag: "NewSessionId" }
  | { readonly _tag: "ForgetSessions" }
  | { readonly _tag: "Duplicate" }
  | { readonly _tag: "Reverse" }
  | { readonly _tag: "SseRetry"; readonly ms: number }
  | { readonly _tag: "CloseStream"; readonly retry?: number }
  | {
    readonly _tag: "Formatting"
    readonly bom: boolean
    readonly newline: "\n" | "\r\n" | "\r"
    readonly comments: boolean
    readonly multilineData: boolean
  }
  | {
    readonly _tag: "ResponseId"
    readonly how: "wrong" | "null" | "string" | "missing" | "duplicate" | "other"
  }
  | {
    readonly _tag: "ResponseBody"
    readonly is: "empty" | "html" | "number" | "array" | "object" | "no result" | "truncated"
  }
  | {
    readonly _tag: "ErrorResponse"
    readonly code: -32700 | -32603 | -32602 | -32601 | -32600 | -32000 | 0 | 42
  }
  | { readonly _tag: "ExtraMembers" }
  | { readonly _tag: "UnknownMethods" }
  | { readonly _tag: "LargeMessage"; readonly bytes: number; readonly response: boolean }
  | { readonly _tag: "Progress"; readonly times: number }
  | { readonly _tag: "InvalidJson" }
  | { readonly _tag: "Restart"; readonly handled: boolean; readonly exitCode: number }

/**
 * The kind of exchange that a fault applies to: `handshake`, `request` (any other request), `notification` (or a response of
 * the client), `stream` (a GET), `delete` (a DELETE), or `any`.
 */
export type FaultyExchange = "any" | "handshake" | "request" | "notification" | "stream" | "delete"

/**
 * A fault, and when it happens: to the `nth` exchange of its kind, counted from 0, and to the `times - 1` exchanges after it.
 */
export interface FaultRule {
  readonly on: FaultyExchange
  readonly nth: number
  readonly times: number
  readonly fault: Fault
}

/** The revision and the features of a faulty server, and its faults. It is plain data. */
export interface Scenario {
  /** The one revision that the server speaks: `2025-11-25` by default. `2024-11-05` means HTTP+SSE. */
  readonly revision?: Revision
  /** Whether the server responds with a stream of events (`sse`, the default) or with one JSON object. */
  readonly responses?: "sse" | "json"
  /** Whether the server assigns session ids, up to 2025-11-25: true by default. */
  readonly sessions?: boolean
  /** Whether a client can resume a stream, up to 2025-11-25: true by default. With `primed` it begins with an event. */
  readonly resumable?: boolean | "primed"
  /** Whether a GET opens a stream of its own, up to 2025-11-25: true by default. */
  readonly standaloneStream?: boolean
  /** The faults. An empty list makes a well-behaved server. */
  readonly faults: ReadonlyArray<FaultRule>
}

/** When a fault happens. */
export interface FaultTimes {
  /** The first exchange with the fault, counted from 0: 0 by default. */
  readonly nth?: number | undefined
  /** The number of exchanges with the fault. */
  readonly times?: number | undefined
}

/** Makes the rules of scenarios. */
export const Scenario: {
  /**
   * A fault, and when it happens: to the first exchange of its kind only by default.
   *
   * @example
   * Scenario.rule("request", { _tag: "Status", status: 503, body: "empty", handled: false }, { nth: 1, times: 2 })
   */
  readonly rule: (on: FaultyExchange, fault: Fault, when?: FaultTimes) => FaultRule
  /** The fault `Cut`: ends the connection after so many bytes of the response, with an RST (the default) or in order. */
  readonly cut: (afterBytes: number, how?: "reset" | "end") => Fault
} = { rule: CoreScenario.rule, cut: CoreScenario.cut }

/** A faulty server over HTTP. Its counts are getters: each read returns the current state. */
export interface FaultyHttpServer extends Opened {
  /** The URL of its endpoint. */
  readonly url: string
  /** The HTTP requests that the server received. */
  readonly requestCount: number
  /** The GET requests that it received. */
  readonly streamCount: number
  /** The GET requests that resumed a stream. */
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
  readonly calls: ReadonlyArray<CarriedOutCall>
  /** How often the call with that `key` was carried out. */
  readonly callCount: (key: string) => number
  /** Closes each connection, with an RST or in order. */
  readonly closeConnections: (how: "reset" | "end") => Promise<void>
  /** Drops all sessions. The server responds 404 to their next requests. */
  readonly forgetSessions: () => Promise<void>
  /** Closes the port and each connection, and drops all sessions. `start` opens the same port again. */
  readonly stop: () => Promise<void>
  /** Opens the same port again, after `stop`. */
  readonly start: () => Promise<void>
  /** `stop`, then `start`. */
  readonly restart: () => Promise<void>
  /** Sends a notification on the stream of each session that belongs to no request. */
  readonly notify: (method: string, params?: object) => Promise<void>
}

/** A faulty server over stdio, which its clients start. `close` removes its record of calls. */
export interface FaultyStdioServer extends Opened {
  /** The executable: this Node. */
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The tool calls that all processes have carried out, in order. */
  readonly calls: () => Promise<ReadonlyArray<CarriedOutCall>>
  /** How often the call with that `key` was carried out. */
  readonly callCount: (key: string) => Promise<number>
  /** How often the program was started. */
  readonly startCount: () => Promise<number>
}

const describe = (server: Core.HttpServer): Omit<FaultyHttpServer, keyof Opened> => ({
  get url() {
    return server.url
  },
  get requestCount() {
    return server.requestCount
  },
  get streamCount() {
    return server.streamCount
  },
  get resumptionCount() {
    return server.resumptionCount
  },
  get sessionCount() {
    return server.sessionCount
  },
  get connectionCount() {
    return server.connectionCount
  },
  get openConnections() {
    return server.openConnections
  },
  get restartCount() {
    return server.restartCount
  },
  get calls() {
    return server.calls
  },
  callCount: (key) => server.callCount(key),
  closeConnections: (how) => Effect.runPromise(server.closeConnections(how)),
  forgetSessions: () => Effect.runPromise(server.forgetSessions),
  stop: () => Effect.runPromise(server.stop),
  start: () => Effect.runPromise(server.start),
  restart: () => Effect.runPromise(server.restart),
  notify: (method, params) => Effect.runPromise(server.notify(method, params))
})

/**
 * Servers that misbehave by a scenario. They record the calls that they carried out, so that a test can check that none was
 * repeated.
 *
 * Their tools take a `key` that identifies a call: `echo` returns the key, `add` adds `a` and `b`, `progress` reports progress
 * `n` times, `ask` asks the user for a word, `slow` takes `ms` milliseconds.
 */
export const FaultyServer: {
  /**
   * Starts a faulty server on a free port of 127.0.0.1.
   *
   * @example
   * await using server = await FaultyServer.http({ faults: [Scenario.rule("request", Scenario.cut(100))] })
   * await using client = await AsyncClient.connect(server.url)
   * await expect(client.callTool("echo", { key: "once" })).rejects.toThrow(ClientError)
   * expect(server.callCount("once")).toBe(1)
   */
  readonly http: (scenario: Scenario) => Promise<FaultyHttpServer>
  /**
   * Prepares a program that is a faulty server over stdio, for any number of processes. Each one starts the scenario from its
   * beginning.
   *
   * @example
   * await using server = await FaultyServer.stdio({ faults: [Scenario.rule("request", Scenario.cut(17))] })
   * await using client = await AsyncClient.connect({ command: server.command, args: server.args })
   * await expect(client.callTool("echo", { key: "once" })).rejects.toThrow(ClientError)
   * expect(await server.callCount("once")).toBe(1)
   */
  readonly stdio: (scenario: Scenario) => Promise<FaultyStdioServer>
} = {
  http: (scenario) => open(Core.http(scenario), describe),
  stdio: (scenario) =>
    open(Core.stdio(scenario), ({ args, callCount, calls, command, startCount }) => ({
      args,
      command,
      calls: () => Effect.runPromise(calls),
      callCount: (key) => Effect.runPromise(callCount(key)),
      startCount: () => Effect.runPromise(startCount)
    }))
}

/**
 * Describes which revision a {@link FaultyServer} speaks and which faults it shows, and when. A scenario is plain data:
 * a property test can generate and shrink it, and it can be sent to another process as JSON.
 */
import * as Revision from "@skein/protocol/Revision"
import * as Schema from "effect/Schema"

const count = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/**
 * A fault of one exchange. An exchange is a request and its response over HTTP, and a line and its answer over stdio.
 *
 * Faults of the connection:
 * - `Cut`: the connection ends after `afterBytes` bytes of the response, including its head, with an RST (`reset`) or
 *   with a FIN. A process exits instead.
 * - `Drip`: each byte is written separately.
 * - `Delay`: the request waits `ms` milliseconds on the clock of the fiber that started the server.
 * - `Stall`: the server sends nothing more after it has read the request, sent the response head, or sent the first
 *   event.
 * - `StopReading`: the server reads nothing more of this request and, over stdio, nothing that follows it.
 *
 * Faults of HTTP, ignored over stdio:
 * - `Status`: responds with that status and kind of body, and with `Retry-After` if `retryAfterSeconds` is given. With
 *   `handled` the request is carried out first.
 * - `ContentType`: the response declares that media type. `""` omits the header.
 * - `Redirect`: redirects to the same endpoint once, to the same endpoint every time (`loop`), or to a closed port.
 * - `NewSessionId`: the response names another session id. The session is found by both ids.
 * - `ForgetSessions`: the server drops all sessions before it looks at the request, so that it responds 404.
 *
 * Faults of streams (`Duplicate` and `Reverse` work over stdio too):
 * - `Duplicate`: each event, or line, is sent twice.
 * - `Reverse`: the events, or lines, are sent in the opposite order.
 * - `SseRetry`: the stream starts with a `retry` field of `ms` milliseconds.
 * - `CloseStream`: the stream ends in order after its first event, and the rest can be fetched with `Last-Event-ID`.
 *   `retry` is in milliseconds.
 * - `Formatting`: how the events, or lines, are formatted: a byte order mark, other line ends, comments, `data` in
 *   several lines.
 *
 * Faults of messages:
 * - `ResponseId`: the id of the response is wrong, null, a string, missing, or the id of another request; or the
 *   response is sent twice.
 * - `ResponseBody`: in place of the response the server sends an empty text, an HTML page, a number, an array, an empty
 *   object, a response without result, or the first half of the response.
 * - `ErrorResponse`: the response is an error with that code.
 * - `ExtraMembers`: unknown members are added to every object of the response.
 * - `UnknownMethods`: a request and notifications with unknown methods or ids precede the response.
 * - `LargeMessage`: a notification of `bytes` bytes precedes the response, or with `response` the response itself is
 *   that large.
 * - `Progress`: that many progress notifications precede the response, whether or not the client asked for them.
 * - `InvalidJson`: lines, or events, that are not JSON precede the response.
 *
 * Faults of the process:
 * - `Restart`: the port closes, all sessions are dropped, and the port opens again. A process exits with `exitCode`
 *   instead. With `handled` the request is carried out first, and not answered.
 */
export const Fault = Schema.Union([
  Schema.TaggedStruct("Cut", { afterBytes: count(0, 4_096), reset: Schema.Boolean }),
  Schema.TaggedStruct("Drip", {}),
  Schema.TaggedStruct("Delay", { ms: count(0, 50) }),
  Schema.TaggedStruct("Stall", { after: Schema.Literals(["request", "head", "event"]) }),
  Schema.TaggedStruct("StopReading", {}),
  Schema.TaggedStruct("Status", {
    status: Schema.Literals([200, 202, 204, 400, 401, 403, 404, 405, 408, 409, 410, 429, 500, 501, 502, 503, 504]),
    body: Schema.Literals(["empty", "html", "error", "garbage"]),
    retryAfterSeconds: Schema.optionalKey(count(0, 3)),
    handled: Schema.Boolean
  }),
  Schema.TaggedStruct("ContentType", {
    type: Schema.Literals([
      "",
      "text/html",
      "text/plain",
      "application/json",
      "text/event-stream",
      "Text/Event-Stream; charset=UTF-8",
      "nonsense"
    ])
  }),
  Schema.TaggedStruct("Redirect", {
    status: Schema.Literals([301, 302, 303, 307, 308]),
    to: Schema.Literals(["same", "loop", "closed port"])
  }),
  Schema.TaggedStruct("NewSessionId", {}),
  Schema.TaggedStruct("ForgetSessions", {}),
  Schema.TaggedStruct("Duplicate", {}),
  Schema.TaggedStruct("Reverse", {}),
  Schema.TaggedStruct("SseRetry", { ms: count(0, 50) }),
  Schema.TaggedStruct("CloseStream", { retry: Schema.optionalKey(count(0, 50)) }),
  Schema.TaggedStruct("Formatting", {
    bom: Schema.Boolean,
    newline: Schema.Literals(["\n", "\r\n", "\r"]),
    comments: Schema.Boolean,
    multilineData: Schema.Boolean
  }),
  Schema.TaggedStruct("ResponseId", {
    how: Schema.Literals(["wrong", "null", "string", "missing", "duplicate", "other"])
  }),
  Schema.TaggedStruct("ResponseBody", {
    is: Schema.Literals(["empty", "html", "number", "array", "object", "no result", "truncated"])
  }),
  Schema.TaggedStruct("ErrorResponse", {
    code: Schema.Literals([-32700, -32603, -32602, -32601, -32600, -32000, 0, 42])
  }),
  Schema.TaggedStruct("ExtraMembers", {}),
  Schema.TaggedStruct("UnknownMethods", {}),
  Schema.TaggedStruct("LargeMessage", { bytes: count(1, 8_000_000), response: Schema.Boolean }),
  Schema.TaggedStruct("Progress", { times: count(1, 500) }),
  Schema.TaggedStruct("InvalidJson", {}),
  Schema.TaggedStruct("Restart", { handled: Schema.Boolean, exitCode: count(0, 255) })
])

/** A fault of one exchange: one member of the {@link Fault} schema. */
export type Fault = typeof Fault.Type

/**
 * The kind of exchange that a rule applies to: `handshake` (`server/discover`, `initialize` and the notification after
 * it), `request` (any other request), `notification` (a notification or a response of the client), `stream` (a GET,
 * including one that resumes a stream), `delete` (a DELETE), or `any`.
 */
export const On = Schema.Literals(["any", "handshake", "request", "notification", "stream", "delete"])

/** The kind of exchange that a rule applies to: one of the {@link On} literals. */
export type On = typeof On.Type

/**
 * A fault, and when it happens: to the `nth` exchange of its kind, counted from 0, and to the `times - 1` exchanges
 * after it. If several rules apply to one exchange, all their faults happen as far as they can be combined.
 */
export const Rule = Schema.Struct({
  on: On,
  nth: count(0, 1_000_000),
  times: count(1, 1_000_000),
  fault: Fault
})

/** A fault, and when it happens: the type of the {@link Rule} schema. */
export type Rule = typeof Rule.Type

/**
 * The revision and the features of a faulty server, and its faults.
 *
 * @example
 * const scenario: Scenario.Scenario = {
 *   revision: "2025-11-25",
 *   faults: [Scenario.rule("request", Scenario.cut(120), { nth: 1 })]
 * }
 */
export const Scenario = Schema.Struct({
  /**
   * The one revision that the server speaks. Default: `2025-11-25`. Over HTTP `2024-11-05` means HTTP+SSE with its two
   * endpoints.
   */
  revision: Schema.optionalKey(Schema.Literals(Revision.all)),
  /**
   * Whether the server responds to a request over HTTP with a stream of events (`sse`, the default) or with one JSON
   * object.
   */
  responses: Schema.optionalKey(Schema.Literals(["sse", "json"])),
  /** Whether the server assigns session ids over HTTP, up to 2025-11-25. Default: true. */
  sessions: Schema.optionalKey(Schema.Boolean),
  /**
   * Whether events have ids and a client can resume a stream over HTTP, up to 2025-11-25. Default: true. With `primed`
   * each stream begins with an event that has an id and empty data.
   */
  resumable: Schema.optionalKey(Schema.Literals([false, true, "primed"])),
  /**
   * Whether a GET opens the standalone SSE stream over HTTP, up to 2025-11-25. Default: true. Else the server responds
   * 405.
   */
  standaloneStream: Schema.optionalKey(Schema.Boolean),
  /** The faults. An empty array makes a well-behaved server. */
  faults: Schema.Array(Rule)
})

/** The revision and the features of a faulty server, and its faults: the type of the {@link Scenario} schema. */
export type Scenario = typeof Scenario.Type

/**
 * A fault, and when it happens. Defaults: `nth` 0 and `times` 1, the first exchange of its kind only.
 *
 * @example
 * // The second and the third request get a 503.
 * Scenario.rule("request", { _tag: "Status", status: 503, body: "empty", handled: false }, { nth: 1, times: 2 })
 */
export const rule = (
  on: On,
  fault: Fault,
  when: { readonly nth?: number | undefined; readonly times?: number | undefined } = {}
): Rule => ({
  on,
  fault,
  nth: when.nth ?? 0,
  times: when.times ?? 1
})

/**
 * The `Cut` fault: ends the connection after that many bytes of the response, with an RST (the default) or in order.
 *
 * @example
 * Scenario.rule("stream", Scenario.cut(400, "end"))
 */
export const cut = (afterBytes: number, how: "reset" | "end" = "reset"): Fault => ({
  _tag: "Cut",
  afterBytes,
  reset: how === "reset"
})

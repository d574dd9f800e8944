/**
 * What a rude server does wrong, and when: plain data, so that a property test generates it and makes it smaller, and so that it
 * travels to another process as JSON.
 *
 * ```ts
 * const script: Script.Script = {
 *   revision: "2025-11-25",
 *   faults: [Script.rule("call", Script.cut(120), { nth: 1 })]
 * }
 * ```
 */
import * as Revision from "@skein/protocol/Revision"
import * as Schema from "effect/Schema"

const count = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/**
 * Something that is done wrong with one exchange: over HTTP a request and its response, over stdio a line and what is said about it.
 *
 * Of the bytes:
 * - `Cut`: the connection ends after so many bytes of the response, its head included, with an RST or in order. A process exits.
 * - `Drip`: each byte is written by itself.
 * - `Delay`: the request is kept waiting, in milliseconds of the clock of whoever started the server.
 * - `Silence`: nothing more is said after the request came, after the head of the response, or after its first event.
 * - `Deaf`: nothing more is read, neither of this request nor, over stdio, of what comes after it.
 *
 * Of HTTP; over stdio they are ignored:
 * - `Status`: that status, with a body of that kind, and `Retry-After` in seconds. With `done` the request is handled before.
 * - `ContentType`: the response says that it is of that type.
 * - `Redirect`: to the same endpoint, to itself for ever, or to a port where nobody listens.
 * - `NewSession`: the response names another session, and the server knows the session by both names.
 * - `Forget`: all sessions are forgotten before the request is looked at, so that the answer is 404.
 *
 * Of streams; `Twice` and `Backwards` over stdio too:
 * - `Twice`: each event, or line, is sent twice.
 * - `Backwards`: what is said is said in the opposite order.
 * - `Retry`: the stream says how long to wait before it is taken up again, in milliseconds.
 * - `Poll`: the stream ends after its first event, in order; the answer waits for whoever takes it up again.
 * - `Text`: how the bytes spell the events, or lines: a byte order mark, other ends of lines, comments, and data in pieces.
 *
 * Of messages:
 * - `Id`: the answer has an id that is wrong, null, a string, missing, twice the same, or that of another request.
 * - `Answer`: in the place of the answer stands nothing, a page of HTML, a number, an array, an object without members, an answer
 *   without result, or the first half of the answer.
 * - `Refuse`: the answer is an error with that code.
 * - `Extras`: members that nobody knows are everywhere.
 * - `Strangers`: before the answer comes a request and a notification with methods that nobody knows.
 * - `Huge`: before the answer comes a notification of so many bytes; or the answer is that large itself.
 * - `Progress`: before the answer comes progress, that often, asked for or not.
 * - `Noise`: before the answer come lines, or events, that are no JSON.
 *
 * Of the process:
 * - `Restart`: the port closes, all sessions are forgotten, and the port opens again; a process exits, with that code. With `done` the
 *   request is handled before, and not answered.
 */
export const Fault = Schema.Union([
  Schema.TaggedStruct("Cut", { after: count(0, 4_096), reset: Schema.Boolean }),
  Schema.TaggedStruct("Drip", {}),
  Schema.TaggedStruct("Delay", { ms: count(0, 50) }),
  Schema.TaggedStruct("Silence", { after: Schema.Literals(["request", "head", "event"]) }),
  Schema.TaggedStruct("Deaf", {}),
  Schema.TaggedStruct("Status", {
    status: Schema.Literals([200, 202, 204, 400, 401, 403, 404, 405, 408, 409, 410, 429, 500, 501, 502, 503, 504]),
    body: Schema.Literals(["empty", "html", "error", "garbage"]),
    retryAfter: Schema.optionalKey(count(0, 3)),
    done: Schema.Boolean
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
    to: Schema.Literals(["same", "loop", "nobody"])
  }),
  Schema.TaggedStruct("NewSession", {}),
  Schema.TaggedStruct("Forget", {}),
  Schema.TaggedStruct("Twice", {}),
  Schema.TaggedStruct("Backwards", {}),
  Schema.TaggedStruct("Retry", { ms: count(0, 50) }),
  Schema.TaggedStruct("Poll", { retry: Schema.optionalKey(count(0, 50)) }),
  Schema.TaggedStruct("Text", {
    bom: Schema.Boolean,
    newline: Schema.Literals(["\n", "\r\n", "\r"]),
    comments: Schema.Boolean,
    pieces: Schema.Boolean
  }),
  Schema.TaggedStruct("Id", { how: Schema.Literals(["wrong", "null", "string", "missing", "twice", "another"]) }),
  Schema.TaggedStruct("Answer", {
    is: Schema.Literals(["nothing", "html", "number", "array", "object", "without result", "half"])
  }),
  Schema.TaggedStruct("Refuse", { code: Schema.Literals([-32700, -32603, -32602, -32601, -32600, -32000, 0, 42]) }),
  Schema.TaggedStruct("Extras", {}),
  Schema.TaggedStruct("Strangers", {}),
  Schema.TaggedStruct("Huge", { bytes: count(1, 8_000_000), answer: Schema.Boolean }),
  Schema.TaggedStruct("Progress", { times: count(1, 500) }),
  Schema.TaggedStruct("Noise", {}),
  Schema.TaggedStruct("Restart", { done: Schema.Boolean, code: count(0, 255) })
])

/** See the schema. */
export type Fault = typeof Fault.Type

/**
 * What kind of exchange a fault is for: `handshake` (`server/discover`, `initialize`, and the notification after it), `call` (any
 * other request), `notice` (a notification or an answer of the client's), `stream` (a GET, also one that takes a stream up again),
 * `end` (a DELETE), or any of them.
 */
export const On = Schema.Literals(["any", "handshake", "call", "notice", "stream", "end"])

/** See the schema. */
export type On = typeof On.Type

/**
 * A fault, and when it happens: to the `nth` exchange of its kind, counted from 0, and to the `times - 1` after it. Where several
 * are for the same exchange all of them happen, as far as they can.
 */
export const Rule = Schema.Struct({
  on: On,
  nth: count(0, 1_000_000),
  times: count(1, 1_000_000),
  fault: Fault
})

/** See the schema. */
export type Rule = typeof Rule.Type

/** What a rude server speaks, and what it does wrong. */
export const Script = Schema.Struct({
  /** The one revision that it speaks: `2025-11-25` by default. Over HTTP `2024-11-05` is the pair of endpoints. */
  revision: Schema.optionalKey(Schema.Literals(Revision.all)),
  /** Whether requests are answered with a stream of events (the default) or with one JSON object, over HTTP. */
  answers: Schema.optionalKey(Schema.Literals(["events", "json"])),
  /** Whether there are session ids, in the session era over HTTP: true by default. */
  sessions: Schema.optionalKey(Schema.Boolean),
  /**
   * Whether events have ids and streams may be taken up again, in the session era over HTTP: true by default. With `primed` each
   * stream begins with an event without data.
   */
  resumable: Schema.optionalKey(Schema.Literals([false, true, "primed"])),
  /** Whether a GET opens a stream, in the session era over HTTP: true by default. Else it is answered with 405. */
  listens: Schema.optionalKey(Schema.Boolean),
  faults: Schema.Array(Rule)
})

/** See the schema. */
export type Script = typeof Script.Type

/** A rule: the first exchange of its kind, and no other, unless it is said. */
export const rule = (on: On, fault: Fault, when: { readonly nth?: number; readonly times?: number } = {}): Rule => ({
  on,
  fault,
  nth: when.nth ?? 0,
  times: when.times ?? 1
})

/** Cuts the connection after so many bytes of the response. */
export const cut = (after: number, how: "reset" | "end" = "reset"): Fault => ({
  _tag: "Cut",
  after,
  reset: how === "reset"
})

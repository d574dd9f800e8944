/** Arbitrary scenarios with a few faults each, small enough to read when a property fails. */
import * as Scenario from "@skein/testing/Scenario"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"

// Generated numbers cluster at the ends of their range. This hash spreads them evenly.
const spread = (n: number): number => {
  let x = (n + 0x9e37_79b9) >>> 0
  x = Math.imul(x ^ (x >>> 16), 0x21f0_aaad)
  x = Math.imul(x ^ (x >>> 15), 0x735a_2d97)
  return (x ^ (x >>> 15)) >>> 0
}

const word = Arbitrary.map(
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff_ffff }))),
  spread
)

/** Exchange kinds, weighted by repetition: most faults happen to requests. */
const on: ReadonlyArray<Scenario.On> = [
  "request",
  "request",
  "request",
  "request",
  "request",
  "stream",
  "stream",
  "notification",
  "handshake",
  "any",
  "delete"
]

/** The longest message that the clients of these tests read, in bytes. */
export const maxMessageBytes = 65_536

/** Replaces generated sizes by sizes around the bounds, and generated times by short ones. */
const withRelevantSizes = (fault: Scenario.Fault, n: number): Scenario.Fault => {
  switch (fault._tag) {
    case "Cut":
      return { ...fault, afterBytes: n % 800 }
    case "LargeMessage":
      return { ...fault, bytes: [100, maxMessageBytes - 40, maxMessageBytes + 1, 4 * maxMessageBytes][n % 4]! }
    case "Delay":
    case "SseRetry":
      return { ...fault, ms: n % 20 }
    case "Progress":
      return { ...fault, times: 1 + n % 200 }
    default:
      return fault
  }
}

const rule = Arbitrary.map(
  Arbitrary.all([word, word, word, word, Arbitrary.schema(Scenario.Fault)]),
  ([kind, nth, times, n, fault]): Scenario.Rule => ({
    on: on[kind % on.length]!,
    nth: nth % 5,
    times: times % 8 === 0 ? 1_000 : 1 + times % 3,
    fault: withRelevantSizes(fault, n)
  })
)

const faults = Arbitrary.array(rule, { minLength: 1, maxLength: 6 })

const bool = Arbitrary.schema(Schema.Boolean)

/** Faults of a stream that has begun, after which the client still receives the response. */
const recoverable: ReadonlyArray<(n: number) => Scenario.Fault> = [
  // After the head and the first event, even if other texts precede it.
  (n) => Scenario.cut(400 + n % 600, n % 2 === 0 ? "reset" : "end"),
  (n) => ({ _tag: "CloseStream", retry: n % 20 }),
  () => ({ _tag: "CloseStream" }),
  (n) => ({ _tag: "SseRetry", ms: n % 20 }),
  () => ({ _tag: "Drip" }),
  () => ({ _tag: "Duplicate" }),
  (n) => ({ _tag: "Delay", ms: n % 20 }),
  (n) => ({
    _tag: "Formatting",
    bom: n % 2 === 0,
    newline: (["\n", "\r\n", "\r"] as const)[n % 3]!,
    comments: n % 5 === 0,
    multilineData: n % 7 > 3
  }),
  (n) => ({ _tag: "Progress", times: 1 + n % 100 }),
  () => ({ _tag: "UnknownMethods" }),
  () => ({ _tag: "InvalidJson" }),
  () => ({ _tag: "ExtraMembers" }),
  () => ({ _tag: "ResponseId", how: "duplicate" })
]

/** Faults of a request that resumes a stream, after which the client still receives the response. */
const recoverableOnResume: ReadonlyArray<(n: number) => Scenario.Fault> = [
  ...recoverable,
  (n) => Scenario.cut(n % 500, n % 2 === 0 ? "reset" : "end"),
  (n) => ({
    _tag: "Status",
    status: ([408, 429, 500, 502, 503, 504] as const)[n % 6]!,
    body: (["empty", "html", "error", "garbage"] as const)[n % 4]!,
    handled: false
  })
]

const recoverableRule = Arbitrary.map(
  Arbitrary.all([bool, word, word, word, word]),
  ([onRequest, nth, times, which, n]) => {
    const among = onRequest ? recoverable : recoverableOnResume
    return {
      on: onRequest ? "request" : "stream",
      nth: nth % 8,
      times: 1 + times % 4,
      fault: among[which % among.length]!(n)
    } as const
  }
)

/** A server with resumable streams whose faults lose no response. */
export const harmless: Arbitrary.Arbitrary<Scenario.Scenario> = Arbitrary.map(
  Arbitrary.array(recoverableRule, { minLength: 1, maxLength: 8 }),
  (faults) => ({ revision: "2025-11-25", resumable: "primed", faults })
)

/** A server up to 2025-11-25 over HTTP, with resumable streams. */
export const resumable: Arbitrary.Arbitrary<Scenario.Scenario> = Arbitrary.map(
  Arbitrary.all([faults, bool]),
  ([faults, primed]) => ({ revision: "2025-11-25", resumable: primed ? "primed" : true, faults })
)

/** A server up to 2025-11-25 over HTTP, without resumable streams. */
export const session: Arbitrary.Arbitrary<Scenario.Scenario> = Arbitrary.map(
  Arbitrary.all([
    faults,
    Arbitrary.schema(Schema.Literals(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])),
    bool,
    bool,
    bool
  ]),
  ([faults, revision, json, sessions, listens]) => ({
    revision,
    responses: json ? "json" : "sse",
    sessions,
    resumable: false,
    listens,
    faults
  })
)

/** A stateless server (2026-07-28). */
export const stateless: Arbitrary.Arbitrary<Scenario.Scenario> = Arbitrary.map(
  Arbitrary.all([faults, bool]),
  ([faults, json]) => ({ revision: "2026-07-28", responses: json ? "json" : "sse", faults })
)

/** A server over stdio. */
export const stdio: Arbitrary.Arbitrary<Scenario.Scenario> = Arbitrary.map(
  Arbitrary.all([faults, bool]),
  ([faults, modern]) => ({ revision: modern ? "2026-07-28" : "2025-11-25", faults })
)

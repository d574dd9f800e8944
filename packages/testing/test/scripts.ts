/** Scripts for properties: what is generated is a script that is rude a few times, and small enough to be read when it fails. */
import * as Script from "@skein/testing/Script"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"

// Generated numbers lean to the ends of their range: spread them.
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

/** In parts of what they are for: most of it happens to the calls. */
const on: ReadonlyArray<Script.On> = [
  "call",
  "call",
  "call",
  "call",
  "call",
  "stream",
  "stream",
  "notice",
  "handshake",
  "any",
  "end"
]

/** The longest message that the clients of these tests read, in bytes. */
export const maxMessage = 65_536

/** As the schema generates it, but with sizes that matter, and times that are short. */
const near = (fault: Script.Fault, n: number): Script.Fault => {
  switch (fault._tag) {
    case "Cut":
      return { ...fault, after: n % 800 }
    case "Huge":
      return { ...fault, bytes: [100, maxMessage - 40, maxMessage + 1, 4 * maxMessage][n % 4]! }
    case "Delay":
    case "Retry":
      return { ...fault, ms: n % 20 }
    case "Progress":
      return { ...fault, times: 1 + n % 200 }
    default:
      return fault
  }
}

const rule = Arbitrary.map(
  Arbitrary.all([word, word, word, word, Arbitrary.schema(Script.Fault)]),
  ([kind, nth, times, n, fault]): Script.Rule => ({
    on: on[kind % on.length]!,
    nth: nth % 5,
    times: times % 8 === 0 ? 1_000 : 1 + times % 3,
    fault: near(fault, n)
  })
)

const faults = Arbitrary.array(rule, { minLength: 1, maxLength: 6 })

const bool = Arbitrary.schema(Schema.Boolean)

/** What may happen to the stream of a call, once it has begun, without its answer being lost. */
const mended: ReadonlyArray<(n: number) => Script.Fault> = [
  // Beyond the head and the first event, whatever else is said before it.
  (n) => Script.cut(400 + n % 600, n % 2 === 0 ? "reset" : "end"),
  (n) => ({ _tag: "Poll", retry: n % 20 }),
  () => ({ _tag: "Poll" }),
  (n) => ({ _tag: "Retry", ms: n % 20 }),
  () => ({ _tag: "Drip" }),
  () => ({ _tag: "Twice" }),
  (n) => ({ _tag: "Delay", ms: n % 20 }),
  (n) => ({
    _tag: "Text",
    bom: n % 2 === 0,
    newline: (["\n", "\r\n", "\r"] as const)[n % 3]!,
    comments: n % 5 === 0,
    pieces: n % 7 > 3
  }),
  (n) => ({ _tag: "Progress", times: 1 + n % 100 }),
  () => ({ _tag: "Strangers" }),
  () => ({ _tag: "Noise" }),
  () => ({ _tag: "Extras" }),
  () => ({ _tag: "Id", how: "twice" })
]

/** What may happen besides when it is taken up again. */
const retried: ReadonlyArray<(n: number) => Script.Fault> = [
  ...mended,
  (n) => Script.cut(n % 500, n % 2 === 0 ? "reset" : "end"),
  (n) => ({
    _tag: "Status",
    status: ([408, 429, 500, 502, 503, 504] as const)[n % 6]!,
    body: (["empty", "html", "error", "garbage"] as const)[n % 4]!,
    done: false
  })
]

const mendedRule = Arbitrary.map(Arbitrary.all([bool, word, word, word, word]), ([onCall, nth, times, which, n]) => {
  const among = onCall ? mended : retried
  return {
    on: onCall ? "call" : "stream",
    nth: nth % 8,
    times: 1 + times % 4,
    fault: among[which % among.length]!(n)
  } as const
})

/** What a server may do whose streams can be taken up again, without any answer being lost. */
export const harmless: Arbitrary.Arbitrary<Script.Script> = Arbitrary.map(
  Arbitrary.array(mendedRule, { minLength: 1, maxLength: 8 }),
  (faults) => ({ revision: "2025-11-25", resumable: "primed", faults })
)

/** What a server of the session era does over HTTP, with streams that can be taken up again. */
export const resumable: Arbitrary.Arbitrary<Script.Script> = Arbitrary.map(
  Arbitrary.all([faults, bool]),
  ([faults, primed]) => ({ revision: "2025-11-25", resumable: primed ? "primed" : true, faults })
)

/** What any other server of the session era does over HTTP. */
export const session: Arbitrary.Arbitrary<Script.Script> = Arbitrary.map(
  Arbitrary.all([
    faults,
    Arbitrary.schema(Schema.Literals(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])),
    bool,
    bool,
    bool
  ]),
  ([faults, revision, json, sessions, listens]) => ({
    revision,
    answers: json ? "json" : "events",
    sessions,
    resumable: false,
    listens,
    faults
  })
)

/** What a server of the request era does. */
export const alone: Arbitrary.Arbitrary<Script.Script> = Arbitrary.map(
  Arbitrary.all([faults, bool]),
  ([faults, json]) => ({ revision: "2026-07-28", answers: json ? "json" : "events", faults })
)

/** What a server of any era does over stdio. */
export const stdio: Arbitrary.Arbitrary<Script.Script> = Arbitrary.map(
  Arbitrary.all([faults, bool]),
  ([faults, modern]) => ({ revision: modern ? "2026-07-28" : "2025-11-25", faults })
)

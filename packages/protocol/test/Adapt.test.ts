import { compile } from "@skein/protocol/Adapt"
import { field, member, only, refuse, since, Unrepresentable, until } from "@skein/protocol/Annotate"
import * as Codec from "@skein/protocol/Codec"
import type * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { describe, expect, it } from "vitest"

const run = (schema: Schema.Top, revision: Revision.Revision, direction: "lift" | "lower") => (value: unknown) => {
  const adapter = compile(schema.ast, revision, direction)
  return adapter === undefined ? value : adapter(value)
}

const lower = (schema: Schema.Top, revision: Revision.Revision) => run(schema, revision, "lower")
const lift = (schema: Schema.Top, revision: Revision.Revision) => run(schema, revision, "lift")

const text = Schema.optionalKey(Schema.String)

describe("windows of fields", () => {
  const Thing = Schema.Struct({
    name: Schema.String,
    young: since("2025-06-18", text),
    old: until("2025-06-18", text),
    once: only("2025-11-25", text)
  })
  const all = { name: "n", young: "y", old: "o", once: "1", other: true }

  it("writing leaves out what a revision does not know, and keeps what the model does not know", () => {
    expect(lower(Thing, "2025-03-26")(all)).toEqual({ name: "n", old: "o", other: true })
    expect(lower(Thing, "2025-06-18")(all)).toEqual({ name: "n", young: "y", other: true })
    expect(lower(Thing, "2025-11-25")(all)).toEqual({ name: "n", young: "y", once: "1", other: true })
    expect(lower(Thing, "2026-07-28")(all)).toEqual({ name: "n", young: "y", other: true })
  })

  it("reading ignores a member whose name means nothing in the revision, whatever it holds", () => {
    expect(lift(Thing, "2025-03-26")({ name: "n", young: 7, once: null })).toEqual({ name: "n" })
    expect(Codec.decode(Thing, "2025-03-26", { name: "n", young: 7 })).toEqual(Result.succeed({ name: "n" }))
    expect(Result.isFailure(Codec.decode(Thing, "2025-06-18", { name: "n", young: 7 }))).toBe(true)
  })

  it("what is not affected is passed by reference, and what is, is not changed in place", () => {
    const plain = { name: "n", other: {} }
    expect(lower(Thing, "2024-11-05")(plain)).toBe(plain)
    expect(lift(Thing, "2024-11-05")(plain)).toBe(plain)
    lower(Thing, "2024-11-05")(all)
    expect(all.young).toBe("y")
  })

  it("rules that are hung on one field are merged, and survive optionalKey, annotate and check", () => {
    const Merged = Schema.Struct({
      a: until("2025-11-25", since("2025-03-26", text)),
      b: Schema.optionalKey(since("2025-06-18", Schema.String)),
      c: since("2025-06-18", text).annotate({ description: "c" }),
      d: Schema.optionalKey(since("2025-06-18", Schema.String).check(Schema.isNonEmpty()))
    })
    const value = { a: "a", b: "b", c: "c", d: "d" }
    expect(lower(Merged, "2024-11-05")(value)).toEqual({})
    expect(lower(Merged, "2025-03-26")(value)).toEqual({ a: "a" })
    expect(lower(Merged, "2025-11-25")(value)).toEqual({ b: "b", c: "c", d: "d" })
  })

  it("a field that must not be left out is refused", () => {
    const Strict = Schema.Struct({ tools: since("2025-11-25", text, { refuse: "tools" }) })
    expect(() => lower(Strict, "2025-06-18")({ tools: "t" })).toThrow(Unrepresentable)
    expect(lower(Strict, "2025-06-18")({})).toEqual({})
    expect(lower(Strict, "2025-11-25")({ tools: "t" })).toEqual({ tools: "t" })
  })
})

describe("what fills a field", () => {
  const Filled = Schema.Struct({
    kind: since("2026-07-28", text, { default: "complete" }),
    ttl: since("2026-07-28", Schema.optionalKey(Schema.Int), { fill: () => 0 }),
    id: only("2025-11-25", text, { fill: (revision) => `of ${revision}` })
  })

  it("a default is filled in when reading any revision, and when writing within the window", () => {
    expect(lift(Filled, "2024-11-05")({})).toEqual({ kind: "complete" })
    expect(lift(Filled, "2026-07-28")({})).toEqual({ kind: "complete" })
    expect(lift(Filled, "2024-11-05")({ kind: 7 })).toEqual({ kind: "complete" })
    expect(lower(Filled, "2025-06-18")({})).toEqual({})
    expect(lower(Filled, "2026-07-28")({})).toEqual({ kind: "complete", ttl: 0 })
    expect(lower(Filled, "2026-07-28")({ kind: "task", ttl: 5 })).toEqual({ kind: "task", ttl: 5 })
  })

  it("a fill is for writing only, and only where the field exists", () => {
    expect(lower(Filled, "2025-11-25")({ kind: "complete" })).toEqual({ id: "of 2025-11-25" })
    expect(lift(Filled, "2025-11-25")({ kind: "x" })).toEqual({ kind: "complete" })
  })

  it("a fill may leave the field absent, or refuse", () => {
    const Maybe = Schema.Struct({
      id: field(text, { fill: (revision) => revision === "2025-11-25" ? undefined : refuse("no id") })
    })
    const value = {}
    expect(lower(Maybe, "2025-11-25")(value)).toBe(value)
    expect(() => lower(Maybe, "2026-07-28")(value)).toThrow("no id")
  })
})

describe("what some revisions require", () => {
  const Cancelled = Schema.Struct({ requestId: field(text, { required: (revision) => revision !== "2025-11-25" }) })

  it("reading fails without it, at its path, and writing is refused", () => {
    expect(Codec.decode(Cancelled, "2025-06-18", {}, "params")).toEqual(
      Result.fail("params.requestId: Expected string")
    )
    expect(Codec.decode(Cancelled, "2025-06-18", { requestId: "1" })).toEqual(Result.succeed({ requestId: "1" }))
    expect(() => lower(Cancelled, "2026-07-28")({})).toThrow("2026-07-28 requires requestId")
    expect(Codec.decode(Cancelled, "2025-11-25", {})).toEqual(Result.succeed({}))
    expect(lower(Cancelled, "2025-11-25")({})).toEqual({})
  })
})

describe("renames and changes of fields", () => {
  const Task = Schema.Struct({
    ttlMs: field(Schema.optionalKey(Schema.Int), { rename: { to: "ttl", since: "2025-11-25", until: "2026-07-28" } })
  })

  it("a field has another name on the wire in some revisions", () => {
    expect(lower(Task, "2025-11-25")({ ttlMs: 1, x: 2 })).toEqual({ ttl: 1, x: 2 })
    expect(lift(Task, "2025-11-25")({ ttl: 1, x: 2 })).toEqual({ ttlMs: 1, x: 2 })
    const value = { ttlMs: 1 }
    expect(lower(Task, "2026-07-28")(value)).toBe(value)
  })

  it("an unknown member that goes by the field's other name is not taken for it", () => {
    expect(lift(Task, "2025-11-25")({ ttlMs: "junk", x: 2 })).toEqual({ x: 2 })
    expect(lift(Task, "2025-11-25")({ ttlMs: "junk", ttl: 1 })).toEqual({ ttlMs: 1 })
    expect(lower(Task, "2025-11-25")({ ttl: "junk", ttlMs: 1 })).toEqual({ ttl: 1 })
  })

  it("`lower` changes what is written, and `undefined` leaves it out; `lift` the same when reading", () => {
    const Changed = Schema.Struct({
      size: field(Schema.optionalKey(Schema.Int), {
        lower: (size) => size < 0 ? undefined : size * 2,
        lift: (size) => typeof size === "number" ? size / 2 : undefined
      })
    })
    expect(lower(Changed, "2026-07-28")({ size: 2 })).toEqual({ size: 4 })
    expect(lower(Changed, "2026-07-28")({ size: -2, a: 1 })).toEqual({ a: 1 })
    expect(lift(Changed, "2026-07-28")({ size: 4 })).toEqual({ size: 2 })
    expect(lift(Changed, "2026-07-28")({ size: "4", a: 1 })).toEqual({ a: 1 })
  })
})

describe("members of unions", () => {
  const Text = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, title: since("2025-06-18", text) })
  const Audio = member(Schema.Struct({ type: Schema.Literal("audio"), mimeType: Schema.String }), {
    since: "2025-03-26",
    degrade: (audio) => ({ type: "text", text: `[${audio.mimeType}]`, title: "t" })
  })
  const Call = member(Schema.Struct({ type: Schema.Literal("call"), id: Schema.String }), {
    since: "2025-11-25",
    name: "calls"
  })
  const Many = member(Schema.Array(Text), { since: "2025-11-25", degrade: ([first]) => first })
  const Block = Schema.Union([Text, Audio, Call, Many])
  const Message = Schema.Struct({ content: Schema.Array(Block) })

  it("a member that a revision lacks is degraded, and what it was degraded into is lowered", () => {
    const audio = { type: "audio", mimeType: "audio/wav" }
    expect(lower(Block, "2024-11-05")(audio)).toEqual({ type: "text", text: "[audio/wav]" })
    expect(lower(Block, "2025-03-26")(audio)).toBe(audio)
  })

  it("without a way to degrade it is refused, by its name", () => {
    expect(() => lower(Block, "2025-06-18")({ type: "call", id: "1" })).toThrow("2025-06-18 does not support calls")
    expect(lower(Block, "2025-11-25")({ type: "call", id: "1" })).toEqual({ type: "call", id: "1" })
  })

  it("what degrades into itself is refused rather than tried for ever", () => {
    const Loop = Schema.Union([member(Schema.Struct({ a: Schema.String }), { since: "2025-11-25", degrade: (v) => v })])
    expect(() => lower(Loop, "2024-11-05")({ a: "a" })).toThrow(Unrepresentable)
  })

  it("members are told apart by their kind, their literals and what they require", () => {
    expect(lower(Block, "2025-06-18")([{ type: "text", text: "a" }])).toEqual({ type: "text", text: "a" })
    const Shapes = Schema.Union([
      Schema.Struct({ uri: Schema.String, text: Schema.String, title: since("2026-07-28", text) }),
      Schema.Struct({ uri: Schema.String, blob: Schema.String })
    ])
    expect(lower(Shapes, "2025-11-25")({ uri: "u", text: "t", title: "x" })).toEqual({ uri: "u", text: "t" })
    const blob = { uri: "u", blob: "b", title: "x" }
    expect(lower(Shapes, "2025-11-25")(blob)).toBe(blob)
  })

  it("reading prefers a member that the revision has", () => {
    const Params = Schema.Union([
      member(Schema.Struct({ mode: Schema.Literal("url"), message: Schema.String }), { since: "2025-11-25" }),
      Schema.Struct({ mode: since("2025-11-25", Schema.optionalKey(Schema.Literal("form"))), message: Schema.String })
    ])
    expect(lift(Params, "2025-06-18")({ mode: "url", message: "m" })).toEqual({ message: "m" })
    expect(lift(Params, "2025-11-25")({ mode: "url", message: "m" })).toEqual({ mode: "url", message: "m" })
  })

  it("an array is copied only when an element changes", () => {
    const same = { content: [{ type: "text", text: "a" }] }
    expect(lower(Message, "2024-11-05")(same)).toBe(same)
    const first = { type: "text", text: "a" }
    const mixed = { content: [first, { type: "text", text: "b", title: "t" }] }
    const lowered = lower(Message, "2024-11-05")(mixed) as typeof mixed
    expect(lowered.content).toEqual([first, { type: "text", text: "b" }])
    expect(lowered.content[0]).toBe(first)
    expect(mixed.content[1]).toHaveProperty("title")
  })
})

describe("records and recursion", () => {
  const Leaf = Schema.Struct({ a: text, b: since("2025-06-18", text) })

  it("the values of a record are adapted, under any key", () => {
    const value = JSON.parse("{\"__proto__\":{\"b\":\"1\"},\"k\":{\"a\":\"2\",\"b\":\"3\"}}")
    const out = lower(Schema.Record(Schema.String, Leaf), "2024-11-05")(value)
    expect(JSON.stringify(out)).toBe("{\"__proto__\":{},\"k\":{\"a\":\"2\"}}")
  })

  interface Tree {
    readonly children: ReadonlyArray<Tree>
    readonly name?: string
  }
  const Tree = Schema.Struct({
    name: since("2025-06-18", text),
    children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
  })

  it("a recursive schema is adapted all the way down", () => {
    const value = { name: "a", children: [{ name: "b", children: [] }] }
    expect(lower(Tree, "2025-03-26")(value)).toEqual({ children: [{ children: [] }] })
    expect(lower(Tree, "2025-06-18")(value)).toBe(value)
  })
})

describe("hostile input", () => {
  const Thing = Schema.Struct({
    a: text,
    gone: since("2026-07-28", text),
    kind: since("2026-07-28", text, { default: "x" })
  })

  it("an own __proto__ stays an own member, and no prototype is touched", () => {
    const raw = JSON.parse("{\"__proto__\":{\"polluted\":true},\"a\":\"1\",\"gone\":\"2\"}")
    for (const direction of ["lift", "lower"] as const) {
      const out = run(Thing, "2024-11-05", direction)(raw) as object
      expect(Object.getPrototypeOf(out)).toBe(Object.prototype)
      expect(Object.hasOwn(out, "__proto__")).toBe(true)
      expect((out as { polluted?: unknown }).polluted).toBeUndefined()
      expect(JSON.stringify(out)).toContain("\"__proto__\":{\"polluted\":true}")
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  it("lifting is total: any kind of value is passed on to validation", () => {
    const Union = Schema.Union([Thing, Schema.Array(Thing), Schema.String])
    for (const value of [null, undefined, 7, "s", true, [], [null], {}, { a: null }, [[{}]], Symbol.iterator]) {
      expect(() => lift(Thing, "2024-11-05")(value)).not.toThrow()
      expect(() => lift(Union, "2024-11-05")(value)).not.toThrow()
      expect(() => lower(Union, "2024-11-05")(value)).not.toThrow()
    }
  })
})

describe("compilation", () => {
  it("happens once per node and revision", () => {
    const Thing = Schema.Struct({ a: since("2025-06-18", text) })
    expect(compile(Thing.ast, "2024-11-05", "lower")).toBe(compile(Thing.ast, "2024-11-05", "lower"))
    expect(compile(Thing.ast, "2024-11-05", "lower")).not.toBe(compile(Thing.ast, "2024-11-05", "lift"))
    expect(compile(Thing.ast, "2025-06-18", "lower")).toBeUndefined()
  })
})

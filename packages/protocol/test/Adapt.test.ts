import { compile } from "@skein/protocol/Adapt"
import { field, member, only, refuse, since, Unrepresentable, until } from "@skein/protocol/Annotate"
import * as Codec from "@skein/protocol/Codec"
import * as Revision from "@skein/protocol/Revision"
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

describe("the window of a field", () => {
  const Thing = Schema.Struct({
    name: Schema.String,
    young: since("2025-06-18", text),
    old: until("2025-06-18", text),
    once: only("2025-11-25", text)
  })
  const all = { name: "n", young: "y", old: "o", once: "1", other: true }

  it("lowering leaves out fields outside their window, and keeps unknown members", () => {
    expect(lower(Thing, "2025-03-26")(all)).toEqual({ name: "n", old: "o", other: true })
    expect(lower(Thing, "2025-06-18")(all)).toEqual({ name: "n", young: "y", other: true })
    expect(lower(Thing, "2025-11-25")(all)).toEqual({ name: "n", young: "y", once: "1", other: true })
    expect(lower(Thing, "2026-07-28")(all)).toEqual({ name: "n", young: "y", other: true })
  })

  it("lifting keeps a field outside its window", () => {
    for (const revision of Revision.all) expect(lift(Thing, revision)(all)).toBe(all)
    expect(Codec.decode(Thing, "2025-03-26", all)).toEqual(Result.succeed(all))
  })

  it("decoding leaves out a malformed field outside its window, and refuses one within it", () => {
    expect(Codec.decode(Thing, "2025-03-26", { name: "n", young: 7, once: null })).toEqual(
      Result.succeed({ name: "n" })
    )
    expect(Codec.decode(Thing, "2025-06-18", { name: "n", young: 7 }, "a")).toEqual(
      Result.fail("a.young: Expected string")
    )
  })

  it("returns an unaffected value by reference, and copies an affected one", () => {
    const plain = { name: "n", other: {} }
    expect(lower(Thing, "2024-11-05")(plain)).toBe(plain)
    expect(lift(Thing, "2024-11-05")(plain)).toBe(plain)
    lower(Thing, "2024-11-05")(all)
    expect(all.young).toBe("y")
  })

  it("merges the rules of a field, and keeps them through optionalKey, annotate and check", () => {
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

  it("lowering refuses a field with `refuse` outside its window", () => {
    const Strict = Schema.Struct({ tools: since("2025-11-25", text, { refuse: "tools" }) })
    expect(() => lower(Strict, "2025-06-18")({ tools: "t" })).toThrow(Unrepresentable)
    expect(lower(Strict, "2025-06-18")({})).toEqual({})
    expect(lower(Strict, "2025-11-25")({ tools: "t" })).toEqual({ tools: "t" })
  })
})

describe("filling a field in", () => {
  const Filled = Schema.Struct({
    kind: since("2026-07-28", text, { default: "complete" }),
    ttl: since("2026-07-28", Schema.optionalKey(Schema.Int), { fill: () => 0 }),
    id: only("2025-11-25", text, { fill: (revision) => `of ${revision}` })
  })

  it("fills a default in when lifting any revision, and when lowering within the window", () => {
    expect(lift(Filled, "2024-11-05")({})).toEqual({ kind: "complete" })
    expect(lift(Filled, "2026-07-28")({})).toEqual({ kind: "complete" })
    expect(lift(Filled, "2024-11-05")({ kind: null })).toEqual({ kind: "complete" })
    expect(Codec.decode(Filled, "2024-11-05", { kind: 7 })).toEqual(Result.succeed({ kind: "complete" }))
    expect(lower(Filled, "2025-06-18")({})).toEqual({})
    expect(lower(Filled, "2026-07-28")({})).toEqual({ kind: "complete", ttl: 0 })
    expect(lower(Filled, "2026-07-28")({ kind: "task", ttl: 5 })).toEqual({ kind: "task", ttl: 5 })
  })

  it("calls `fill` only when lowering, and only within the window", () => {
    expect(lower(Filled, "2025-11-25")({ kind: "complete" })).toEqual({ id: "of 2025-11-25" })
    expect(lift(Filled, "2025-11-25")({ kind: "x" })).toEqual({ kind: "x" })
  })

  it("a fill can leave the field absent, or refuse", () => {
    const Maybe = Schema.Struct({
      id: field(text, { fill: (revision) => revision === "2025-11-25" ? undefined : refuse("no id") })
    })
    const value = {}
    expect(lower(Maybe, "2025-11-25")(value)).toBe(value)
    expect(() => lower(Maybe, "2026-07-28")(value)).toThrow("no id")
  })
})

describe("a field that some revisions require", () => {
  const Cancelled = Schema.Struct({ requestId: field(text, { required: (revision) => revision !== "2025-11-25" }) })

  it("decoding fails with its path where it is missing, and lowering refuses", () => {
    expect(Codec.decode(Cancelled, "2025-06-18", {}, "params")).toEqual(
      Result.fail("params.requestId: Expected string")
    )
    expect(Codec.decode(Cancelled, "2025-06-18", { requestId: "1" })).toEqual(Result.succeed({ requestId: "1" }))
    expect(() => lower(Cancelled, "2026-07-28")({})).toThrow("2026-07-28 requires requestId")
    expect(Codec.decode(Cancelled, "2025-11-25", {})).toEqual(Result.succeed({}))
    expect(lower(Cancelled, "2025-11-25")({})).toEqual({})
  })
})

describe("renaming and changing a field", () => {
  const Task = Schema.Struct({
    ttlMs: field(Schema.optionalKey(Schema.Int), { rename: { to: "ttl", since: "2025-11-25", until: "2026-07-28" } })
  })

  it("renames a field on the wire in the revisions of its `rename`", () => {
    expect(lower(Task, "2025-11-25")({ ttlMs: 1, x: 2 })).toEqual({ ttl: 1, x: 2 })
    expect(lift(Task, "2025-11-25")({ ttl: 1, x: 2 })).toEqual({ ttlMs: 1, x: 2 })
    const value = { ttlMs: 1 }
    expect(lower(Task, "2026-07-28")(value)).toBe(value)
  })

  it("does not take an unknown member with the field's other name for the field", () => {
    expect(lift(Task, "2025-11-25")({ ttlMs: "junk", x: 2 })).toEqual({ x: 2 })
    expect(lift(Task, "2025-11-25")({ ttlMs: "junk", ttl: 1 })).toEqual({ ttlMs: 1 })
    expect(lower(Task, "2025-11-25")({ ttl: "junk", ttlMs: 1 })).toEqual({ ttl: 1 })
  })

  it("`lower` and `lift` change the value, and `undefined` leaves the field out", () => {
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

describe("a member of a union", () => {
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

  it("degrades a member outside its window, and lowers the result", () => {
    const audio = { type: "audio", mimeType: "audio/wav" }
    expect(lower(Block, "2024-11-05")(audio)).toEqual({ type: "text", text: "[audio/wav]" })
    expect(lower(Block, "2025-03-26")(audio)).toBe(audio)
  })

  it("refuses a member without `degrade`, with its name", () => {
    expect(() => lower(Block, "2025-06-18")({ type: "call", id: "1" })).toThrow("2025-06-18 does not support calls")
    expect(lower(Block, "2025-11-25")({ type: "call", id: "1" })).toEqual({ type: "call", id: "1" })
  })

  it("refuses a member that degrades into itself, and ends", () => {
    const Loop = Schema.Union([member(Schema.Struct({ a: Schema.String }), { since: "2025-11-25", degrade: (v) => v })])
    expect(() => lower(Loop, "2024-11-05")({ a: "a" })).toThrow(Unrepresentable)
  })

  it("recognizes members by their type, their literals and their required fields", () => {
    expect(lower(Block, "2025-06-18")([{ type: "text", text: "a" }])).toEqual({ type: "text", text: "a" })
    const Shapes = Schema.Union([
      Schema.Struct({ uri: Schema.String, text: Schema.String, title: since("2026-07-28", text) }),
      Schema.Struct({ uri: Schema.String, blob: Schema.String })
    ])
    expect(lower(Shapes, "2025-11-25")({ uri: "u", text: "t", title: "x" })).toEqual({ uri: "u", text: "t" })
    const blob = { uri: "u", blob: "b", title: "x" }
    expect(lower(Shapes, "2025-11-25")(blob)).toBe(blob)
  })

  it("lifting prefers a member within its window", () => {
    const Params = Schema.Union([
      member(Schema.Struct({ mode: Schema.Literal("url"), message: Schema.String }), { since: "2025-11-25" }),
      Schema.Struct({ mode: since("2025-11-25", Schema.optionalKey(Schema.Literal("form"))), message: Schema.String })
    ])
    const lifted = (revision: Revision.Revision) =>
      Codec.decode(Params, revision, { mode: "form", message: "m" }) as Result.Result<unknown, string>
    expect(lifted("2025-06-18")).toEqual(Result.succeed({ mode: "form", message: "m" }))
    expect(Codec.decode(Params, "2025-06-18", { mode: "later", message: "m" })).toEqual(
      Result.succeed({ message: "m" })
    )
    expect(Codec.decode(Params, "2025-11-25", { mode: "url", message: "m" })).toEqual(
      Result.succeed({ mode: "url", message: "m" })
    )
  })

  it("copies an array only where an element changes", () => {
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

  it("adapts the values of a record under any key", () => {
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

  it("adapts a recursive schema at every level", () => {
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

  it("keeps an own __proto__ as an own member, and changes no prototype", () => {
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

  it("lifting any value does not throw", () => {
    const Union = Schema.Union([Thing, Schema.Array(Thing), Schema.String])
    for (const value of [null, undefined, 7, "s", true, [], [null], {}, { a: null }, [[{}]], Symbol.iterator]) {
      expect(() => lift(Thing, "2024-11-05")(value)).not.toThrow()
      expect(() => lift(Union, "2024-11-05")(value)).not.toThrow()
      expect(() => lower(Union, "2024-11-05")(value)).not.toThrow()
    }
  })
})

describe("compilation", () => {
  it("compiles an adapter once per AST node and revision", () => {
    const Thing = Schema.Struct({ a: since("2025-06-18", text) })
    expect(compile(Thing.ast, "2024-11-05", "lower")).toBe(compile(Thing.ast, "2024-11-05", "lower"))
    expect(compile(Thing.ast, "2024-11-05", "lower")).not.toBe(compile(Thing.ast, "2024-11-05", "lift"))
    expect(compile(Thing.ast, "2025-06-18", "lower")).toBeUndefined()
  })
})

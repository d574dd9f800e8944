/** Forms: the schemas that they are sent with, the schemas that they refuse, and how a response is read. */
import { describe, expect, it } from "@effect/vitest"
import type * as Revision from "@skein/protocol/Revision"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { InputError } from "@skein/server/InputError"
import * as Json from "@skein/protocol/Json"
import * as Elicitation from "@skein/server/Elicitation"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { expectTypeOf } from "vitest"
import * as kit from "./kit.ts"

const colors = { r: "Red", g: "Green" }

const fields = {
  name: Schema.String.check(Schema.isMinLength(2), Schema.isMaxLength(50)).annotate({
    title: "Name",
    description: "Yours",
    default: "Jo"
  }),
  email: Elicitation.Email,
  site: Elicitation.Uri,
  day: Elicitation.Day,
  at: Elicitation.DateTime,
  born: Schema.Date,
  age: Schema.Int.check(Schema.isBetween({ minimum: 18, maximum: 120 })),
  count: Schema.Int.check(Schema.isGreaterThan(0), Schema.isLessThan(10)),
  weight: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0.5)),
  any: Schema.Number,
  ok: Schema.Boolean.annotate({ default: true }),
  nick: Schema.optionalKey(Schema.String),
  note: Schema.optional(Schema.String.annotate({ description: "Anything" })),
  tables: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(1))),
  word: Schema.NumberFromString,
  plain: Schema.Literals(["a", "b"]).annotate({ title: "Plain" }),
  single: Elicitation.choice(colors).annotate({ title: "Color", default: "g" }),
  several: Schema.Array(Schema.Literals(["x", "y"])).check(Schema.isMinLength(1), Schema.isMaxLength(2)),
  titled: Elicitation.choices(colors).annotate({ description: "Some", default: ["r"] })
}

const written = {
  name: { type: "string", title: "Name", description: "Yours", default: "Jo", maxLength: 50, minLength: 2 },
  email: { type: "string", format: "email" },
  site: { type: "string", format: "uri" },
  day: { type: "string", format: "date" },
  at: { type: "string", format: "date-time" },
  born: { type: "string", format: "date-time" },
  age: { type: "integer", minimum: 18, maximum: 120 },
  count: { type: "integer", minimum: 1, maximum: 9 },
  weight: { type: "number", minimum: 0.5 },
  any: { type: "number" },
  ok: { type: "boolean", default: true },
  nick: { type: "string" },
  note: { type: "string", description: "Anything" },
  tables: { type: "integer", default: 1 },
  word: { type: "string" },
  plain: { type: "string", enum: ["a", "b"], title: "Plain" },
  single: {
    type: "string",
    oneOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }],
    title: "Color",
    default: "g"
  },
  several: { type: "array", items: { type: "string", enum: ["x", "y"] }, minItems: 1, maxItems: 2 },
  titled: {
    type: "array",
    items: { anyOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] },
    description: "Some",
    default: ["r"]
  }
}

/** Sends a form in a revision, and returns the sent request and its outcome. */
const asking = <A>(
  revision: Revision.Revision,
  question: Effect.Effect<A, InputError, McpRequest>,
  answer: kit.Json
) =>
  Effect.gen(function*() {
    const seen: Array<Result.Result<A, InputError>> = []
    const handler = Effect.map(Effect.result(question), (result) => {
      seen.push(result)
      return "done"
    })
    const client = yield* kit.client(kit.tool(handler), { revision, answer: () => answer })
    yield* client.call("t")
    return { sent: client.asked[0]?.params, result: seen.at(-1)! }
  })

const failure = <A>(result: Result.Result<A, InputError>) => Result.isFailure(result) ? result.failure : undefined

const content = {
  name: "Ann",
  email: "a@example.com",
  site: "https://example.com/",
  day: "2026-07-28",
  at: "2026-07-28T00:00:00Z",
  born: "2000-01-01T00:00:00.000Z",
  age: 40,
  count: 9,
  weight: 1.5,
  any: -0.25,
  ok: false,
  word: "12",
  plain: "a",
  single: "r",
  several: ["y"],
  titled: ["g", "r"]
}

describe("a form", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · requests every kind of field of the specification`, () =>
      Effect.gen(function*() {
        const { result, sent } = yield* asking(revision, Elicitation.form("?", fields), kit.accept(content))
        expect(sent).toMatchObject({ mode: "form", message: "?", requestedSchema: { type: "object" } })
        expect(sent.requestedSchema.properties).toEqual(written)
        const optional = new Set(["nick", "note", "tables"])
        expect(sent.requestedSchema.required).toEqual(Object.keys(fields).filter((name) => !optional.has(name)))
        expect(Object.keys(sent.requestedSchema.properties)).toEqual(Object.keys(fields))
        expect(result).toEqual(Result.succeed({
          action: "accept",
          content: { ...content, born: new Date(content.born), tables: 1, word: 12 }
        }))
      }))
  }

  it.effect("2025-11-25 · \"optional default values\": a field is filled in with a value of its type, and may be left out", () =>
    Effect.gen(function*() {
      const filled = {
        people: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })).annotate({ title: "How many?" }).pipe(
          Elicitation.withDefault(2)
        ),
        name: Schema.String.check(Schema.isMinLength(2)).pipe(Elicitation.withDefault("Jo")).annotate({
          title: "Name"
        }),
        plain: Schema.Literals(["a", "b"]).pipe(Elicitation.withDefault("a")),
        single: Elicitation.choice(colors).pipe(Elicitation.withDefault("g")),
        titled: Elicitation.choices(colors).pipe(Elicitation.withDefault(["r"])),
        born: Schema.Date.pipe(Elicitation.withDefault(new Date(0))),
        ok: Schema.Boolean.pipe(Elicitation.withDefault(true))
      }
      const { result, sent } = yield* asking("2025-11-25", Elicitation.form("?", filled), kit.accept({ name: "Ann" }))
      expect(sent.requestedSchema).toMatchObject({
        properties: {
          people: { type: "integer", title: "How many?", minimum: 1, maximum: 9, default: 2 },
          name: { type: "string", title: "Name", default: "Jo", minLength: 2 },
          plain: { type: "string", enum: ["a", "b"], default: "a" },
          single: { type: "string", oneOf: written.single.oneOf, default: "g" },
          titled: { type: "array", items: written.titled.items, default: ["r"] },
          born: { type: "string", format: "date-time", default: "1970-01-01T00:00:00.000Z" },
          ok: { type: "boolean", default: true }
        }
      })
      expect(sent.requestedSchema).not.toHaveProperty("required")
      expect(result).toEqual(Result.succeed({
        action: "accept",
        content: { people: 2, name: "Ann", plain: "a", single: "g", titled: ["r"], born: new Date(0), ok: true }
      }))
      // @ts-expect-error a default must be one of the values
      Schema.Literals(["a", "b"]).pipe(Elicitation.withDefault("c"))
      const wrong = yield* asking("2025-11-25", Elicitation.form("?", filled), kit.accept({ people: 10 }))
      expect(failure(wrong.result)?.reason._tag).toBe("InvalidResponse")
    }))

  it.effect("2025-06-18 · writes the revision's format: only booleans have defaults, titles are in enumNames", () =>
    Effect.gen(function*() {
      const { several: _several, titled: _titled, ...older } = fields
      const { several: _s, titled: _t, ...answers } = content
      const { result, sent } = yield* asking("2025-06-18", Elicitation.form("?", older), kit.accept(answers))
      expect(sent).not.toHaveProperty("mode")
      expect(sent.requestedSchema.properties).toMatchObject({
        ok: { default: true },
        single: { type: "string", title: "Color", enum: ["r", "g"], enumNames: ["Red", "Green"] }
      })
      expect(sent.requestedSchema.properties.name).not.toHaveProperty("default")
      expect(Result.isSuccess(result)).toBe(true)
    }))

  for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · writes enumNames for a choice if the definition requests it`, () =>
      Effect.gen(function*() {
        const color = Elicitation.choice({ r: "Red", g: "Green" }, { enumNames: true }).annotate({ title: "Color" })
        const written = { type: "string", title: "Color", enum: ["r", "g"], enumNames: ["Red", "Green"] }
        for (const field of [color, Schema.optionalKey(color)]) {
          const { result, sent } = yield* asking(revision, Elicitation.form("?", { field }), kit.accept({ field: "g" }))
          expect(sent.requestedSchema.properties).toEqual({ field: written })
          expect(result).toEqual(Result.succeed({ action: "accept", content: { field: "g" } }))
        }
      }))
  }

  it.effect("2025-06-18 · rejects a form with a choice of several values immediately", () =>
    Effect.gen(function*() {
      const question = Elicitation.form("?", { several: fields.several })
      const { result, sent } = yield* asking("2025-06-18", question, kit.accept({}))
      expect(sent).toBe(undefined)
      expect(failure(result)).toMatchObject({ reason: { _tag: "Unsupported" }, revision: "2025-06-18" })
      expect(failure(result)!.message).toContain("multiple choice in a form")
    }))

  for (const revision of ["2024-11-05", "2025-03-26"] as const) {
    it.effect(`${revision} · rejects a form immediately, because the revision has no forms`, () =>
      Effect.gen(function*() {
        const { result, sent } = yield* asking(revision, Elicitation.form("?", { a: Schema.String }), kit.accept({}))
        expect(sent).toBe(undefined)
        expect(failure(result)).toMatchObject({
          reason: { _tag: "Unsupported" },
          message: `${revision} does not have elicitation/create`
        })
      }))
  }

  it.effect("accepts a class or a struct", () =>
    Effect.gen(function*() {
      class Person extends Schema.Class<Person>("Person")({ name: Schema.String, age: Schema.Int }) {}
      const { result, sent } = yield* asking(
        "2026-07-28",
        Elicitation.accepted(Elicitation.form("Who?", Person)),
        kit.accept({ name: "Ann", age: 40 })
      )
      expect(sent.requestedSchema.properties).toEqual({ name: { type: "string" }, age: { type: "integer" } })
      expect(Result.isSuccess(result) && result.success).toBeInstanceOf(Person)
    }))

  for (const action of ["decline", "cancel"] as const) {
    it.effect(`returns the action ${action}`, () =>
      Effect.gen(function*() {
        for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"] as const) {
          const question = Elicitation.form("?", { a: Schema.String })
          expect((yield* asking(revision, question, { action })).result).toEqual(Result.succeed({ action }))
          const { result } = yield* asking(revision, Elicitation.accepted(question), { action })
          expect(failure(result)?.reason._tag).toBe(action === "decline" ? "Declined" : "Cancelled")
        }
      }))
  }

  it.effect("SHOULD validate received data matches the requested schema, including constraints that the client was not sent", () =>
    Effect.gen(function*() {
      const code = Schema.String.check(Schema.isPattern(/^[A-Z]{3}$/))
      const bad: ReadonlyArray<readonly [Elicitation.Fields, kit.Json]> = [
        [{ a: Schema.String }, undefined],
        [{ a: Schema.String }, {}],
        [{ a: Schema.Int }, { a: 1.5 }],
        [{ a: Schema.Int }, { a: "1" }],
        [{ a: fields.age }, { a: 17 }],
        [{ a: Elicitation.Email }, { a: "nobody" }],
        [{ a: Elicitation.Uri }, { a: "nowhere" }],
        [{ a: Elicitation.Day }, { a: "2026-13-01" }],
        [{ a: Elicitation.DateTime }, { a: "today" }],
        [{ a: fields.plain }, { a: "c" }],
        [{ a: fields.several }, { a: [] }],
        [{ a: code }, { a: "abc" }]
      ]
      for (const revision of ["2025-11-25", "2026-07-28"] as const) {
        for (const [fields, content] of bad) {
          const answer = content === undefined ? { action: "accept" } : kit.accept(content)
          const { result } = yield* asking(revision, Elicitation.form("?", fields), answer)
          expect(failure(result)).toMatchObject({ reason: { _tag: "InvalidResponse" }, method: "elicitation/create" })
          expect(failure(result)!.message).toContain(`"a"`)
        }
      }
    }))

  it.effect("rejects an integer that JavaScript rounds, by its path, also when the handler runs again", () =>
    Effect.gen(function*() {
      for (const revision of ["2025-11-25", "2026-07-28"] as const) {
        const question = Elicitation.accepted(Elicitation.form("?", { id: Schema.Finite }))
        const handler = Effect.gen(function*() {
          const rejected = yield* Effect.match(question, { onFailure: ({ message }) => message, onSuccess: String })
          const { id } = yield* question
          const { id: last } = yield* Elicitation.accepted(Elicitation.form("And?", { id: Schema.Finite }))
          return [rejected, id, last].join("\n")
        })
        const given = ["1915883588174806058", "9007199254740992", "7"]
        const client = yield* kit.client(kit.tool(handler), {
          revision,
          answer: () => Json.parse(`{"action":"accept","content":{"id":${given.shift()}}}`) as kit.Json
        })
        expect((yield* client.call("t")).split("\n")).toEqual([
          "invalid response to elicitation/create: content.id is 1915883588174806058, an integer beyond 2^53 that would " +
          "be rounded: write it as a string",
          "9007199254740992",
          "7"
        ])
        expect(given).toEqual([])
      }
    }))

  it.effect("sends a new input request after an invalid response", () =>
    Effect.gen(function*() {
      for (const revision of ["2025-11-25", "2026-07-28"] as const) {
        let turn = 0
        const question = Elicitation.accepted(Elicitation.form("?", { n: Schema.Int }))
        const handler = Effect.map(Effect.retry(question, { times: 2 }), ({ n }) => String(n))
        const client = yield* kit.client(kit.tool(handler), {
          revision,
          answer: () => kit.accept({ n: turn++ / 2 || "x" })
        })
        expect(yield* client.call("t")).toBe("1")
        expect(client.asked).toHaveLength(3)
      }
    }))
})

describe("is limited to flat objects with primitive properties", () => {
  const refused: { readonly [what: string]: readonly [Schema.ConstraintCodec<unknown, unknown>, string] } = {
    "a struct": [Schema.Struct({ a: Schema.String }), "it has fields of its own"],
    "a list of texts": [Schema.Array(Schema.String), "a list must be a choice of texts"],
    "a list of structs": [Schema.Array(Schema.Struct({ a: Schema.String })), "a list must be a choice of texts"],
    "a record": [Schema.Record(Schema.String, Schema.String), "it has fields of its own"],
    "a union": [Schema.Union([Schema.String, Schema.Finite]), "it has several types"],
    "numbers to choose from": [Schema.Literals([1, 2]), "a choice must be of texts"],
    anything: [Schema.Unknown, "it is not a text, a number, a boolean, or a choice of texts"]
  }
  for (const [what, [schema, why]] of Object.entries(refused)) {
    it.effect(`refuses a field for ${what}, and names the field`, () =>
      Effect.gen(function*() {
        const message = `a form cannot have the field "bad": ${why}`
        const form = Elicitation.make({ good: Schema.String, bad: schema } as never)
        expect(form.requestedSchema).toEqual(Result.fail(message))
        for (const revision of ["2025-11-25", "2026-07-28"] as const) {
          const { result, sent } = yield* asking(revision, Elicitation.form("?", form), kit.accept({}))
          expect(failure(result)).toMatchObject({ reason: { _tag: "InvalidRequest" }, message })
          expect(sent).toBe(undefined)
        }
      }))
  }

  it("refuses any schema other than a struct", () => {
    const union = Schema.Union([Schema.Struct({ a: Schema.String }), Schema.Struct({ b: Schema.String })])
    expect(Elicitation.make(union as never).requestedSchema).toEqual(
      Result.fail("a form must be a struct with at least one field")
    )
    expect(Elicitation.make({}).requestedSchema).toEqual(Result.fail("a form must be a struct with at least one field"))
  })

  it("refuses these schemas at compile time, too", () => {
    Elicitation.make({
      a: Schema.String,
      b: Schema.optionalKey(Schema.Finite),
      c: Schema.Array(Schema.Literals(["x"]))
    })
    // @ts-expect-error a field cannot be a struct
    Elicitation.make({ a: Schema.Struct({ b: Schema.String }) })
    // @ts-expect-error a field cannot be a list of numbers
    Elicitation.make({ a: Schema.Array(Schema.Finite) })
    // @ts-expect-error a struct cannot have such a field
    Elicitation.make(Schema.Struct({ a: Schema.Struct({ b: Schema.String }) }))

    const form = Elicitation.make({ n: Schema.NumberFromString, c: Elicitation.choice({ x: "X", y: "Y" }) })
    expectTypeOf(form).toEqualTypeOf<Elicitation.Form<{ readonly n: number; readonly c: "x" | "y" }>>()
    expectTypeOf(Elicitation.accepted(Elicitation.form("?", form))).toEqualTypeOf<
      Effect.Effect<{ readonly n: number; readonly c: "x" | "y" }, InputError, McpRequest>
    >()
    expectTypeOf(Elicitation.form("?", { a: Schema.optionalKey(Schema.Date) })).toEqualTypeOf<
      Effect.Effect<Elicitation.Answer<{ readonly a?: Date }>, InputError, McpRequest>
    >()
  })
})

describe("a URL to visit", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · MUST contain a valid URL`, () =>
      Effect.gen(function*() {
        const { result, sent } = yield* asking(revision, Elicitation.url("?", "not a url"), { action: "accept" })
        expect(sent).toBe(undefined)
        expect(failure(result)).toMatchObject({ reason: { _tag: "InvalidRequest" } })
        const good = yield* asking(revision, Elicitation.url("?", new URL("https://example.com")), {
          action: "decline"
        })
        expect(good.sent).toMatchObject({ mode: "url", message: "?", url: "https://example.com/" })
        expect(good.result).toEqual(Result.succeed({ action: "decline" }))
      }))
  }

  it.effect("2025-11-25 · sends the given elicitationId, or a random one", () =>
    Effect.gen(function*() {
      const id = (options?: Elicitation.UrlOptions) =>
        Effect.map(
          asking("2025-11-25", Elicitation.url("?", "https://example.com", options), { action: "accept" }),
          ({ sent }) => sent.elicitationId
        )
      expect(yield* id({ elicitationId: "mine" })).toBe("mine")
      expect(yield* id()).not.toBe(yield* id())
    }))

  it.effect("2026-07-28 · sends no elicitationId, and treats the same URL as the same input request", () =>
    Effect.gen(function*() {
      const question = Elicitation.url("?", "https://example.com")
      const { result, sent } = yield* asking("2026-07-28", question, { action: "accept" })
      expect(sent).not.toHaveProperty("elicitationId")
      expect(result).toMatchObject({ success: { action: "accept" } })
    }))
})

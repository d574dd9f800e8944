/** `Form`: the fields that a page gets, the values that it sends, and the form of a client without pages. */
import { describe, expect, it } from "@effect/vitest"
import * as AppHost from "@skein/apps/AppHost"
import * as Form from "@skein/apps/Form"
import * as Client from "@skein/client/Client"
import * as ClientElicitation from "@skein/client/Elicitation"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as Elicitation from "@skein/server/Elicitation"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as kit from "./kit.ts"

const table = Form.make("book", {
  description: "Books a table",
  input: { day: Schema.String },
  fields: {
    people: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 })).annotate({
      title: "People",
      description: "With children"
    }),
    email: Elicitation.Email,
    where: Elicitation.choice({ in: "Inside", out: "In the garden" }).pipe(Elicitation.withDefault("in")),
    extras: Elicitation.choices({ cake: "Cake", milk: "Oat milk" }).check(Schema.isMaxLength(1)),
    quiet: Schema.Boolean,
    from: Schema.Date,
    code: Schema.String.check(Schema.isPattern(/^[A-Z]{2}$/, { expected: "two capital letters" })),
    note: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(200)))
  },
  multiline: ["note"]
})

const content = {
  people: 2,
  email: "ada@example.com",
  where: "out",
  extras: ["cake"],
  quiet: true,
  from: "2026-07-28T10:00:00.000Z",
  code: "AB"
}

const booked = (
  seen: Array<unknown> = [],
  question: Partial<Form.Question<Form.InitialOf<typeof table["form"]>>> = {}
) =>
  Form.layer(table, {
    ask: ({ day }) =>
      Effect.succeed({ title: `A table on ${day}`, initial: { people: 4, note: "By the door" }, ...question }),
    handle: (filled) =>
      Effect.sync(() => {
        seen.push(filled)
        return `Booked for ${filled.values.people} at ${filled.values.from.getUTCHours()}`
      })
  })

const text = (result: kit.Json): string => result.content.map((block: kit.Json) => block.text).join("\n")

const ask = (client: Client.Client, tool = "book", args: {} = { day: "Monday" }) =>
  Effect.map(client.callTool(tool, args), (result) => ({
    result,
    question: result._meta?.["io.github.skein-mcp/question"] as kit.Json
  }))

const answer = (client: Client.Client, { token, tool }: kit.Json, value: unknown) =>
  client.callTool(tool, { token, answer: value })

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect(`${revision} · gives the page the fields, and the handler the decoded values`, () =>
      Effect.gen(function*() {
        const seen: Array<kit.Json> = []
        const client = yield* kit.connect({ revision }, [booked(seen)])
        expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["book", "book_answer"])
        const { question, result } = yield* ask(client)
        expect(text(result)).toContain("The user sees a page that asks \"A table on Monday\"")
        expect(question).toEqual({
          title: "A table on Monday",
          submit: "Send",
          fields: [
            {
              name: "people",
              label: "People",
              description: "With children",
              kind: "integer",
              min: 1,
              max: 8,
              required: true,
              initial: 4
            },
            { name: "email", label: "email", kind: "email", required: true },
            {
              name: "where",
              label: "where",
              kind: "select",
              required: true,
              initial: "in",
              options: [{ value: "in", label: "Inside" }, { value: "out", label: "In the garden" }]
            },
            {
              name: "extras",
              label: "extras",
              kind: "checkboxes",
              required: true,
              max: 1,
              options: [{ value: "cake", label: "Cake" }, { value: "milk", label: "Oat milk" }]
            },
            { name: "quiet", label: "quiet", kind: "checkbox", required: true },
            { name: "from", label: "from", kind: "datetime", required: true },
            { name: "code", label: "code", kind: "text", required: true },
            { name: "note", label: "note", kind: "textarea", required: false, max: 200, initial: "By the door" }
          ],
          tool: "book_answer",
          token: expect.stringMatching(/^[A-Za-z0-9]{32}$/)
        })
        expect(text(yield* answer(client, question, content))).toBe("Booked for 2 at 10")
        expect(seen).toEqual([{ input: { day: "Monday" }, values: { ...content, from: new Date(content.from) } }])
        expect(text(yield* answer(client, question, content))).toContain("no longer open")
      }))

    it.effect(`${revision} · returns the problems of the fields to the page, and the question stays open`, () =>
      Effect.gen(function*() {
        const seen: Array<kit.Json> = []
        const client = yield* kit.connect({ revision }, [booked(seen)])
        const { question } = yield* ask(client)
        const { email: _, ...rest } = content
        const refused = yield* answer(client, question, { ...rest, people: 9, code: "x", ["__proto__"]: 1, other: 2 })
        expect(refused.isError).toBe(true)
        expect(refused._meta?.["io.github.skein-mcp/problems"]).toEqual({
          people: "Expected a value between 1 and 8",
          email: "Missing key",
          code: "Expected two capital letters"
        })
        expect(text(refused)).toContain("Expected two capital letters")
        expect(seen).toEqual([])
        const wrong = yield* answer(client, { ...question, token: "x" }, { ...content, code: "x" })
        expect([wrong._meta?.["io.github.skein-mcp/problems"], text(wrong)]).toEqual([
          undefined,
          "This question is no longer open. It was answered already, or too much time has passed"
        ])
        expect(text(yield* answer(client, question, content))).toBe("Booked for 2 at 10")
      }))

    it.effect(`${revision} · asks with a form where the client shows no pages`, () =>
      Effect.gen(function*() {
        for (
          const [given, expected] of [
            [ClientElicitation.accept(content), "Booked for 2 at 10"],
            [ClientElicitation.decline, "The user did not answer \"A table on Monday\". Nothing was done"],
            [ClientElicitation.cancel, "The user did not answer \"A table on Monday\". Nothing was done"]
          ] as const
        ) {
          const client = yield* kit.connect({ revision, extensions: {} }, [booked()]).pipe(
            Effect.provide(ClientElicitation.layer({
              form: ({ message, requestedSchema }) => {
                expect(message).toBe("A table on Monday")
                expect(requestedSchema.required).toEqual(["people", "email", "extras", "quiet", "from", "code"])
                expect(requestedSchema.properties["people"]).toMatchObject({ type: "integer", default: 4 })
                expect(requestedSchema.properties["where"]).toMatchObject({ default: "in" })
                return Effect.succeed(given)
              }
            }))
          )
          expect(text(yield* client.callTool("book", { day: "Monday" }))).toBe(expected)
        }
        const without = yield* kit.connect({ revision, extensions: {} }, [booked()])
        expect(text(yield* without.callTool("book", { day: "Monday" }))).toContain("neither pages nor forms")
      }))
  })
}

describe("a form", () => {
  it.effect("counts its initial values, which must be those of fields", () =>
    Effect.gen(function*() {
      const failure = (question: Partial<Form.Question>, bounds: Form.Bounds = {}) => {
        const form = Form.make("one", { fields: { a: Schema.optionalKey(Schema.String) }, ...bounds })
        return Effect.flatMap(
          kit.connect({}, [
            Form.layer(form, {
              ask: () => Effect.succeed({ title: "One?", ...question } as never),
              handle: () => Effect.succeed("")
            })
          ]),
          (client) => Effect.map(client.callTool("one"), text)
        )
      }
      expect(yield* failure({ initial: { b: "x" } })).toBe(
        "The question \"One?\" has an initial value of \"b\", which is not a field"
      )
      expect(yield* failure({ initial: { a: "x".repeat(20_000) } })).toMatch(/more than 20000$/)
    }))

  it.effect("with a field that no form has fails the server", () =>
    Effect.gen(function*() {
      const form = Form.make("deep", { fields: Schema.Struct({ a: Schema.Struct({ b: Schema.String }) }) as never })
      const failed = yield* Effect.flip(
        Effect.scoped(
          kit.serve(Form.layer(form, { ask: () => Effect.succeed({ title: "?" }), handle: () => Effect.succeed("") }))
        )
      )
      expect(failed).toMatchObject({ _tag: "DefinitionError", reason: { _tag: "InvalidValue" } })
      expect((failed as Error).message).toBe(
        "The tool \"deep\" is invalid: a form cannot have the field \"a\": it has fields of its own"
      )
    }))

  it.live("is of another library, whose answers wait, and is asked and handled by async functions", () =>
    Effect.gen(function*() {
      const foreign: StandardSchemaV1<{ readonly age: number }, { readonly years: number }> = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: async (value: unknown) => {
            const { age } = value as { readonly age: number }
            return age > 17 ? { value: { years: age } } : { issues: [{ message: "too young", path: ["age"] }] }
          },
          jsonSchema: {
            input: () => ({ type: "object", properties: { age: { type: "integer" } }, required: ["age"] })
          }
        } as never
      }
      const server = new AsyncServer({ name: "shop", version: "1.0.0" }).use(
        Form.async(Form.make("age", { fields: foreign }), {
          ask: async () => ({ title: "Your age?", initial: { age: 20 } }),
          handle: async ({ values }) => `${values.years} years`
        })
      )
      const client = yield* Client.make(server.transport(), { extensions: AppHost.extensions })
      const { question } = yield* ask(client, "age", {})
      expect(question.fields).toEqual([{ name: "age", label: "age", kind: "integer", required: true, initial: 20 }])
      const young = yield* answer(client, question, { age: 3 })
      expect(young._meta?.["io.github.skein-mcp/problems"]).toEqual({ age: "too young" })
      const both = yield* Effect.all([answer(client, question, { age: 18 }), answer(client, question, { age: 19 })], {
        concurrency: 2
      })
      expect(both.map(text).toSorted()).toEqual([
        "18 years",
        "This question is no longer open. It was answered already, or too much time has passed"
      ])
    }))
})

/** Schemas of other libraries, as the arguments of prompts and the variables of templates, and of states and forms. */
import { describe, expect, it } from "@effect/vitest"
import { AsyncServer } from "@skein/server/AsyncServer"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as Elicitation from "@skein/server/Elicitation"
import * as Prompt from "@skein/server/Prompt"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as StandardSchema from "@skein/server/StandardSchema"
import * as State from "@skein/server/State"
import * as Tool from "@skein/server/Tool"
import { type } from "arktype"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as v from "valibot"
import { expectTypeOf } from "vitest"
import { z } from "zod"
import * as kit from "./kit.ts"

const Valibot = v.object({
  city: v.pipe(v.string(), v.minLength(1)),
  tone: v.optional(v.picklist(["kind", "strict"]), "kind")
})
const json = {
  type: "object",
  properties: {
    city: { type: "string", minLength: 1, description: "The city" },
    tone: { type: "string", enum: ["kind", "strict"], default: "kind" }
  },
  required: ["city"]
}

const libraries = [
  ["zod", z.object({ city: z.string().min(1).describe("The city"), tone: z.enum(["kind", "strict"]).default("kind") })],
  ["valibot", StandardSchema.withJsonSchema(Valibot, json)],
  ["arktype", type({ city: type("string > 0").describe("The city", "self"), tone: "'kind' | 'strict' = 'kind'" })],
  [
    "Effect, as a struct",
    Schema.Struct({
      city: Schema.NonEmptyString.annotate({ description: "The city" }),
      tone: Schema.Literals(["kind", "strict"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("kind" as const)))
    })
  ]
] as const

const complete = (client: kit.Client, ref: object, name: string) =>
  Effect.map(
    client.result("completion/complete", { ref, argument: { name, value: "s" } }),
    ({ completion }) => completion.values
  )

describe("prompts", () => {
  for (const [library, schema] of libraries) {
    it.effect(`${library} · lists, completes, validates and converts the arguments`, () =>
      Effect.gen(function*() {
        const prompt = Prompt.layer(Prompt.make("advise", { arguments: schema as typeof libraries[0][1] }), (args) => {
          expectTypeOf(args).toEqualTypeOf<{ city: string; tone: "kind" | "strict" }>()
          return Effect.succeed(JSON.stringify(args))
        })
        const client = yield* kit.client(kit.server(prompt))
        const { prompts } = yield* client.result("prompts/list")
        expect(prompts[0].arguments).toMatchObject([
          { name: "city", description: expect.stringContaining("The city"), required: true },
          { name: "tone", required: false }
        ])
        expect(yield* complete(client, { type: "ref/prompt", name: "advise" }, "tone")).toEqual(["strict"])
        const { messages } = yield* client.result("prompts/get", { name: "advise", arguments: { city: "Wien" } })
        expect(JSON.parse(messages[0].content.text)).toEqual({ city: "Wien", tone: "kind" })
        const error = yield* client.error("prompts/get", { name: "advise", arguments: { city: "" } })
        expect(error.code).toBe(-32602)
        expect(error.message).toMatch(/^Invalid arguments for prompt advise: [^]+\n {2}at \["city"\]/)
      }))
  }

  it.effect("validates asynchronously", () =>
    Effect.gen(function*() {
      const schema = z.object({ name: z.string().refine(async (name) => name !== "taken", "This name is taken") })
      const client = yield* kit.client(
        kit.server(Prompt.layer(Prompt.make("p", { arguments: schema }), ({ name }) => Effect.succeed(name)))
      )
      const free = yield* client.result("prompts/get", { name: "p", arguments: { name: "free" } })
      expect(free.messages[0].content.text).toBe("free")
      expect((yield* client.error("prompts/get", { name: "p", arguments: { name: "taken" } })).message).toContain(
        "This name is taken"
      )
    }))

  for (
    const [what, schema, problem] of [
      [
        "fields of zod",
        { a: z.string() },
        "the field \"a\" is a schema of its own: pass the schema of the whole object, such as z.object({ … })"
      ],
      ["a text", "a", "expected a schema or the fields of a struct"],
      ["an Effect Schema of a text", Schema.String, "it must describe an object; give a struct or the fields of one"],
      ["a list of zod", z.array(z.string()), "it must describe an object"],
      [
        "a date of zod",
        z.object({ orders: z.array(z.object({ at: z.date().optional() })) }),
        `Date cannot be represented in JSON Schema: at "orders[].at", use z.iso.datetime(), or z.codec(`
      ],
      ["a bigint of zod", z.object({ id: z.bigint() }), `at "id", use z.int(), or z.string() for larger numbers`],
      [
        "a map of zod",
        z.object({ a: z.record(z.string(), z.map(z.string(), z.string())) }),
        `at "a.*", use z.record()`
      ],
      ["a schema without JSON Schema", v.object({ a: v.string() }), "pass one with withJsonSchema"]
    ] as const
  ) {
    it.effect(`${what} fails the layer, and names the prompt`, () =>
      Effect.gen(function*() {
        const prompt = Prompt.layer(Prompt.make("bad", { arguments: schema as never }), () => Effect.succeed(""))
        const error = yield* kit.failure(kit.server(prompt))
        expect(error).toMatchObject({
          _tag: "DefinitionError",
          reason: { _tag: "InvalidSchema", schema: "arguments" },
          kind: "prompt",
          definition: "bad"
        })
        expect((error as DefinitionError).message).toContain("The prompt \"bad\" has an invalid arguments schema: ")
        expect((error as DefinitionError).message).toContain(problem)
      }))
  }
})

describe("templates", () => {
  const variables = [
    ["zod", z.object({ folder: z.enum(["work", "spare"]), id: z.coerce.number().int() })],
    [
      "valibot",
      StandardSchema.withJsonSchema(
        v.object({
          folder: v.picklist(["work", "spare"]),
          id: v.pipe(v.string(), v.regex(/^\d+$/), v.transform(Number))
        }),
        { type: "object", properties: { folder: { enum: ["work", "spare"] }, id: { type: "string" } } }
      )
    ],
    ["arktype", type({ folder: "'work' | 'spare'", id: "string.integer.parse" })]
  ] as const

  for (const [library, schema] of variables) {
    it.effect(`${library} · converts the variables, completes them, and matches only valid ones`, () =>
      Effect.gen(function*() {
        const note = ResourceTemplate.make("notes://{folder}/{id}", {
          name: "note",
          variables: schema as typeof variables[1][1]
        })
        const live = ResourceTemplate.layer(note, (found) => {
          expectTypeOf(found).toEqualTypeOf<{ folder: "work" | "spare"; id: number }>()
          return Effect.succeed(JSON.stringify(found))
        })
        const client = yield* kit.client(kit.server(live))
        const { contents } = yield* client.result("resources/read", { uri: "notes://work/7" })
        expect(JSON.parse(contents[0].text)).toEqual({ folder: "work", id: 7 })
        const ref = { type: "ref/resource", uri: "notes://{folder}/{id}" }
        expect(yield* complete(client, ref, "folder")).toEqual(["spare"])
        for (const uri of ["notes://work/x", "notes://home/7"]) {
          expect((yield* client.error("resources/read", { uri })).message).toContain("Resource not found")
        }
      }))
  }

  it.effect("a schema that validates asynchronously refuses when the resource is read", () =>
    Effect.gen(function*() {
      const taken = z.object({ id: z.string().refine((id) => Promise.resolve(id === "free")) })
      const broken = StandardSchema.withJsonSchema<{ id: string }, { id: string }>({
        "~standard": { version: 1, vendor: "broken", validate: () => Promise.reject(new Error("offline")) }
      }, { type: "object", properties: { id: { type: "string" } } })
      const read = () => Effect.succeed("read")
      const client = yield* kit.client(kit.server(
        ResourceTemplate.layer(ResourceTemplate.make("a://{id}", { name: "a", variables: taken }), read),
        ResourceTemplate.layer(ResourceTemplate.make("b://{id}", { name: "b", variables: broken }), read, {
          complete: { id: ["s1"] }
        })
      ))
      expect((yield* client.result("resources/read", { uri: "a://free" })).contents[0].text).toBe("read")
      expect((yield* client.error("resources/read", { uri: "a://other" })).message).toContain("Resource not found")
      // A completion only looks for the template: the rejection that nothing awaits does not end the process.
      expect(yield* complete(client, { type: "ref/resource", uri: "b://no" }, "id")).toEqual(["s1"])
      expect((yield* client.error("resources/read", { uri: "b://no" })).code).toBe(-32603)
    }))

  it.effect("fields of zod fail the layer, and name the template", () =>
    Effect.gen(function*() {
      const template = ResourceTemplate.make("a://{id}", { name: "a", variables: { id: z.string() } as never })
      const error = yield* kit.failure(kit.server(ResourceTemplate.layer(template, () => Effect.succeed(""))))
      expect(error).toMatchObject({
        message: "The resource template \"a://{id}\" has an invalid variables schema: the field \"id\" is a schema "
          + "of its own: pass the schema of the whole object, such as z.object({ … })",
        reason: { _tag: "InvalidSchema", schema: "variables" }
      })
    }))
})

describe("states", () => {
  const Cart = z.object({ items: z.array(z.string().trim()).max(2), note: z.string().default("none") })

  const tools = (state: State.State<{ items: Array<string>; note: string }>) =>
    Layer.mergeAll(
      Tool.async(Tool.make("add", { input: z.object({ item: z.string() }) }), async ({ item }, context) => {
        await context.state(state).update(({ items, note }) => ({ items: [...items, item], note }))
        return "added"
      }),
      Tool.async(Tool.make("set", { input: z.object({ value: z.unknown() }) }), async ({ value }, context) => {
        await context.state(state).set(value as never)
        return "written"
      }),
      Tool.async(Tool.make("get"), async (_, context) => JSON.stringify(await context.state(state).get()))
    )

  it.effect("zod · validates values when they are written and read, and stores what the schema returns", () =>
    Effect.gen(function*() {
      const state = State.make("cart", { schema: Cart, initial: { items: [], note: "" }, scope: "session" })
      expectTypeOf(state).toEqualTypeOf<State.State<{ items: Array<string>; note: string }>>()
      const client = yield* kit.client(kit.server(tools(state)), "2025-11-25")
      yield* client.call("add", { item: " tea " })
      expect(JSON.parse((yield* client.call("get")).content[0].text)).toEqual({ items: ["tea"], note: "" })
      yield* client.call("set", { value: { items: ["cup"], more: 1 } })
      expect(JSON.parse((yield* client.call("get")).content[0].text)).toEqual({ items: ["cup"], note: "none" })
      const refused = yield* client.call("set", { value: { items: [1] } })
      expect(refused.isError).toBe(true)
      expect(refused.content[0].text).toMatch(/^The value of the state cart is invalid: [^]+\n {2}at \["items"\]\[0\]/)
    }))

  it.effect("zod · validates asynchronously, and refuses values without a JSON form", () =>
    Effect.gen(function*() {
      const schema = z.object({ at: z.date(), by: z.string().refine(async (by) => by !== "eve") })
      const state = State.make("visit", { schema, initial: { at: new Date(0), by: "" }, scope: "session" })
      const visit = Tool.async(Tool.make("visit", { input: z.object({ by: z.string() }) }), async ({ by }, context) => {
        await context.state(state).set({ at: new Date(0), by })
        return "visited"
      })
      const client = yield* kit.client(kit.server(visit), "2025-11-25")
      expect((yield* client.call("visit", { by: "eve" })).content[0].text).toContain("at [\"by\"]")
      expect((yield* client.call("visit", { by: "ada" })).content[0].text).toBe(
        "The value of the state visit is invalid: it has no JSON form"
      )
    }))

  it("refuses a value that is not a schema", () => {
    expect(() => State.make("s", { schema: { n: z.number() } as never, initial: 0 })).toThrow(
      "The state \"s\" has an invalid schema: expected an Effect Schema, or a schema of another library"
    )
  })
})

describe("forms", () => {
  it("names the field of another library", () => {
    const form = Elicitation.make({ people: z.int() } as never)
    expect(Result.getOrThrow(Result.flip(form.requestedSchema))).toBe(
      "invalid form: the field \"people\" is a schema of its own: pass the schema of the whole object, such " +
        "as z.object({ … })"
    )
  })
})

describe("an async server", () => {
  it.effect("accepts zod for a prompt and a template, with completion", () =>
    Effect.gen(function*() {
      const server = new AsyncServer({ name: "s", version: "1" })
        .prompt("greet", { arguments: z.object({ name: z.string() }) }, ({ name }) => `Greet ${name}`, {
          complete: { name: ["sue"] }
        })
        .template(
          "notes://{id}",
          { name: "note", variables: z.object({ id: z.coerce.number() }) },
          ({ id }) => `${id + 1}`,
          { complete: { id: ["s1"] } }
        )
      const client = yield* kit.client(server.toLayer() as never)
      const { messages } = yield* client.result("prompts/get", { name: "greet", arguments: { name: "Ada" } })
      expect(messages[0].content.text).toBe("Greet Ada")
      expect((yield* client.result("resources/read", { uri: "notes://6" })).contents[0].text).toBe("7")
      expect(yield* complete(client, { type: "ref/prompt", name: "greet" }, "name")).toEqual(["sue"])
      expect(yield* complete(client, { type: "ref/resource", uri: "notes://{id}" }, "id")).toEqual(["s1"])
    }))
})

describe("choices in forms", () => {
  const ids = [["t1", "Green tea"], ["t2", "Black tea"]] as const
  const titles = ids.map(([value, title]) => ({ const: value, title }))
  const literals = z.union(ids.map(([value, title]) => z.literal(value).meta({ title })))
  const oneOf = titles.map((option) => ({ type: "string", ...option }))

  const forms = [
    ["zod", z.object({ tea: literals, teas: z.array(literals).min(1), cup: z.literal("small") })],
    [
      "JSON Schema",
      StandardSchema.withJsonSchema(v.object({}), {
        type: "object",
        properties: {
          tea: { oneOf },
          teas: { type: "array", items: { oneOf }, minItems: 1 },
          cup: { type: "string", const: "small" }
        },
        required: ["tea", "teas", "cup"]
      })
    ]
  ] as const

  it.each(forms)("%s · have the titles of literals", (_library, schema) => {
    expect(Result.getOrThrow(Elicitation.make(schema).requestedSchema)).toEqual({
      type: "object",
      properties: {
        tea: { type: "string", oneOf: titles },
        teas: { type: "array", items: { anyOf: titles }, minItems: 1 },
        cup: { type: "string", enum: ["small"] }
      },
      required: ["tea", "teas", "cup"]
    })
  })
})

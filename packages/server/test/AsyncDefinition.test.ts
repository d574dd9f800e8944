import { describe, expect, it } from "@effect/vitest"
import * as AsyncDefinition from "@skein/server/AsyncDefinition"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as z from "zod"
import * as kit from "./kit.ts"

const Pair = Schema.Struct({ a: Schema.Number, b: Schema.Number })

describe("AsyncDefinition", () => {
  it.effect("defines tools by schemas of each kind as Tool.async does", () =>
    Effect.gen(function*() {
      const schemas = {
        fields: { a: Schema.Number, b: Schema.Number },
        struct: Pair,
        both: Schema.toStandardSchemaV1(Pair),
        zod: z.object({ a: z.number(), b: z.number() })
      }
      const add = ({ a, b }: { readonly a: number; readonly b: number }) => ({ sum: a + b })
      const output = z.object({ sum: z.number() })
      const own: Array<AsyncDefinition.Definition> = []
      const others: Array<AsyncDefinition.Definition> = []
      for (const [name, input] of Object.entries(schemas)) {
        const options = { description: name, input: input as typeof schemas.zod, output }
        own.push(AsyncDefinition.tool(name, options, add))
        others.push(Tool.async(Tool.make(name, options), add))
      }
      own.push(AsyncDefinition.tool("none", { version: "2" }, () => "none"))
      others.push(Tool.async(Tool.make("none", { version: "2" }), () => "none"))
      const client = yield* kit.client(kit.server(...own))
      const other = yield* kit.client(kit.server(...others))
      expect(yield* client.result("tools/list")).toEqual(yield* other.result("tools/list"))
      for (const name of Object.keys(schemas)) {
        expect(yield* client.call(name, { a: 1, b: 2 })).toMatchObject({ structuredContent: { sum: 3 } })
        expect(yield* client.call(name, { a: 1 })).toEqual(yield* other.call(name, { a: 1 }))
      }
      expect(yield* client.call("none")).toMatchObject({ content: [{ text: "none" }] })
    }))

  it.effect("keeps the order of the definitions, whichever are loaded", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.server(
        AsyncDefinition.tool("first", { input: Pair }, () => ""),
        AsyncDefinition.tool("second", {}, () => ""),
        AsyncDefinition.tool("third", { input: Pair }, () => "")
      ))
      const { tools } = yield* client.result("tools/list")
      expect(tools.map(({ name }: { readonly name: string }) => name)).toEqual(["first", "second", "third"])
    }))

  it.effect("defines resources, templates and prompts", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.server(
        AsyncDefinition.resource("shop://menu", { mimeType: "text/plain" }, () => "tea"),
        AsyncDefinition.template("shop://{tea}", { name: "tea" }, ({ tea }) => tea, { complete: { tea: ["mint"] } }),
        AsyncDefinition.prompt("greet", { arguments: z.object({ name: z.string() }) }, ({ name }) => `Greet ${name}`)
      ))
      const other = yield* kit.client(kit.server(
        Resource.async(Resource.make("shop://menu", { mimeType: "text/plain" }), () => "tea"),
        Prompt.async(Prompt.make("greet", { arguments: { name: Schema.String } }), ({ name }) => `Greet ${name}`)
      ))
      const menu = { uri: "shop://menu" }
      expect(yield* client.result("resources/read", menu)).toEqual(yield* other.result("resources/read", menu))
      expect(yield* client.result("resources/read", { uri: "shop://mint" })).toMatchObject({
        contents: [{ text: "mint" }]
      })
      const greet = { name: "greet", arguments: { name: "Ada" } }
      expect(yield* client.result("prompts/get", greet)).toEqual(yield* other.result("prompts/get", greet))
      const ref = { type: "ref/resource", uri: "shop://{tea}" }
      expect(yield* client.result("completion/complete", { ref, argument: { name: "tea", value: "m" } }))
        .toMatchObject({ completion: { values: ["mint"] } })
    }))

  it.effect("fails as the other definitions do", () =>
    Effect.gen(function*() {
      const failed = (definition: AsyncDefinition.Definition) =>
        Effect.map(kit.failure(kit.server(definition)), (error) => (error as Error).message)
      const date = { input: z.object({ at: z.date() }) }
      expect(yield* failed(AsyncDefinition.tool("book", date, () => ""))).toBe(
        yield* failed(Tool.async(Tool.make("book", date), () => ""))
      )
      const text = { input: "text" } as never
      expect(yield* failed(AsyncDefinition.tool("wrong", text, () => ""))).toBe(
        yield* failed(Tool.async(Tool.make("wrong", text), () => ""))
      )
      expect(yield* failed(AsyncDefinition.resource("no uri", {}, () => ""))).toContain("does not conform to RFC 3986")
      expect(yield* failed(AsyncDefinition.template("shop://{", { name: "x" }, () => ""))).toContain("is invalid")
      const twice = Layer.mergeAll(
        AsyncDefinition.tool("a", {}, () => ""),
        AsyncDefinition.tool("a", { input: Pair }, () => "")
      )
      expect(yield* failed(twice)).toContain("a")
    }))
})

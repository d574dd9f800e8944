/** A server as a class. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import { AsyncServer } from "@skein/server/AsyncServer"
import { VisibleError } from "@skein/server/HandlerError"
import * as McpError from "@skein/server/McpError"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { z } from "zod"
import * as kit from "./input/kit.ts"
import type { Server } from "./kit.ts"

const shop = () =>
  new AsyncServer({ name: "shop", version: "1.0.0" })
    .tool("add", { input: z.object({ a: z.number() }), output: z.object({ b: z.number() }) }, async ({ a }) => ({
      b: a + 1
    }))
    .tool("ask", {}, async (_, { elicit }) => {
      const answer = await elicit("?", { people: Schema.Int })
      return answer.action === "accept" ? `${answer.content.people + 1}` : answer.action
    })
    .resource("shop://menu", {}, async () => "# Tea")
    .template("shop://{id}", { name: "one" }, ({ id }, uri) => {
      if (id === "none") throw McpError.resourceNotFound(uri)
      return `${id.toUpperCase()} ${uri}`
    })
    .prompt("greet", { arguments: { name: Schema.String } }, ({ name }) => `Greet ${name}`, {
      complete: { name: ["Ada", "Grace"] }
    })
    .use(Tool.layer(Tool.make("effect"), () => Effect.succeed("an effect")))

describe("AsyncServer", () => {
  for (const revision of ["2025-06-18", "2026-07-28"] as const) {
    it.effect(`${revision} · serves tools, resources, templates, prompts and layers`, () =>
      Effect.gen(function*() {
        const answer = () => kit.accept({ people: 2 })
        const client = yield* kit.client(shop().toLayer() as Server, { revision, answer })
        expect(yield* client.call("add", { a: 1 })).toBe("{\"b\":2}")
        expect(yield* client.call("ask")).toBe("3")
        expect(yield* client.call("effect")).toBe("an effect")
        const read = (uri: string) => client.request("resources/read", { uri })
        expect((yield* read("shop://menu")).result.contents[0].text).toBe("# Tea")
        expect((yield* read("shop://x")).result.contents[0].text).toBe("X shop://x")
        expect((yield* read("shop://none")).error.message).toContain("not found")
        const got = yield* client.request("prompts/get", { name: "greet", arguments: { name: "Ada" } })
        expect(got.result.messages[0].content.text).toBe("Greet Ada")
        const completed = yield* client.request("completion/complete", {
          ref: { type: "ref/prompt", name: "greet" },
          argument: { name: "name", value: "G" }
        })
        expect(completed.result.completion.values).toEqual(["Grace"])
      }))
  }

  it.effect("completes variables and arguments by functions that return promises", () =>
    Effect.gen(function*() {
      const server = new AsyncServer({ name: "shop", version: "1.0.0" })
        .template("shop://{id}", { name: "one" }, ({ id }) => id, {
          complete: { id: async (typed) => [`${typed}1`, `${typed}2`] }
        })
        .prompt("greet", { arguments: { name: Schema.String, of: Schema.String } }, () => "", {
          complete: {
            name: async (typed, { of }) => [`${typed} of ${of}`],
            of: async () => {
              throw new VisibleError("no towns today")
            }
          }
        })
      const client = yield* kit.client(server.toLayer() as Server, { revision: "2026-07-28" })
      const complete = (ref: object, name: string, rest: object = {}) =>
        client.request("completion/complete", { ref, argument: { name, value: "t" }, ...rest })
      const template = yield* complete({ type: "ref/resource", uri: "shop://{id}" }, "id")
      expect(template.result.completion.values).toEqual(["t1", "t2"])
      const prompt = { type: "ref/prompt", name: "greet" }
      const named = yield* complete(prompt, "name", { context: { arguments: { of: "Oslo" } } })
      expect(named.result.completion.values).toEqual(["t of Oslo"])
      expect((yield* complete(prompt, "of")).error.message).toContain("no towns today")
    }))

  it("throws for a definition after the start", () => {
    const server = shop()
    server.toLayer()
    expect(() => server.tool("late", {}, () => "")).toThrow("the server shop has started: add definitions before")
  })

  it("listens, and closes; a server that cannot be built rejects", async () => {
    const { close, url } = await shop().listen({ port: 0 })
    const ping = () =>
      fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "initialize",
          params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } }
        })
      })
    expect((await ping()).status).toBe(200)
    await close()
    await expect(ping()).rejects.toThrow("fetch failed")
    await expect(shop().tool("add", {}, () => "").listen({ port: 0 })).rejects.toThrow("add")
  })

  it("does not take a layer whose services are missing", () => {
    class Db extends Context.Service<Db, {}>()("test/Db") {}
    const needs = Tool.layer(Tool.make("db"), () => Effect.as(Db, ""))
    expectTypeOf(needs).not.toExtend<Parameters<AsyncServer["use"]>[number]>()
    shop().use(Layer.provide(needs, Layer.succeed(Db, {})))
  })

  it("types the arguments of its handlers", () => {
    const server = new AsyncServer({ name: "types", version: "1.0.0" })
    // @ts-expect-error -- the output has a number
    server.tool("a", { output: { n: Schema.Int } }, () => ({ n: "1" }))
    // @ts-expect-error -- there is no such argument
    server.tool("b", { input: { n: Schema.Int } }, ({ m }) => `${m}`)
    // @ts-expect-error -- a function has no JSON
    server.tool("c", {}, () => () => 7)
    server.tool("d", { input: { n: Schema.Int } }, ({ n }) => n.toFixed(0))
  })

  it.effect("provides layers to the whole server", () =>
    Effect.gen(function*() {
      const name = Context.Reference<string>("test/name", { defaultValue: () => "none" })
      const server = new AsyncServer({ name: "shop", version: "1.0.0" })
        .use(Tool.layer(Tool.make("name"), () => name))
        .provide(Layer.succeed(name, "first"), Layer.effect(name, Effect.map(name, (before) => `${before}, second`)))
      const client = yield* kit.client(server.toLayer() as Server, { revision: "2025-06-18" })
      expect(yield* client.call("name")).toBe("first, second")
      expect(() => server.provide(Layer.empty)).toThrow("has started: provide services before")
    }))
})

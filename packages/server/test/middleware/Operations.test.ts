/** The middleware of single operations. */
import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import { McpRequest } from "@skein/server/McpRequest"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

class Slow extends Context.Service<Slow, boolean>()("test/Slow") {}
class Suffix extends Context.Service<Suffix, string>()("test/Suffix") {}
class Failed extends Data.TaggedError("Failed")<{ readonly message: string }> {}

const Text = { text: Schema.String }
const echo = Tool.layer(Tool.make("echo", { input: Text }), ({ text }) => Effect.succeed(text))
const seen = Tool.layer(
  Tool.make("seen", { input: Text, metadata: Context.make(Slow, true), annotations: { readOnlyHint: true } }),
  () => Effect.map(McpRequest, ({ params }) => JSON.stringify(params?.["arguments"]))
)
const textOf = (result: kit.Json): string => result.content[0].text

for (const revision of support.eras) {
  describe(`${revision} · callTool`, () => {
    it.effect("changes the arguments and the result, the first middleware outermost", () =>
      Effect.gen(function*() {
        const around = (mark: string) =>
          Middleware.callTool((call, next) =>
            Effect.map(next({ text: `${call.arguments["text"]}${mark}` }), (result) => ({
              ...result,
              content: [...result.content, { type: "text" as const, text: `${call.name} ${mark}` }]
            }))
          )
        const client = yield* kit.client(kit.server(around("a"), echo, seen, around("b")), revision)
        expect((yield* client.call("echo", { text: "x" })).content.map(({ text }: kit.Json) => text)).toEqual(
          ["xab", "echo b", "echo a"]
        )
        expect(textOf(yield* client.call("seen", { text: "x" }))).toBe("{\"text\":\"xab\"}")
      }))

    it.effect("applies to the tools that are named, or that a predicate chooses once for each tool", () =>
      Effect.gen(function*() {
        let asked = 0
        const named = Middleware.callTool((_, next) => next({ text: "named" }), { tools: ["echo"] })
        const slow = Middleware.callTool((_, next) => next({ text: "slow" }), {
          tools: ({ definition, metadata }) => {
            asked++
            return definition.annotations?.readOnlyHint === true && Context.get(metadata as Context.Context<Slow>, Slow)
          }
        })
        const client = yield* kit.client(kit.server(named, slow, echo, seen), revision)
        for (let n = 0; n < 3; n++) {
          expect(textOf(yield* client.call("echo", { text: "x" }))).toBe("named")
          expect(textOf(yield* client.call("seen", { text: "x" }))).toBe("{\"text\":\"slow\"}")
        }
        expect(asked).toBe(2)
      }))

    it.effect("answers without next, and fails with a result, with an error and with a defect", () =>
      Effect.gen(function*() {
        const middleware = Middleware.callTool((call, next) => {
          switch (call.arguments["text"]) {
            case "own":
              return Effect.succeed({ content: [{ type: "text", text: "mine" }] })
            case "failed":
              return Effect.fail(new Failed({ message: "Ask for less" }))
            case "error":
              return Effect.fail(McpError.other(7, "No"))
            case "thrown":
              throw new Error("secret")
            default:
              return next()
          }
        })
        const client = yield* kit.client(kit.server(middleware, echo), revision)
        const call = (text: string) => client.request("tools/call", { name: "echo", arguments: { text } })
        expect((yield* call("own")).result.content[0].text).toBe("mine")
        expect((yield* call("failed")).result).toMatchObject({ isError: true, content: [{ text: "Ask for less" }] })
        expect((yield* call("error")).error).toMatchObject({ code: 7, message: "No" })
        kit.referenceOf((yield* call("thrown")).result, "echo")
        expect((yield* call("x")).result.content[0].text).toBe("x")
      }))

    it.effect("sees who calls, and neither unknown tools nor those that the caller may not see", () =>
      Effect.gen(function*() {
        const calls: Array<unknown> = []
        const watch = Middleware.callTool((call, next) => {
          calls.push([call.name, call.caller.principal?.id])
          return next()
        })
        const hidden = Tool.layer(Tool.make("hidden", { visible: () => false }), () => Effect.void)
        const server = yield* support.build(kit.server(watch, echo, hidden))
        const client = yield* support.connect(server, revision, support.as("ada"))
        yield* client.error("tools/call", { name: "nothing" })
        yield* client.error("tools/call", { name: "hidden" })
        yield* client.call("echo", { text: "x" })
        expect(calls).toEqual([["echo", "ada"]])
      }))

    it.effect("finds the failure behind a result", () =>
      Effect.gen(function*() {
        const failures: Array<unknown> = []
        const watch = Middleware.callTool((_, next) =>
          Effect.tap(next(), (result) => Effect.sync(() => void failures.push(Middleware.failureOf(result))))
        )
        const failing = Tool.layer(Tool.make("fails"), () => Effect.fail(new Failed({ message: "no" })))
        const made = Tool.layer(Tool.make("made"), () => Effect.succeed(Tool.result({ content: "no", isError: true })))
        const client = yield* kit.client(kit.server(watch, failing, made), revision)
        yield* client.call("fails")
        yield* client.call("made")
        expect(failures).toEqual([new Failed({ message: "no" }), undefined])
      }))

    it.effect("has services of its own, which handlers do not see", () =>
      Effect.gen(function*() {
        const suffixed = Middleware.callTool((call, next) =>
          Effect.flatMap(Suffix, (suffix) => next({ text: `${call.arguments["text"]}${suffix}` }))
        ).pipe(Layer.provide(Layer.succeed(Suffix, "!")))
        const who = Tool.layer(Tool.make("who", { input: Text }), ({ text }) =>
          Effect.map(Suffix, (suffix) => text + suffix))
        const client = yield* kit.client(
          kit.server(suffixed, who).pipe(Layer.provide(Layer.succeed(Suffix, "?"))),
          revision
        )
        expect(textOf(yield* client.call("who", { text: "x" }))).toBe("x!?")
      }))

    it.effect("is added and removed while the server runs", () =>
      Effect.gen(function*() {
        const context = yield* Effect.orDie(Layer.build(kit.server(echo)))
        const client = yield* Effect.provide(kit.connect(revision), context)
        const scope = yield* Scope.make()
        const closed = Middleware.callTool(() => Effect.fail(new Failed({ message: "Closed" })))
        yield* Effect.orDie(Layer.buildWithScope(closed, scope)).pipe(Effect.provide(context))
        expect(textOf(yield* client.call("echo", { text: "x" }))).toBe("Closed")
        yield* Scope.close(scope, Exit.void)
        expect(textOf(yield* client.call("echo", { text: "x" }))).toBe("x")
      }))
  })

  describe(`${revision} · readResource and getPrompt`, () => {
    it.effect("change the contents of resources and of templates, of all or of some", () =>
      Effect.gen(function*() {
        const loud = Middleware.readResource((read, next) =>
          Effect.map(next(), ({ contents, ...rest }) => ({
            ...rest,
            contents: contents.map((each) =>
              "text" in each ? { ...each, text: `${each.text} of ${read.definition.name}` } : each
            )
          }))
        )
        const refused = Middleware.readResource(() => Effect.fail(new Failed({ message: "Closed" })), {
          resources: ["a://closed"]
        })
        const also = Middleware.readResource(() => Effect.fail(Resource.notFound("a://gone")), {
          resources: ({ uri }) => uri.endsWith("gone")
        })
        const client = yield* kit.client(
          kit.server(
            loud,
            refused,
            also,
            Resource.layer(Resource.make("a://one", { name: "one" }), Effect.succeed("1")),
            Resource.layer(Resource.make("a://closed"), Effect.succeed("2")),
            ResourceTemplate.layer(
              ResourceTemplate.make("b://{id}", { name: "template" }),
              ({ id }) => Effect.succeed(id)
            )
          ),
          revision
        )
        const read = (uri: string) =>
          Effect.map(client.result("resources/read", { uri }), ({ contents }) => contents[0].text)
        expect(yield* read("a://one")).toBe("1 of one")
        expect(yield* read("b://x")).toBe("x of template")
        expect(yield* client.error("resources/read", { uri: "a://closed" })).toMatchObject({ message: "Closed" })
        expect((yield* client.error("resources/read", { uri: "b://gone" })).code).toBe(
          revision === "2026-07-28" ? -32602 : -32002
        )
      }))

    it.effect("change the arguments of a prompt, which are validated", () =>
      Effect.gen(function*() {
        const greet = Prompt.layer(
          Prompt.make("greet", { arguments: { name: Schema.String } }),
          ({ name }) => Effect.map(McpRequest, ({ params }) => `${name} ${JSON.stringify(params?.["arguments"])}`)
        )
        const other = Prompt.layer(Prompt.make("other"), () => Effect.succeed("other"))
        const named = Middleware.getPrompt(
          (prompt, next) => next(prompt.arguments["name"] === "none" ? {} : { name: "Ada" }),
          { prompts: ["greet"] }
        )
        const client = yield* kit.client(kit.server(named, greet, other), revision)
        const get = (name: string, args: object) =>
          Effect.map(
            client.result("prompts/get", { name, arguments: args }),
            ({ messages }) => messages[0].content.text
          )
        expect(yield* get("greet", { name: "Bob" })).toBe("Ada {\"name\":\"Ada\"}")
        expect(yield* get("other", {})).toBe("other")
        expect((yield* client.error("prompts/get", { name: "greet", arguments: { name: "none" } })).code).toBe(-32602)
      }))
  })

  describe(`${revision} · lists`, () => {
    const names = ["a", "b", "c", "d", "e"]
    const many = names.map((name) => Tool.layer(Tool.make(name, { description: name }), () => Effect.void))

    it.effect("are filtered and changed for each caller, with full pages", () =>
      Effect.gen(function*() {
        const some = Middleware.listTools(({ caller }, next) =>
          Effect.map(next(), (tools) =>
            tools.filter(({ name }) => name !== caller.principal?.id)
              .map((tool) => ({ ...tool, description: tool.description?.toUpperCase() ?? "" })).reverse())
        )
        const server = yield* support.build(
          McpServer.layer({ name: "test", version: "1", pageSize: 2 }, some, Layer.mergeAll(many[0]!, ...many.slice(1)))
        )
        for (const id of ["a", "c"]) {
          const client = yield* support.connect(server, revision, support.as(id))
          const { entries, pages } = yield* client.all("tools/list", "tools")
          expect(entries.map(({ description, name }) => [name, description])).toEqual(
            names.filter((name) => name !== id).map((name) => [name, name.toUpperCase()])
          )
          expect(pages).toBe(2)
        }
      }))

    it.effect("of resources, templates and prompts are changed too, are private, and fail as other requests do", () =>
      Effect.gen(function*() {
        const named = <A extends { readonly name: string }>(all: ReadonlyArray<A>) =>
          all.map((each) => ({ ...each, title: "T" }))
        const client = yield* kit.client(
          McpServer.layer(
            { name: "test", version: "1", caching: { "resources/list": { ttlMs: 1000, cacheScope: "public" } } },
            Middleware.listResources((_, next) => Effect.map(next(), named)),
            Middleware.listResourceTemplates((_, next) => Effect.map(next(), named)),
            Middleware.listPrompts(() => Effect.fail(new Failed({ message: "Closed" }))),
            Resource.layer(Resource.make("a://one"), Effect.succeed("1")),
            ResourceTemplate.layer(ResourceTemplate.make("b://{id}", { name: "b" }), () => Effect.succeed("2")),
            Prompt.layer(Prompt.make("greet"), () => Effect.succeed("Hello"))
          ),
          revision
        )
        const resources = yield* client.result("resources/list")
        expect(resources.resources).toMatchObject([{ uri: "a://one", title: "T" }])
        expect(resources.cacheScope).toBe(revision === "2026-07-28" ? "private" : undefined)
        expect((yield* client.result("resources/templates/list")).resourceTemplates).toMatchObject([{ title: "T" }])
        expect(yield* client.error("prompts/list")).toMatchObject({ code: -32603, message: "Closed" })
      }))
  })
}

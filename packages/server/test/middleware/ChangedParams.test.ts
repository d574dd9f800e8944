/** Middleware that changes the params of requests. */
import { describe, expect, it } from "@effect/vitest"
import * as AuditLog from "@skein/server/AuditLog"
import * as Elicitation from "@skein/server/Elicitation"
import { McpRequest } from "@skein/server/McpRequest"
import * as Middleware from "@skein/server/Middleware"
import { once } from "@skein/server/Once"
import * as Progress from "@skein/server/Progress"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as httpFixtures from "../http/fixtures.ts"
import * as http from "../http/kit.ts"
import * as input from "../input/kit.ts"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

const Text = { text: Schema.String }
const argumentsOf = Effect.map(McpRequest, ({ params }) => JSON.stringify(params?.["arguments"]))

/** Replaces the arguments of all calls. */
const replacing = (args: (given: kit.Json) => kit.Json) =>
  Middleware.layer((next) => (request) =>
    request.method === "tools/call"
      ? next(request.with({ params: { ...request.params, arguments: args(request.params?.["arguments"]) } }))
      : next(request)
  )

const shout = () => replacing(({ text }) => ({ text: `${text}!` }))

for (const revision of support.eras) {
  describe(`${revision} · a middleware that changes params`, () => {
    it.effect("changes the arguments and the McpRequest of the handler, one middleware after the other", () =>
      Effect.gen(function*() {
        const echo = Tool.layer(
          Tool.make("echo", { input: Text }),
          ({ text }) => Effect.map(argumentsOf, (seen) => `${text} ${seen}`)
        )
        const client = yield* kit.client(kit.server(shout(), shout(), echo), revision)
        expect((yield* client.call("echo", { text: "a" })).content[0].text).toBe("a!! {\"text\":\"a!!\"}")
      }))

    it.effect("is seen by the audit log that is listed after it, and not by the one before it", () =>
      Effect.gen(function*() {
        const entries: Array<unknown> = []
        const log = (name: string) =>
          AuditLog.layer({
            methods: ["tools/call"],
            arguments: true,
            sink: ({ arguments: args, target }) => Effect.sync(() => void entries.push([name, target, args]))
          })
        const echo = Tool.layer(Tool.make("echo", { input: Text }), ({ text }) => Effect.succeed(text))
        const client = yield* kit.client(kit.server(log("before"), shout(), log("after"), echo), revision)
        yield* client.call("echo", { text: "a" })
        expect(entries).toEqual([["after", "echo", { text: "a!" }], ["before", "echo", { text: "a" }]])
      }))

    it.effect("has its arguments validated", () =>
      Effect.gen(function*() {
        const echo = Tool.layer(Tool.make("echo", { input: Text }), ({ text }) => Effect.succeed(text))
        const client = yield* kit.client(kit.server(replacing(() => ({ text: 1 })), echo), revision)
        const result = yield* client.call("echo", { text: "a" })
        expect(result.isError).toBe(true)
        expect(result.content[0].text).toContain("Invalid arguments for tool echo")
      }))

    it.effect("cannot reach a tool that the caller may not see", () =>
      Effect.gen(function*() {
        const renamed = Middleware.layer((next) => (request) =>
          next(
            request.method === "tools/call" ? request.with({ params: { ...request.params, name: "hidden" } }) : request
          )
        )
        const hidden = Tool.layer(
          Tool.make("hidden", { visible: ({ principal }) => principal?.id === "admin" }),
          () => Effect.succeed("secret")
        )
        const shown = Tool.layer(Tool.make("shown"), () => Effect.succeed("shown"))
        const server = yield* support.build(kit.server(renamed, hidden, shown))
        const user = yield* support.connect(server, revision, support.as("user"))
        expect(yield* user.error("tools/call", { name: "shown" })).toMatchObject({ code: -32602 })
        const admin = yield* support.connect(server, revision, support.as("admin"))
        expect((yield* admin.call("shown")).content[0].text).toBe("secret")
      }))

    it.effect("answers with the error of invalid params, and reads another resource", () =>
      Effect.gen(function*() {
        const other = Middleware.layer((next) => (request) =>
          request.method === "resources/read" ? next(request.with({ params: { uri: "a://two" } })) : next(request)
        )
        const none = Middleware.layer((next) => (request) =>
          request.method === "prompts/get" ? next(request.with({ params: undefined })) : next(request)
        )
        const two = Resource.layer(Resource.make("a://two"), Effect.succeed("two"))
        const server = kit.server(other, none, two, Tool.layer(Tool.make("t"), () => Effect.void))
        const client = yield* kit.client(server, revision)
        expect((yield* client.result("resources/read", { uri: "a://one" })).contents[0].text).toBe("two")
        expect((yield* client.error("prompts/get", { name: "p" })).code).toBe(-32601)
      }))

    it.effect("keeps the progress token and the cancellation of the client's request", () =>
      Effect.gen(function*() {
        const ends: Array<string> = []
        const slow = Tool.layer(Tool.make("slow"), () =>
          Progress.report({ progress: 1 }).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Effect.sync(() => void ends.push("interrupted")))
          ))
        const bare = Middleware.layer((next) => (request) =>
          next(request.method === "tools/call" ? request.with({ params: { name: "slow" } }) : request)
        )
        const client = yield* kit.client(kit.server(bare, slow), revision)
        const requestId = client.send("tools/call", { name: "other", _meta: { progressToken: "p" } })
        yield* kit.settle
        expect(client.received.at(-1)).toMatchObject({
          method: "notifications/progress",
          params: { progressToken: "p" }
        })
        client.notify("notifications/cancelled", { requestId })
        yield* kit.settle
        expect(ends).toEqual(["interrupted"])
      }))

    it.effect("makes its change again in each round of input requests, and once keeps what depends on the time", () =>
      Effect.gen(function*() {
        let times = 0
        const stamped = Middleware.layer((next) => (request) =>
          request.method !== "tools/call" ? next(request) : Effect.flatMap(
            Effect.orDie(once("stamp", Schema.Number, Effect.sync(() => ++times))),
            (stamp) => next(request.with({ params: { ...request.params, arguments: { text: `stamp ${stamp}` } } }))
          )
        )
        const ask = Tool.layer(Tool.make("ask", { input: Text }), ({ text }) =>
          Effect.map(
            Elicitation.accepted(Elicitation.form(`Is it ${text}?`, { answer: Schema.String })),
            ({ answer }) => `${text}: ${answer}`
          ))
        const client = yield* input.client(kit.server(stamped, ask), {
          revision,
          answer: () => input.accept({ answer: "yes" })
        })
        expect(yield* client.call("ask", { text: "given" })).toBe("stamp 1: yes")
        expect(client.asked.map(({ params }) => params.message)).toEqual(["Is it stamp 1?"])
        expect(times).toBe(1)
      }))
  })
}

describe("2026-07-28 · requestState", () => {
  const ask = Tool.layer(Tool.make("ask", { input: Text }), ({ text }) =>
    Effect.map(
      Elicitation.accepted(Elicitation.form(`Is it ${text}?`, { answer: Schema.String })),
      ({ answer }) => `${text}: ${answer}`
    ))

  it.effect("is bound to the params that the client sent, and refuses others, whatever the middleware makes of them", () =>
    Effect.gen(function*() {
      const same = replacing(() => ({ text: "same" }))
      const client = yield* input.client(kit.server(same, ask), {
        revision: "2026-07-28",
        answer: () => input.accept({ answer: "yes" })
      })
      const first = yield* client.once("tools/call", { name: "ask", arguments: { text: "mine" } })
      const further = { inputResponses: client.responses(first.result), requestState: first.result.requestState }
      const other = yield* client.once("tools/call", { name: "ask", arguments: { text: "other" }, ...further })
      expect(other.error).toMatchObject({ code: -32602, message: expect.stringContaining("other params") })
      const again = yield* client.once("tools/call", { name: "ask", arguments: { text: "mine" }, ...further })
      expect(input.textOf(again)).toBe("same: yes")
    }))
})

describe("2026-07-28 · x-mcp-header", () => {
  it.live("is compared with the argument that the client sent", () =>
    Effect.scoped(Effect.gen(function*() {
      const query = Tool.layer(
        Tool.make("query", { input: { region: Schema.String.annotate({ "x-mcp-header": "Region" }) } }),
        ({ region }) => Effect.succeed(region)
      )
      const at = yield* http.serve(
        httpFixtures.server(replacing(() => ({ region: "us" })), query)
      )
      const send = (region: string) => {
        const request = http.modern("tools/call", { name: "query", arguments: { region: "eu" } })
        return http.send(at, { ...request, headers: { ...request.headers, "Mcp-Param-Region": region } })
      }
      expect((yield* send("eu")).json.result.content[0].text).toBe("us")
      expect((yield* send("us")).json.error.code).toBe(-32020)
    })))
})

import { describe, expect, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

const echo = Tool.layer(Tool.make("echo"), () => Effect.succeed("said"))

class Name extends Context.Service<Name, string>()("test/Name") {}

for (const revision of support.eras) {
  describe(`${revision} · middleware`, () => {
    it.effect("wraps every method, the first middleware outermost", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const record = (name: string) =>
          Middleware.layer((next) => (exchange) => {
            seen.push(`${name} ${exchange.method}`)
            return Effect.tap(next(exchange), () => Effect.sync(() => void seen.push(`${name} ends`)))
          })
        const client = yield* kit.client(kit.server(record("a"), echo, record("b")), revision)
        seen.length = 0
        yield* client.call("echo")
        expect(seen).toEqual(["a tools/call", "b tools/call", "b ends", "a ends"])
        seen.length = 0
        yield* client.result("tools/list")
        yield* client.error("no/such")
        yield* client.error("prompts/list")
        expect(seen.filter((line) => line.startsWith("a "))).toEqual(
          ["a tools/list", "a ends", "a no/such", "a prompts/list"]
        )
      }))

    it.effect("receives the caller, the params and the headers", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const look = Middleware.layer((next) => (exchange) => {
          const { caller, origin, params } = exchange
          if (exchange.method === "tools/call") {
            seen.push(caller.principal?.id, caller.revision, params?.["name"], origin?.header?.("user-agent"))
          }
          return next(exchange)
        })
        const server = yield* support.build(kit.server(look, echo))
        const origin = { ...support.headers({ "user-agent": "browser" }), principal: { id: "alice" } }
        yield* (yield* support.connect(server, revision, origin)).call("echo")
        expect(seen).toEqual(["alice", revision, "echo", "browser"])
      }))

    it.effect("answers without calling next, refuses, and changes results, which become complete results", () =>
      Effect.gen(function*() {
        const own = Middleware.layer((next) => (exchange) => {
          switch (exchange.params?.["name"]) {
            case "own":
              return Effect.succeed({ content: [{ type: "text", text: "mine" }] })
            case "refused":
              return Effect.fail(McpError.other(7, "Not today"))
            default:
              return Effect.map(
                next(exchange),
                (answer) =>
                  exchange.method !== "tools/call" || answer instanceof JsonRpc.Encoded
                    ? answer
                    : { ...answer, _meta: { ...answer["_meta"] as object, "example.com/seen": true } }
              )
          }
        })
        const client = yield* kit.client(kit.server(own, echo), revision)
        const answer = yield* client.call("own")
        expect(answer.content[0].text).toBe("mine")
        expect(answer.resultType).toBe(revision === "2026-07-28" ? "complete" : undefined)
        expect(answer._meta?.["io.modelcontextprotocol/serverInfo"]?.name)
          .toBe(revision === "2026-07-28" ? "test" : undefined)
        expect(yield* client.error("tools/call", { name: "refused" })).toMatchObject({ code: 7, message: "Not today" })
        expect((yield* client.call("echo"))._meta["example.com/seen"]).toBe(true)
      }))

    it.effect("is added and removed while the server runs; requests in progress continue as they started", () =>
      Effect.gen(function*() {
        const context = yield* Effect.orDie(Layer.build(kit.server(echo)))
        const client = yield* Effect.provide(kit.connect(revision), context)
        const refuse = Middleware.layer(() => () => Effect.fail(McpError.other(7, "Closed")))
        const scope = yield* Scope.make()
        yield* Effect.orDie(Layer.buildWithScope(refuse, scope)).pipe(Effect.provide(context))
        expect((yield* client.error("tools/call", { name: "echo" })).message).toBe("Closed")
        yield* Scope.close(scope, Exit.void)
        expect((yield* client.call("echo")).content[0].text).toBe("said")
      }))

    it.effect("sees an exception of a handler as a defect; its own exception is one too", () =>
      Effect.gen(function*() {
        const ends: Array<string> = []
        const watch = Middleware.layer((next) => (exchange) =>
          Effect.onExit(next(exchange), (exit) => Effect.sync(() => void ends.push(exit._tag)))
        )
        const broken = Middleware.layer((next) => (exchange) => {
          if (exchange.params?.["name"] === "middleware") throw new Error("in a middleware")
          return next(exchange)
        })
        const bad = Tool.layer(Tool.make("bad"), () => {
          throw new Error("in a handler")
        })
        const client = yield* kit.client(kit.server(watch, broken, bad), revision)
        ends.length = 0
        yield* client.defect("bad")
        yield* client.defect("middleware")
        expect(ends).toEqual(["Failure", "Failure"])
      }))

    it.effect("fails the requests, and not the server, if it cannot be made", () =>
      Effect.gen(function*() {
        let broken = true
        const odd = Middleware.layer((next) => {
          if (broken) throw new Error("no")
          return next
        })
        const client = yield* kit.client(kit.server(echo), "2026-07-28")
        expect((yield* client.call("echo")).content[0].text).toBe("said")
        const other = yield* Effect.provide(
          kit.link("2026-07-28"),
          yield* Effect.orDie(Layer.build(kit.server(odd, echo)))
        )
        yield* other.defect("echo")
        broken = false
        expect((yield* other.call("echo")).content[0].text).toBe("said")
      }))

    it.effect("does not expose its services, and passes on the services that it provides to next", () =>
      Effect.gen(function*() {
        const who = Tool.layer(Tool.make("who"), () => Effect.map(Name, (name) => name))
        const names: Array<string> = []
        const uses = Middleware.layer((next) => (exchange) =>
          Effect.flatMap(Name, (name) => {
            names.push(name)
            return next(exchange)
          })
        )
        const gives = Middleware.layer((next) => (exchange) => Effect.provideService(next(exchange), Name, "given"))
        const base = Layer.succeed(Name, "base")
        const mine = uses.pipe(Layer.provide(Layer.succeed(Name, "mine")))
        const client = yield* kit.client(kit.server(mine, who).pipe(Layer.provide(base)), revision)
        expect((yield* client.call("who")).content[0].text).toBe("base")
        expect(names.at(-1)).toBe("mine")
        const second = yield* kit.client(kit.server(mine, gives, who).pipe(Layer.provide(base)), revision)
        expect((yield* second.call("who")).content[0].text).toBe("given")
      }))
  })
}

describe("keys", () => {
  it.effect("distinguish known names, and share one key for unknown ones", () =>
    Effect.gen(function*() {
      const keys: Array<string> = []
      const resource = Resource.layer(Resource.make("a://b"), Effect.succeed("x"))
      const client = yield* kit.client(
        McpServer.layer(
          { name: "test", version: "1" },
          Middleware.layer((next) => (exchange) => {
            keys.push(Middleware.perPrincipalAndTarget(exchange, exchange.method === "tools/call" ? "t" : undefined))
            return next(exchange)
          }),
          resource,
          echo
        ),
        "2026-07-28"
      )
      for (const method of ["no/such", "nor/this", "ping"]) yield* client.error(method)
      expect(new Set(keys).size).toBe(1)
      yield* client.result("tools/list")
      yield* client.call("echo")
      expect(new Set(keys).size).toBe(3)
    }))

  it("differ for different lists of parts", () => {
    const exchange = (id: string | undefined): any => ({
      method: "tools/call",
      caller: { revision: "2026-07-28", principal: id === undefined ? undefined : { id } }
    })
    const key = (id: string | undefined, target?: string) => Middleware.perPrincipalAndTarget(exchange(id), target)
    const all = [
      key("a", "b"),
      key("b", "a"),
      key("ab", ""),
      key("", "ab"),
      key("a"),
      key(undefined, "a"),
      key(undefined)
    ]
    expect(new Set(all).size).toBe(all.length)
    expect(Middleware.perPrincipal(exchange(""), undefined)).not.toBe(
      Middleware.perPrincipal(exchange(undefined), undefined)
    )
  })
})

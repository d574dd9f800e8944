import { describe, expect, it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import type * as Catalog from "@skein/server/Catalog"
import { DefinitionError } from "@skein/server/DefinitionError"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import * as kit from "./kit.ts"

class Kettle extends Context.Service<Kettle, { readonly name: string }>()("test/Kettle") {}

const ok = () => Effect.succeed("ok")
const text = (result: kit.Json): string => result.content[0].text
const names = (result: kit.Json): ReadonlyArray<string> => result.tools.map((tool: kit.Json) => tool.name)

describe("taken names", () => {
  const twice: ReadonlyArray<readonly [DefinitionError["kind"], string, () => McpServer.Definitions]> = [
    ["tool", "a", () => Tool.layer(Tool.make("a"), ok)],
    ["resource", "a://b", () => Resource.layer(Resource.make("a://b"), Effect.succeed(""))],
    [
      "resource template",
      "a://{b}",
      () => ResourceTemplate.layer(ResourceTemplate.make("a://{b}", { name: "n" }), () => Effect.succeed(""))
    ],
    ["prompt", "a", () => Prompt.layer(Prompt.make("a"), () => Effect.succeed(""))]
  ]
  for (const [kind, name, make] of twice) {
    it.effect(`fails a layer with DuplicateName if a ${kind} is registered twice`, () =>
      Effect.gen(function*() {
        const error = yield* kit.failure(kit.server(make(), make()) as kit.Server)
        expect(error).toBeInstanceOf(DefinitionError)
        expect(error).toMatchObject({
          name: "DefinitionError",
          reason: { _tag: "DuplicateName" },
          kind,
          definition: name
        })
        expect((error as DefinitionError).message).toContain(JSON.stringify(name))
      }))
  }

  it.effect("names of different kinds do not collide", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(
        kit.server(Tool.layer(Tool.make("a"), ok), Prompt.layer(Prompt.make("a"), () => Effect.succeed("")))
      )
      expect(names(yield* client.result("tools/list"))).toEqual(["a"])
    }))

  it.effect("one layer that is listed twice is one definition", () =>
    Effect.gen(function*() {
      const a = Tool.layer(Tool.make("a"), ok)
      const client = yield* kit.client(kit.server(a, a, Layer.mergeAll(a, Tool.layer(Tool.make("b"), ok))))
      expect(names(yield* client.result("tools/list"))).toEqual(["a", "b"])
    }))
})

describe("layers", () => {
  it.effect("two servers in one program register the same definitions", () =>
    Effect.gen(function*() {
      class One extends Context.Service<One, McpServer.McpServer["Service"]>()("test/One") {}
      class Two extends Context.Service<Two, McpServer.McpServer["Service"]>()("test/Two") {}
      const shared = Layer.mergeAll(Tool.layer(Tool.make("a"), ok), Tool.layer(Tool.make("b"), ok))
      const context = yield* Layer.build(Layer.mergeAll(
        Layer.provide(Layer.effect(One, McpServer.McpServer), kit.server(shared)),
        Layer.provide(Layer.effect(Two, McpServer.McpServer), kit.server(shared))
      ))
      const servers = [Context.get(context, One), Context.get(context, Two)]
      expect(servers[0]).not.toBe(servers[1])
      for (const server of servers) {
        const client = yield* Effect.provideService(kit.connect(), McpServer.McpServer, server)
        expect(names(yield* client.result("tools/list"))).toEqual(["a", "b"])
      }
    }))

  it.effect("definitions that are layered on top are removed when their scope closes", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(kit.server(Tool.layer(Tool.make("a"), ok)))
      const client = yield* Effect.provide(kit.connect(), context)
      const scope = yield* Scope.make()
      const more = Layer.provide(Tool.layer(Tool.make("b"), ok), Layer.succeedContext(context))
      yield* Scope.provide(Layer.build(more), scope)
      expect(names(yield* client.result("tools/list"))).toEqual(["a", "b"])
      expect(text(yield* client.call("b"))).toBe("ok")
      yield* Scope.close(scope, Exit.void)
      expect(names(yield* client.result("tools/list"))).toEqual(["a"])
      expect(yield* client.error("tools/call", { name: "b" })).toMatchObject({ code: -32602 })
    }))

  it.effect("builds a layer that several definitions share once per server, and closes it with the server", () =>
    Effect.gen(function*() {
      const events: Array<string> = []
      const kettle = Layer.effect(
        Kettle,
        Effect.acquireRelease(
          Effect.sync(() => {
            events.push("built")
            return { name: "k" }
          }),
          () => Effect.sync(() => void events.push("closed"))
        )
      )
      const use = (name: string) =>
        Layer.provide(Tool.layer(Tool.make(name), () => Effect.map(Kettle, (kettle) => kettle.name)), kettle)
      const scope = yield* Scope.make()
      const context = yield* Scope.provide(Layer.build(kit.server(use("a"), use("b"))), scope)
      const client = yield* Effect.provide(kit.connect(), context)
      expect(text(yield* client.call("a")) + text(yield* client.call("b"))).toBe("kk")
      expect(events).toEqual(["built"])
      yield* Scope.close(scope, Exit.void)
      expect(events).toEqual(["built", "closed"])
    }))

  it.effect("does not rebuild a layer that was built outside", () =>
    Effect.gen(function*() {
      let built = 0
      const kettle = Layer.sync(Kettle, () => ({ name: `k${++built}` }))
      const tool = Tool.layer(Tool.make("a"), () => Effect.map(Kettle, (kettle) => kettle.name))
      const server = kit.server(Layer.provide(tool, kettle))
      const client = yield* kit.client(Layer.provideMerge(server, kettle) as kit.Server)
      expect(text(yield* client.call("a"))).toBe("k1")
      expect(built).toBe(1)
    }))
})

describe("services", () => {
  const boil = Tool.make("boil")
  const handler = () => Effect.map(Kettle, (kettle) => kettle.name)

  it.effect("provides a handler with the services of its layer, wherever they were provided", () =>
    Effect.gen(function*() {
      const red = Layer.succeed(Kettle, { name: "red" })
      const atTool = yield* kit.client(kit.server(Layer.provide(Tool.layer(boil, handler), red)))
      expect(text(yield* atTool.call("boil"))).toBe("red")
      const atServer = yield* kit.client(Layer.provide(kit.server(Tool.layer(boil, handler)), red))
      expect(text(yield* atServer.call("boil"))).toBe("red")
    }))

  it.effect("provides two tools with different instances of a service, and ignores the instance of the server", () =>
    Effect.gen(function*() {
      const use = (name: string, kettle: string) =>
        Layer.provide(Tool.layer(Tool.make(name), handler), Layer.succeed(Kettle, { name: kettle }))
      const server = Layer.provide(
        kit.server(use("a", "red"), use("b", "blue"), Tool.layer(boil, handler)),
        Layer.succeed(Kettle, { name: "white" })
      )
      const client = yield* kit.client(server)
      const [a, b, c] = yield* Effect.all([client.call("a"), client.call("b"), client.call("boil")], {
        concurrency: "unbounded"
      })
      expect([text(a), text(b), text(c)]).toEqual(["red", "blue", "white"])
    }))

  it.effect("provides resources, templates and prompts likewise", () =>
    Effect.gen(function*() {
      const name = Effect.map(Kettle, (kettle) => kettle.name)
      const client = yield* kit.client(kit.server(Layer.provide(
        Layer.mergeAll(
          Resource.layer(Resource.make("a://a"), name),
          ResourceTemplate.layer(ResourceTemplate.make("b://{x}", { name: "b" }), () => name),
          Prompt.layer(Prompt.make("p"), () => name)
        ),
        Layer.succeed(Kettle, { name: "red" })
      )))
      expect((yield* client.result("resources/read", { uri: "a://a" })).contents[0].text).toBe("red")
      expect((yield* client.result("resources/read", { uri: "b://1" })).contents[0].text).toBe("red")
      expect((yield* client.result("prompts/get", { name: "p" })).messages[0].content.text).toBe("red")
    }))

  it.effect("each of many concurrent requests has its own McpRequest, before and after it waits", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const tool = Tool.layer(Tool.make("who"), () =>
        Effect.gen(function*() {
          const before = (yield* McpRequest).id
          yield* Deferred.await(gate)
          const after = (yield* McpRequest).id
          return `${before} ${after} ${(yield* Kettle).name}`
        }))
      const captured = Layer.merge(Layer.succeed(Kettle, { name: "red" }), Layer.succeed(McpRequest, {} as never))
      const client = yield* kit.client(kit.server(Layer.provide(tool, captured)))
      const ids = Array.from({ length: 20 }, () => client.send("tools/call", { name: "who" }))
      yield* kit.settle
      expect(ids.flatMap((id) => client.answers(id))).toEqual([])
      yield* Deferred.succeed(gate, undefined)
      for (const id of ids) expect(text((yield* client.answer(id)).result)).toBe(`${id} ${id} red`)
    }))

  it.effect("captured services do not hide the span of the request", () =>
    Effect.gen(function*() {
      const parent = Effect.map(Effect.serviceOption(Tracer.ParentSpan), Option.map((span) => span.spanId))
      const tool = Layer.withSpan(Tool.layer(Tool.make("span"), () => Effect.map(parent, String)), "building")
      const client = yield* kit.client(kit.server(tool))
      expect(text(yield* client.call("span"))).toBe(String(Option.none()))
    }))
})

describe("scopes", () => {
  it.effect("a handler that requires a scope against the types does not get the scope of the server", () =>
    kit.logged(() =>
      Effect.gen(function*() {
        let held = 0
        const acquire = Effect.acquireRelease(Effect.sync(() => String(++held)), () => Effect.sync(() => void held--))
        // The types refuse this: the layer requires a service that cannot be provided.
        const unscoped = Tool.layer(Tool.make("unscoped"), () => acquire) as Layer.Layer<never, never, Catalog.Catalog>
        const scoped = Tool.layer(Tool.make("scoped"), () => Effect.scoped(acquire))
        const context = yield* Layer.build(kit.server(unscoped, scoped))
        const scope = yield* Scope.make()
        const client = yield* Scope.provide(Effect.provide(kit.connect(), context), scope)
        expect(text(yield* client.call("scoped"))).toBe("1")
        expect(held).toBe(0)
        yield* client.request("tools/call", { name: "unscoped" })
        yield* Scope.close(scope, Exit.void)
        expect(held).toBe(0)
      })
    ))

  it.effect("closes the scope of a call before the response, and when the call is cancelled", () =>
    Effect.gen(function*() {
      const events: Array<string> = []
      const tool = Tool.layer(Tool.make("slow"), () =>
        Effect.scoped(Effect.gen(function*() {
          yield* Effect.addFinalizer(() => Effect.sync(() => void events.push("closed")))
          return yield* Effect.never
        })))
      const client = yield* kit.client(kit.server(tool), "2025-11-25")
      const id = client.send("tools/call", { name: "slow" })
      yield* kit.settle
      client.notify("notifications/cancelled", { requestId: id })
      yield* kit.settle
      expect(events).toEqual(["closed"])
      expect(client.answers(id)).toEqual([])
    }))

  it.effect("a connection ends with the scope that serves it, and the server continues", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(kit.server(Tool.layer(Tool.make("a"), ok)))
      const { inspect } = Context.get(context, McpServer.McpServer)
      const scope = yield* Scope.make()
      const client = yield* Scope.provide(Effect.provide(kit.connect("2025-11-25"), context), scope)
      expect((yield* inspect).sessions.length).toBe(1)
      yield* Scope.close(scope, Exit.void)
      expect((yield* inspect).sessions.length).toBe(0)
      expect(yield* client.peer.ended).toEqual({ _tag: "ClosedByUs" })
      const other = yield* Effect.provide(kit.connect("2025-11-25"), context)
      expect(text(yield* other.call("a"))).toBe("ok")
    }))
})

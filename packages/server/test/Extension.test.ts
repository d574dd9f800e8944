import { describe, expect, it } from "@effect/vitest"
import { AnyObject } from "@skein/protocol/Primitive"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Caller } from "@skein/runtime/RequestContext"
import { Catalog } from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as kit from "./kit.ts"
import { acknowledged, id, listen, pass, set } from "./subscriptions/kit.ts"

const greet: Method.RequestMethod<{ readonly name: string }, JsonObject> = {
  ...Method.CallTool as Method.AnyRequest,
  name: "example/greet",
  params: Schema.Struct({ name: Schema.String }),
  result: AnyObject
}
const greeting = Extension.method(greet, ({ name }) => Effect.succeed({ text: `Good day, ${name}` }))
const echo = Tool.layer(Tool.make("echo", { input: { text: Schema.String } }), ({ text }) => Effect.succeed(text))

/** A tool that was called in both eras, and its callers. */
const calledInBothEras = Effect.gen(function*() {
  const callers: Array<Caller> = []
  const extension = Extension.layer({
    name: "example",
    call: (call, next) => {
      callers.push(call.request.caller)
      return next(call)
    }
  })
  const { connect, run } = yield* set({}, [extension, echo])
  const old = yield* connect("2025-11-25")
  yield* old.call("echo", { text: "x" })
  yield* (yield* connect("2026-07-28")).call("echo", { text: "x" })
  return { callers, old, run }
})

describe("an extension", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · adds methods, decodes their params and completes their results`, () =>
      Effect.gen(function*() {
        const { connect } = yield* set({}, [Extension.layer({ name: "example", methods: [greeting] })])
        const client = yield* connect(revision)
        const result = yield* client.result("example/greet", { name: "you" })
        expect(result.text).toBe("Good day, you")
        expect(result.resultType).toBe(revision === "2026-07-28" ? "complete" : undefined)
        expect((yield* client.error("example/greet", { name: 1 })).code).toBe(-32602)
        expect((yield* client.error("example/nothing", {})).code).toBe(-32601)
      }))
  }

  it.effect("2026-07-28 · a method of one era does not exist in the other", () =>
    Effect.gen(function*() {
      const methods = [Extension.method({ ...greet, since: "2026-07-28" }, () => Effect.succeed({}))]
      const { connect } = yield* set({}, [Extension.layer({ name: "example", methods })])
      expect((yield* (yield* connect("2025-11-25")).error("example/greet", { name: "you" })).code).toBe(-32601)
      expect(yield* (yield* connect("2026-07-28")).result("example/greet", { name: "you" })).toHaveProperty("_meta")
    }))

  it.effect("2026-07-28 · declares capabilities beside those of other extensions", () =>
    Effect.gen(function*() {
      const declaring = (name: string) =>
        Extension.layer({
          name,
          capabilities: ({ revision }) => revision >= "2026-07-28" ? { extensions: { [name]: {} } } : { tasks: {} }
        })
      const { connect } = yield* set({}, [declaring("example/a"), declaring("example/b"), echo])
      const { capabilities } = yield* (yield* connect("2026-07-28")).result("server/discover")
      expect(capabilities.extensions).toEqual({ "example/a": {}, "example/b": {} })
      expect(capabilities.tools).toEqual({ listChanged: true })
      const { received } = yield* connect("2025-11-25")
      expect(received[0].result.capabilities).toMatchObject({ tasks: {} })
      expect(received[0].result.capabilities).not.toHaveProperty("extensions")
    }))

  it.effect("receives each call of a tool with the tool's metadata, the first extension outermost", () =>
    Effect.gen(function*() {
      class Loud extends Context.Service<Loud, boolean>()("test/Loud") {}
      const around = (mark: string) =>
        Extension.layer({
          name: mark,
          call: (call, next) =>
            call.tool.metadata === undefined || !Context.get(call.tool.metadata as Context.Context<Loud>, Loud)
              ? next(call)
              : next({
                ...call,
                params: { ...call.params, arguments: { text: `${mark}${call.params.arguments?.["text"]}` } }
              })
        })
      const loud = Tool.make("loud", { input: { text: Schema.String }, metadata: Context.make(Loud, true) })
      const { connect } = yield* set({}, [
        around("a"),
        echo,
        Tool.layer(loud, ({ text }) => Effect.succeed(text)),
        around("b")
      ])
      const client = yield* connect("2026-07-28")
      expect((yield* client.call("loud", { text: "x" })).content[0].text).toBe("bax")
      expect((yield* client.call("echo", { text: "x" })).content[0].text).toBe("x")
      const { tools } = yield* client.result("tools/list")
      expect(tools.map(({ name }: { name: string }) => name)).toEqual(["echo", "loud"])
      expect(tools[1]).not.toHaveProperty("extensions")
    }))

  it.effect("2026-07-28 · takes part in a subscription from its acknowledgment to its end", () =>
    Effect.gen(function*() {
      const ended = yield* Deferred.make<void>()
      const extension = Extension.layer({
        name: "example",
        listen: ({ weather }) =>
          weather === "refused"
            ? Effect.fail(McpError.invalidParams("No weather"))
            : Effect.succeed(
              weather === undefined ? undefined : {
                agreed: { weather },
                run: (notify) =>
                  Effect.ensuring(
                    Effect.andThen(
                      Effect.sync(() => notify("w", "notifications/resources/updated", { uri: "weather://here" })),
                      Effect.never
                    ),
                    Deferred.succeed(ended, undefined)
                  )
              }
            )
      })
      const { connect } = yield* set({}, [extension])
      const client = yield* connect()
      const asked = yield* listen(client, { weather: "here" })
      yield* pass("1 second")
      expect(client.received.map(({ method, params }) => [method, params])).toEqual([
        [acknowledged, { _meta: { [id]: asked }, notifications: { weather: "here" } }],
        ["notifications/resources/updated", { _meta: { [id]: asked }, uri: "weather://here" }]
      ])
      client.notify("notifications/cancelled", { requestId: asked })
      yield* Deferred.await(ended)
      const refused = yield* client.answer(
        client.send("subscriptions/listen", { notifications: { weather: "refused" } })
      )
      expect(refused.error.code).toBe(-32602)
    }))

  it.effect("2025-11-25 · notifies a session while it is open; 2026-07-28 · returns false", () =>
    Effect.gen(function*() {
      const { callers, old, run } = yield* calledInBothEras
      const notification = { method: "notifications/resources/updated", params: { uri: "r://r" } }
      const notified = callers.map((caller) => run(Extension.notify(caller, "k", notification)))
      expect([yield* notified[0]!, yield* notified[1]!]).toEqual([true, false])
      yield* kit.settle
      expect(old.notices("notifications/resources/updated").map(({ params }) => params)).toEqual([{ uri: "r://r" }])
    }))

  it.effect("2025-11-25 · finds the scope of a session; 2026-07-28 · finds none", () =>
    Effect.gen(function*() {
      const { callers, old, run } = yield* calledInBothEras
      const scope = (yield* run(Extension.session(callers[0]!)))!
      let closed = false
      yield* Scope.addFinalizer(scope, Effect.sync(() => void (closed = true)))
      expect(yield* run(Extension.session(callers[1]!))).toBe(undefined)
      yield* kit.settle
      expect(closed).toBe(false)
      old.peer.close({ _tag: "ClosedByUs" })
      yield* old.peer.ended
      expect(closed).toBe(true)
    }))

  it.effect("2025-11-25 · closes the scope of a session that another one replaces", () =>
    Effect.gen(function*() {
      const { callers, old, run } = yield* calledInBothEras
      const closed: Array<string> = []
      const add = (scope: Scope.Scope, name: string) =>
        Scope.addFinalizer(scope, Effect.sync(() => void closed.push(name)))
      yield* add((yield* run(Extension.session(callers[0]!)))!, "first")
      yield* old.result("initialize", kit.hello("2025-11-25"))
      yield* kit.settle
      expect(closed).toEqual(["first"])
      expect(yield* run(Extension.session(callers[0]!))).toBe(undefined)
      yield* old.call("echo", { text: "x" })
      yield* add((yield* run(Extension.session(callers.at(-1)!)))!, "second")
      old.peer.close({ _tag: "ClosedByUs" })
      yield* old.peer.ended
      expect(closed).toEqual(["first", "second"])
    }))

  it.effect("runs ready of all extensions at the same time", () =>
    Effect.gen(function*() {
      const second = yield* Deferred.make<void>()
      const first = Extension.layer({ name: "first", ready: Deferred.await(second) })
      const other = Extension.layer({ name: "second", ready: Effect.asVoid(Deferred.succeed(second, undefined)) })
      yield* set({}, [first, other])
    }))

  it.effect("runs ready once all definitions are registered", () =>
    Effect.gen(function*() {
      let seen: ReadonlyArray<string> = []
      const extension = Extension.effect(Effect.map(Catalog, ({ tools }) => ({
        name: "example",
        ready: Effect.sync(() => {
          seen = tools.sorted.map(([name]) => name)
        })
      })))
      yield* set({}, [extension, echo])
      expect(seen).toEqual(["echo"])
    }))
})

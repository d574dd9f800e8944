import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../src/Client.ts"
import * as Middleware from "../src/Middleware.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const open = (
  revision: Revision,
  script: ScriptedServer.Script,
  middleware: ReadonlyArray<Middleware.Middleware>,
  options?: Client.Options
) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(ScriptedServer.handshake(revision, script))
    return { server, client: yield* Client.make(server.transport, { ...options, middleware }) }
  })

const text = (value: string) => ({ content: [{ type: "text" as const, text: value }], resultType: "complete" })
const hello: ScriptedServer.Script = () => ScriptedServer.success(text("hello"))

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect("runs the middleware that is listed first outermost, and composes it once for all calls", () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const named = (name: string): Middleware.Middleware => (next) => {
          log.push(`apply ${name}`)
          return (call) => {
            log.push(`${name} ${call.method.name}`)
            return Effect.tap(next(call), () => Effect.sync(() => void log.push(`${name} done`)))
          }
        }
        const { client } = yield* open(revision, hello, [named("a"), named("b")])
        yield* client.callTool("greet")
        const calls = ["a tools/call", "b tools/call", "b done", "a done"]
        assert.deepStrictEqual(log, ["apply b", "apply a", ...calls])
        yield* client.callTool("greet")
        assert.deepStrictEqual(log, ["apply b", "apply a", ...calls, ...calls])
      }))

    it.effect("redaction: sends the parameters that a middleware passes on", () =>
      Effect.gen(function*() {
        const redact: Middleware.Middleware = (next) => (call) =>
          Middleware.isToolCall(call, "greet")
            ? next({ ...call, params: { ...call.params, arguments: { ...call.params.arguments, key: "***" } } })
            : next(call)
        const { client, server } = yield* open(revision, hello, [redact])
        yield* client.callTool("greet", { name: "Ada", key: "secret" })
        yield* client.callTool("other", { key: "secret" })
        const sent = server.requests("tools/call").map(({ params }) => params?.["arguments"])
        assert.deepStrictEqual(sent, [{ name: "Ada", key: "***" }, { key: "secret" }])
      }))

    it.effect("retry: repeats a call when next(call) runs again, with the full timeout each time", () =>
      Effect.gen(function*() {
        let calls = 0
        const retry: Middleware.Middleware = (next) => (call) =>
          Effect.retry(next(call), { times: 2, while: ({ reason }) => reason._tag === "Timeout" })
        const { client, server } = yield* open(
          revision,
          () => ++calls < 3 ? "no response" : ScriptedServer.success(text("at last")),
          [retry]
        )
        const call = yield* Effect.forkChild(client.callTool("slow", {}, { timeout: 1_000 }), {
          startImmediately: true
        })
        yield* TestClock.adjust(2_000)
        assert.deepStrictEqual((yield* Fiber.join(call)).content, text("at last").content)
        assert.strictEqual(server.requests("tools/call").length, 3)
      }))

    it.effect("audit: sees the outcome of each call, including failure and interruption", () =>
      Effect.gen(function*() {
        const ends: Array<string> = []
        const audit: Middleware.Middleware = (next) => (call) =>
          Effect.onExit(next(call), (exit) =>
            Effect.sync(() =>
              void ends.push(
                Exit.isSuccess(exit) ? "ok" : Cause.hasInterruptsOnly(exit.cause) ? "interrupted" : "failed"
              )
            ))
        const { client } = yield* open(
          revision,
          ({ params }) =>
            params?.["name"] === "slow"
              ? "no response"
              : params?.["name"] === "bad"
              ? ScriptedServer.success({ content: 1 })
              : ScriptedServer.success(text("")),
          [audit]
        )
        yield* client.callTool("good")
        yield* Effect.flip(client.callTool("bad"))
        const slow = yield* Effect.forkChild(client.callTool("slow"), { startImmediately: true })
        yield* Fiber.interrupt(slow)
        assert.deepStrictEqual(ends, ["ok", "failed", "interrupted"])
      }))

    it.effect("cache: responds without the server, and can change a result", () =>
      Effect.gen(function*() {
        const kept = new Map<string, JsonObject>()
        const cache: Middleware.Middleware = (next) => (call) => {
          const key = `${call.method.name} ${JSON.stringify(call.params)}`
          const hit = kept.get(key)
          return hit === undefined
            ? Effect.map(next(call), (result) => {
              const marked = { ...result, _meta: { kept: true } }
              kept.set(key, marked)
              return marked
            })
            : Effect.succeed(hit)
        }
        const { client, server } = yield* open(revision, hello, [cache])
        const first = yield* client.callTool("greet")
        assert.deepStrictEqual(first._meta, { kept: true })
        assert.strictEqual(yield* client.callTool("greet"), first)
        assert.strictEqual(server.requests("tools/call").length, 1)
      }))

    it.effect("sees each page of a list, and requests that the client does not support", () =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const watch: Middleware.Middleware = (next) => (call) =>
          Effect.tapError(
            Effect.suspend(() => {
              seen.push(`${call.method.name} ${JSON.stringify(call.params)}`)
              return next(call)
            }),
            ({ reason }) => Effect.sync(() => void seen.push(reason._tag))
          )
        const { client } = yield* open(
          revision,
          ({ params }) =>
            ScriptedServer.success({
              tools: [],
              ...(params?.["cursor"] === "2" ? undefined : { nextCursor: "2" }),
              ttlMs: 0,
              cacheScope: "private"
            }),
          [watch]
        )
        yield* client.listTools()
        yield* Effect.flip(client.request(Method.ListRoots, {}))
        assert.deepStrictEqual(seen, ["tools/list {}", "tools/list {\"cursor\":\"2\"}", "roots/list {}", "Unsupported"])
      }))
  })
}

it.effect("2026-07-28 · a call with several rounds of input is one call to a middleware", () =>
  Effect.gen(function*() {
    let calls = 0
    const count: Middleware.Middleware = (next) => (call) => {
      calls++
      return next(call)
    }
    const { client, server } = yield* open(
      "2026-07-28",
      ({ params }) =>
        params?.["requestState"] === undefined
          ? ScriptedServer.success({ resultType: "input_required", requestState: "once" })
          : ScriptedServer.success(text("done")),
      [count]
    )
    assert.deepStrictEqual((yield* client.callTool("t")).content, text("done").content)
    assert.deepStrictEqual([calls, server.requests("tools/call").length], [1, 2])
  }))

import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as AuditLog from "@skein/server/AuditLog"
import * as RateLimit from "@skein/server/RateLimit"
import * as MaxResponseSize from "@skein/server/MaxResponseSize"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

class Failed extends Data.TaggedError("Failed")<{ readonly message: string }> {}

const tools = [
  Tool.layer(Tool.make("ok", { input: { secret: Schema.String } }), ({ secret }) => Effect.succeed(secret)),
  Tool.layer(Tool.make("fails"), () => Effect.fail(new Failed({ message: "no" }))),
  Tool.layer(Tool.make("refuses"), () => Effect.fail(McpError.other(7, "no"))),
  Tool.layer(Tool.make("dies"), () => Effect.die("dead")),
  Tool.layer(Tool.make("slow"), () => Effect.as(Effect.sleep("2 seconds"), "x"))
] as const

const entries = () => {
  const all: Array<AuditLog.Entry> = []
  return { all, sink: (entry: AuditLog.Entry) => Effect.sync(() => void all.push(entry)) }
}

it.effect("2026-07-28 · records subscriptions/listen with the time that it was open", () =>
  Effect.gen(function*() {
    const { all, sink } = entries()
    const client = yield* kit.client(kit.server(AuditLog.layer({ sink }), ...tools), "2026-07-28")
    const requestId = client.send("subscriptions/listen", { notifications: { toolsListChanged: true } })
    yield* kit.settle
    yield* TestClock.adjust("1 hour")
    expect(all).toEqual([])
    client.notify("notifications/cancelled", { requestId })
    yield* kit.settle
    expect(all).toMatchObject([{ method: "subscriptions/listen", outcome: "cancelled", durationMs: 3_600_000 }])
  }))

for (const revision of support.eras) {
  describe(`${revision} · audit log`, () => {
    it.effect("records caller, target and outcome, without arguments", () =>
      Effect.gen(function*() {
        const { all, sink } = entries()
        const limit = RateLimit.layer({ limit: 1, key: () => "all", methods: ["tools/list"] })
        const server = yield* support.build(
          kit.server(AuditLog.layer({ sink }), limit, MaxResponseSize.layer(), ...tools)
        )
        const client = yield* support.connect(server, revision, support.as("alice"))
        all.length = 0
        yield* client.call("ok", { secret: "x y z" })
        for (const name of ["fails", "refuses", "dies", "none"]) yield* client.request("tools/call", { name })
        yield* client.request("tools/list")
        yield* client.request("tools/list")
        yield* client.request("no/such")
        expect(all.map(({ code, method, outcome, target }) => [method, target, outcome, code])).toEqual([
          ["tools/call", "ok", "ok", undefined],
          ["tools/call", "fails", "tool_error", undefined],
          ["tools/call", "refuses", "error", 7],
          ["tools/call", "dies", "defect", undefined],
          ["tools/call", "none", "error", -32602],
          ["tools/list", undefined, "ok", undefined],
          ["tools/list", undefined, "error", 429],
          ["no/such", undefined, "error", -32601]
        ])
        expect(all[0]).toMatchObject({ principal: "alice", client: "kit 1", revision })
        expect(JSON.stringify(all)).not.toContain("x y z")
      }))

    it.effect("records cancelled and slow requests with their duration", () =>
      Effect.gen(function*() {
        const { all, sink } = entries()
        const client = yield* kit.client(
          kit.server(AuditLog.layer({ sink, methods: ["tools/call"] }), ...tools),
          revision
        )
        const slow = client.send("tools/call", { name: "slow" })
        const cancelled = client.send("tools/call", { name: "slow" })
        yield* kit.settle
        yield* TestClock.adjust("1 second")
        client.notify("notifications/cancelled", { requestId: cancelled })
        yield* kit.settle
        yield* TestClock.adjust("1 second")
        yield* client.answer(slow)
        expect(all.map(({ durationMs, id, outcome }) => [id, outcome, durationMs])).toEqual([
          [cancelled, "cancelled", 1000],
          [slow, "ok", 2000]
        ])
      }))

    it.effect("records arguments only with the option, raw or as a function returns them", () =>
      Effect.gen(function*() {
        const whole = entries()
        const cut = entries()
        const client = yield* kit.client(
          kit.server(
            AuditLog.layer({ sink: whole.sink, arguments: true, methods: ["tools/call"] }),
            AuditLog.layer({ sink: cut.sink, arguments: () => "cut", methods: ["tools/call"] }),
            ...tools
          ),
          revision
        )
        yield* client.call("ok", { secret: "x y z" })
        expect(whole.all[0]!.arguments).toEqual({ secret: "x y z" })
        expect(cut.all[0]!.arguments).toBe("cut")
      }))

    it.effect("loses the entry and sends the response if the sink dies or a function throws", () =>
      kit.logged((lines) =>
        Effect.gen(function*() {
          const client = yield* kit.client(
            kit.server(
              AuditLog.layer({ sink: () => Effect.die(new Error("the disk is full")), methods: ["tools/call"] }),
              AuditLog.layer({
                methods: ["tools/call"],
                arguments: () => {
                  throw new Error("no arguments")
                }
              }),
              ...tools
            ),
            revision
          )
          expect((yield* client.call("ok", { secret: "x" })).content[0].text).toBe("x")
          const lost = lines.filter((line) => line.startsWith("audit log entry lost: the sink died"))
          expect(lost.map((line) => /the disk is full|no arguments/.exec(line)?.[0])).toEqual(
            ["no arguments", "the disk is full"]
          )
        })
      ))

    it.effect("writes a line of Effect's log with annotations by default, and never to the client", () =>
      Effect.gen(function*() {
        const lines: Array<readonly [string, object]> = []
        const logger = Logger.make<unknown, void>(({ fiber, message }) => {
          lines.push([String(message), fiber.getRef(References.CurrentLogAnnotations)])
        })
        const built = kit.server(AuditLog.layer(), ...tools).pipe(Layer.provide(Logger.layer([logger])))
        const server = yield* support.build(built)
        const client = yield* support.connect(server, revision, support.as("alice"))
        if (revision === "2025-11-25") yield* client.request("logging/setLevel", { level: "debug" })
        lines.length = 0
        const _meta = revision === "2025-11-25" ? {} : { "io.modelcontextprotocol/logLevel": "debug" }
        yield* client.request("tools/call", { name: "ok", arguments: { secret: "x y z" }, _meta })
        yield* client.request("tools/call", { name: "two\nlines", _meta })
        yield* kit.settle
        expect(lines.map(([line]) => line)).toEqual([
          "tools/call ok: ok",
          "tools/call \"two\\nlines\": error"
        ])
        expect(lines[0]![1]).toMatchObject({
          method: "tools/call",
          target: "ok",
          principal: "alice",
          outcome: "ok",
          revision
        })
        expect(lines[1]![1]).toMatchObject({ outcome: "error", code: -32602 })
        expect(JSON.stringify(lines)).not.toContain("x y z")
        expect(client.notices("notifications/message")).toEqual([])
      }))

    it.effect("provides a sink with the services that it needs", () =>
      Effect.gen(function*() {
        class Rows extends Context.Service<Rows, Array<string>>()("test/Rows") {}
        const rows: Array<string> = []
        const log = AuditLog.layer({
          methods: ["tools/call"],
          sink: ({ outcome }) => Effect.map(Rows, (all) => void all.push(outcome))
        }).pipe(Layer.provide(Layer.succeed(Rows, rows)))
        const client = yield* kit.client(kit.server(log, ...tools), revision)
        yield* client.call("ok", { secret: "x" })
        expect(rows).toEqual(["ok"])
      }))
  })
}

it.effect("2026-07-28 · records a handler that is interrupted for its input requests as input_required", () =>
  Effect.gen(function*() {
    const { all, sink } = entries()
    const asks = Tool.layer(
      Tool.make("asks"),
      () =>
        Effect.flatMap(McpRequest, (exchange) =>
          Effect.callback<string>(() => {
            queueMicrotask(() => {
              exchange.exchange.replaceWith(Effect.succeed({ resultType: "complete", content: [] }))
            })
          }))
    )
    const client = yield* kit.client(kit.server(AuditLog.layer({ sink }), asks), "2026-07-28")
    yield* client.call("asks")
    expect(all.map(({ outcome }) => outcome)).toEqual(["input_required"])
  }))

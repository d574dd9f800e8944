/** A remote server that is down at the start, goes away and returns. */
import { describe, expect, it } from "@effect/vitest"
import type * as Client from "@skein/client/Client"
import * as Proxy from "@skein/gateway/Proxy"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { build, connect, eras, Outage } from "./kit.ts"

const far = McpServer.layer(
  { name: "far", version: "1.0.0" },
  Tool.layer(Tool.make("a"), () => Effect.succeed("a"))
)
const reconnect = { initialDelay: 5, maxDelay: 10 }

const until = (condition: Effect.Effect<boolean>): Effect.Effect<void> =>
  Effect.gen(function*() {
    while (!(yield* condition)) yield* Effect.sleep(5)
  })
const names = (client: Client.Client) =>
  Effect.orDie(Effect.map(client.listTools(), (tools) => tools.map(({ name }) => name)))
const works = (client: Client.Client) => Effect.map(Effect.exit(client.callTool("a")), Exit.isSuccess)
const unavailable = { reason: { error: { reason: "InternalError", data: { reason: "RemoteUnavailable" } } } }

describe.each(eras)("a remote server of %s", (behind) => {
  it.live("may be down at the start: the lists are empty, calls fail, and lists change when it comes", () =>
    Effect.gen(function*() {
      const running = yield* build(far)
      const outage = new Outage(() => running)
      outage.isDown = true
      const stored: Array<Proxy.Lists> = []
      const proxy = Proxy.layer(outage.source(behind), {
        reconnect,
        onListing: (lists) => Effect.sync(() => void stored.push(lists))
      })
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, proxy))
      const client = yield* connect(near, "2025-11-25")
      expect(client.capabilities.tools).toEqual({ listChanged: true })
      expect(yield* names(client)).toEqual([])
      const changes: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(client.changes({ tools: true }), ({ _tag }) => Effect.sync(() => changes.push(_tag))),
        { startImmediately: true }
      )
      yield* outage.start
      yield* until(Effect.sync(() => changes.includes("ToolListChanged")))
      expect(yield* names(client)).toEqual(["a"])
      expect(yield* works(client)).toBe(true)
      expect(stored.at(-1)!.tools.map(({ name }) => name)).toEqual(["a"])
    }))

  it.live("may be down at the start: the initial lists are offered, and calls fail with RemoteUnavailable", () =>
    Effect.gen(function*() {
      const running = yield* build(far)
      const outage = new Outage(() => running)
      outage.isDown = true
      const initial: Proxy.Lists = {
        tools: [{ name: "a", inputSchema: { type: "object" } }],
        resources: [],
        resourceTemplates: [],
        prompts: []
      }
      const proxy = Proxy.layer(outage.source(behind), { reconnect, initial })
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, proxy))
      const client = yield* connect(near, "2025-11-25")
      expect(yield* names(client)).toEqual(["a"])
      expect(yield* Effect.flip(client.callTool("a"))).toMatchObject(unavailable)
      yield* outage.start
      yield* until(works(client))
    }))

  for (const whileDown of ["last", "nothing"] as const) {
    it.live(`may go away and return: meanwhile ${whileDown === "last" ? "the last lists are" : "nothing is"} listed`, () =>
      Effect.gen(function*() {
        const running = yield* build(far)
        const outage = new Outage(() => running)
        const proxy = Proxy.layer(outage.source(behind), { reconnect, whileDown })
        const near = yield* build(McpServer.layer({ name: "near", version: "1" }, proxy))
        const client = yield* connect(near, "2026-07-28")
        expect(yield* works(client)).toBe(true)
        yield* outage.stop
        const expected = whileDown === "last" ? ["a"] : []
        yield* until(Effect.map(names(client), (found) => found.join() === expected.join()))
        if (whileDown === "last") {
          yield* until(Effect.map(Effect.result(client.callTool("a")), ({ _tag }) => _tag === "Failure"))
          expect(yield* Effect.flip(client.callTool("a"))).toMatchObject(unavailable)
        }
        yield* outage.start
        yield* until(works(client))
        expect(yield* names(client)).toEqual(["a"])
      }))
  }
})

describe.each(eras)("a call after the loss of a remote server of %s", (behind) => {
  /** A proxy that tries to connect after 1, 2, 4… minutes, and its client. */
  const lost = Effect.gen(function*() {
    const running = yield* build(far)
    const outage = new Outage(() => running)
    const policy = { initialDelay: "1 minute", maxDelay: "1 hour", jitter: "none" } as const
    const proxy = Proxy.layer(outage.source(behind), { reconnect: policy })
    const near = yield* build(McpServer.layer({ name: "near", version: "1" }, proxy))
    const client = yield* connect(near, "2026-07-28")
    yield* outage.stop
    return { outage, client }
  })

  it.effect("waits for the first attempt to connect again", () =>
    Effect.gen(function*() {
      const { client, outage } = yield* lost
      yield* outage.start
      const call = yield* Effect.forkChild(client.callTool("a"), { startImmediately: true })
      yield* TestClock.adjust("59 seconds")
      expect(call.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(call)
    }))

  it.effect("fails at once after an attempt has failed, and when the connection is lost again soon", () =>
    Effect.gen(function*() {
      const { client, outage } = yield* lost
      const call = yield* Effect.forkChild(Effect.flip(client.callTool("a")), { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      expect(yield* Fiber.join(call)).toMatchObject(unavailable)
      yield* outage.start
      expect(yield* Effect.flip(client.callTool("a"))).toMatchObject(unavailable)
      yield* TestClock.adjust("2 minutes")
      yield* client.callTool("a")
      yield* outage.stop
      yield* outage.start
      expect(yield* Effect.flip(client.callTool("a"))).toMatchObject(unavailable)
      yield* TestClock.adjust("4 minutes")
      yield* client.callTool("a")
    }))
})

it.live("leaves no connection and no fiber after it was opened and closed many times", () =>
  Effect.gen(function*() {
    const running = yield* build(far)
    const outage = new Outage(() => running)
    for (let round = 0; round < 20; round++) {
      const scope = yield* Scope.make()
      const proxy = Proxy.layer(outage.source(eras[round % 2]!), { reconnect })
      const near = yield* Scope.provide(build(McpServer.layer({ name: "near", version: "1" }, proxy)), scope)
      const client = yield* Scope.provide(connect(near, "2025-11-25"), scope)
      expect(yield* works(client)).toBe(true)
      yield* Scope.close(scope, Exit.void)
    }
    const { requests } = yield* Effect.repeat(Effect.delay(running.server.inspect, 10), {
      until: ({ sessions }) => sessions.length === 0
    })
    expect(requests).toEqual([])
    expect(outage.size).toBe(0)
  }))

/** The bounds of the bridge between HTTP and stdio, with real requests and a server that the test writes for. */
import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, Receiver } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { drain } from "../src/internal/develop/nodeDev.ts"
import { type BridgeBounds, serveBridge } from "../src/internal/develop/nodeHttpBridge.ts"

/** Starts a bridge. Its servers answer every request with an empty result, and send their messages with `hosts`. */
const serve = (bounds: Partial<BridgeBounds>) => {
  const hosts: Array<{ readonly send: (message: JsonRpc.Notification) => void }> = []
  const ended = new Set<number>()
  const warnings: Array<string> = []
  return Effect.map(
    serveBridge({
      host: "127.0.0.1",
      port: 0,
      maxSessions: 32,
      maxBodyBytes: 4 * 1024 * 1024,
      ...bounds,
      connect: Effect.gen(function*() {
        let receiver: Receiver | undefined
        const position = hosts.push({ send: (message) => receiver!.message(message) }) - 1
        yield* Effect.addFinalizer(() => Effect.sync(() => ended.add(position)))
        return {
          open: (given) => void (receiver = given),
          send: (message) => {
            if (message._tag === "Request") receiver!.message(JsonRpc.success(message.id, {}))
            return true
          },
          drained: Effect.void,
          close: Effect.void
        } satisfies Connection
      }),
      warn: (line) => warnings.push(line)
    }),
    (url) => ({ url, hosts, ended, warnings })
  )
}

const post = (url: string, body: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.promise(async () => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      body
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

const initialize = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: {} })

/** Opens a session. Returns the headers of its requests. */
const open = (url: string) =>
  Effect.map(post(url, initialize), ({ headers }) => ({ "mcp-session-id": headers.get("mcp-session-id")! }))

const ping = (url: string, headers: Readonly<Record<string, string>>) =>
  Effect.map(post(url, JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" }), headers), ({ status }) => status)

describe("the bridge of skein dev", () => {
  it.live("responds 413 to a body beyond maxBodyBytes, and accepts one of that size", () =>
    Effect.gen(function*() {
      const { url } = yield* serve({ maxBodyBytes: initialize.length })
      assert.strictEqual((yield* post(url, initialize)).status, 200)
      const refused = yield* post(url, `${initialize} `)
      assert.strictEqual(refused.status, 413)
      assert.include(refused.text, "Content Too Large")
      // Far more than the buffers of both sockets take.
      assert.strictEqual((yield* post(url, "x".repeat(16 * 1024 * 1024))).status, 413)
    }))

  it.live("keeps 100 messages without a stream, drops the oldest, and warns once", () =>
    Effect.gen(function*() {
      const { hosts, url, warnings } = yield* serve({})
      const headers = yield* open(url)
      const send = (position: number) => hosts[0]!.send(JsonRpc.notification("notifications/message", { position }))
      for (let position = 1; position <= 100; position++) send(position)
      assert.deepStrictEqual(warnings, [])
      for (const position of [101, 102]) send(position)
      assert.deepStrictEqual(warnings, [
        "HTTP: more than 100 messages of a session have no stream: the oldest are dropped"
      ])
      const received = yield* Effect.promise(async () => {
        const stream = await fetch(url, { headers: { accept: "text/event-stream", ...headers } })
        const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader()
        let text = ""
        while (!text.includes("\"position\":102")) text += (await reader.read()).value ?? ""
        await reader.cancel()
        return Array.from(text.matchAll(/"position":(\d+)/g), ([, position]) => Number(position))
      })
      assert.deepStrictEqual([received.length, received[0], received.at(-1)], [100, 3, 102])
    }))

  it.live("ends the session that was used least recently beyond maxSessions", () =>
    Effect.gen(function*() {
      const { ended, url } = yield* serve({ maxSessions: 2 })
      const [first, second] = [yield* open(url), yield* open(url)]
      assert.strictEqual(yield* ping(url, first), 200)
      const third = yield* open(url)
      assert.deepStrictEqual(
        [yield* ping(url, first), yield* ping(url, second), yield* ping(url, third)],
        [200, 404, 200]
      )
      assert.deepStrictEqual([...ended], [1])
    }))
})

describe("drain", () => {
  it.effect("ends after the timeout while a request is in progress, and at once without one", () =>
    Effect.gen(function*() {
      const relay = { isBusy: true }
      const waiting = yield* Effect.forkChild(drain(relay, 5_000))
      yield* TestClock.adjust(4_990)
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust(10)
      yield* Fiber.join(waiting)
      const answered = yield* Effect.forkChild(drain(relay, 5_000))
      yield* TestClock.adjust(1_000)
      relay.isBusy = false
      yield* TestClock.adjust(20)
      yield* Fiber.join(answered)
      yield* drain(relay, 5_000)
    }))
})

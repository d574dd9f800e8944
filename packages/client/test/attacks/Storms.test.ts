/** A server that sends valid notifications and requests without end. Memory, requests and handlers are bounded. */
import { assert, describe, it } from "@effect/vitest"
import type { Revision } from "@skein/protocol/Revision"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import * as Progress from "../../src/Progress.ts"
import { connect } from "../input/kit.ts"
import { type Exchange, type Json, settle, until } from "../http/support/connection.ts"

const mib = 1024 * 1024

const event = (message: object): string => `data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`
const note = (method: string, params: object = {}): string => event({ method: `notifications/${method}`, params })

/** Writes a text `times` times, as fast as the client reads it, and then calls back. */
const pour = (hit: Exchange, text: (n: number) => string, times: number, then: () => void = () => {}): void => {
  let n = 0
  const go = (): void => {
    while (n < times && !hit.response.destroyed) {
      if (!hit.response.write(text(n++))) return void hit.response.once("drain", go)
    }
    if (!hit.response.destroyed) then()
  }
  go()
}

/** The memory that an effect leaves behind. */
const kept = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    globalThis.gc!()
    const before = process.memoryUsage().heapUsed
    yield* effect
    globalThis.gc!()
    return process.memoryUsage().heapUsed - before
  })

const capabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  tasks: {}
}

/** A server that pours messages on its own stream once `start` is called, and answers calls. */
const storm = (revision: Revision, call: (hit: Exchange) => void = (hit) => hit.respondResult({ content: [] })) =>
  Effect.gen(function*() {
    let stream: Exchange | undefined
    const answer = ScriptedHttpServer.session<Json>(
      (hit) => hit.json.id === undefined || hit.json.method === undefined ? hit.respond(202) : call(hit),
      { revision, standaloneStream: (hit) => void (stream = hit.openStream(":\n\n")) }
    )
    const server = yield* ScriptedHttpServer.make<Json>((hit) => {
      if (hit.json?.method !== "initialize") return answer(hit)
      const serverInfo = { name: "storm", version: "1" }
      hit.respondResult({ protocolVersion: revision, capabilities, serverInfo }, { "mcp-session-id": "s" })
    })
    const start = (text: (n: number) => string, times: number) =>
      Effect.gen(function*() {
        yield* until(() => stream !== undefined)
        let isOver = false
        // The last messages are read when the ping after them is answered.
        pour(stream!, text, times, () => {
          stream!.write(event({ id: "last", method: "ping" }))
          isOver = true
        })
        yield* until(() => isOver && server.exchanges.some(({ json }) => json?.id === "last"))
      })
    const posts = () => server.byMethod("POST").length
    return { server, start, posts, transport: NodeHttp.transport({ url: server.url, shutdownTimeout: 0 }) }
  })

const revision = "2025-11-25"
const options: Client.Options = { revisions: [revision] }

describe(`${revision} · a storm of`, () => {
  const notes: ReadonlyArray<readonly [string, (n: number) => string]> = [
    ["tools/list_changed", () => note("tools/list_changed")],
    ["log messages", (n) => note("message", { level: "error", logger: `l${n}`, data: { n, text: "x".repeat(100) } })],
    ["resources/updated of a subscribed resource", () => note("resources/updated", { uri: "test://a" })],
    ["resources/updated of other resources", (n) => note("resources/updated", { uri: `test://${n}` })],
    ["tasks/status of unknown tasks", (n) =>
      note("tasks/status", {
        taskId: `t${n}`,
        status: "working",
        createdAt: "2026-01-01T00:00:00Z",
        lastUpdatedAt: "2026-01-01T00:00:00Z",
        ttl: null
      })],
    ["progress of unknown calls", (n) => note("progress", { progressToken: `p${n}`, progress: n })],
    ["cancellations of unknown requests", (n) => note("cancelled", { requestId: `r${n}` })],
    ["elicitation/complete of unknown questions", (n) => note("elicitation/complete", { elicitationId: `e${n}` })],
    ["errors without an id", () => event({ id: null, error: { code: -32_600, message: "no" } })]
  ]
  for (const [what, text] of notes) {
    it.live(`${what}: leaves slow readers with bounded buffers, sends no requests, and calls go on`, () =>
      Effect.gen(function*() {
        const { posts, start, transport } = yield* storm(revision)
        const client = yield* Client.make(transport, options)
        let read = 0
        // Readers that never take a second element.
        const slow = () => Effect.andThen(Effect.sync(() => void read++), Effect.never)
        for (
          const stream of [
            client.changes({ tools: true, prompts: true, resources: true, uris: ["test://a"] }),
            client.logs,
            client.notifications
          ]
        ) {
          yield* Effect.forkScoped(Stream.runForEach(stream as Stream.Stream<unknown>, slow), {
            startImmediately: true
          })
        }
        yield* settle
        yield* until(() => posts() >= 3)
        const before = posts()
        const memory = yield* kept(start(text, 50_000))
        assert.isBelow(memory, 16 * mib)
        // The answer to the ping.
        assert.isAtMost(posts() - before, 2)
        assert.isAtMost(read, 3)
        assert.deepStrictEqual((yield* client.callTool("t")).content, [])
      }).pipe(Effect.scoped))
  }

  it.live("progress of a call with a slow reader: keeps 64 of them, and delivers the result", () =>
    Effect.gen(function*() {
      const { transport } = yield* storm(revision, (hit) => {
        const { id, params } = hit.json
        const { progressToken } = params._meta
        pour(
          hit.openStream(),
          (n) => note("progress", { progressToken, progress: n, message: "x".repeat(100) }),
          50_000,
          () => hit.end(event({ id, result: { content: [] } }))
        )
      })
      const client = yield* Client.make(transport, options)
      let updates = 0
      let isAnswered = false
      const answered = Effect.sync(() => {
        isAnswered = true
      })
      const memory = yield* kept(
        Stream.runForEach(
          Progress.stream((onProgress) => Effect.tap(client.callTool("t", {}, { onProgress }), answered)),
          () => Effect.andThen(Effect.sync(() => void updates++), until(() => isAnswered))
        )
      )
      assert.isBelow(memory, 16 * mib)
      // The first update, the 64 in the buffer, as many that the stream had taken from it, and the result.
      assert.isAtMost(updates, 130)
    }).pipe(Effect.scoped))

  it.live("input requests that no user answers: runs maxInFlightRequests handlers and refuses those above maxQueuedRequests", () =>
    Effect.gen(function*() {
      const { server, start, transport } = yield* storm(revision)
      let asked = 0
      const host = Elicitation.layer({
        form: () => Effect.andThen(Effect.sync(() => void asked++), Effect.never)
      })
      const client = yield* connect(transport, host, {
        ...options,
        limits: { maxInFlightRequests: 20, maxQueuedRequests: 10 }
      })
      const params = { mode: "form", message: "m".repeat(1_000), requestedSchema: { type: "object", properties: {} } }
      const memory = yield* kept(start((n) => event({ id: n, method: "elicitation/create", params }), 900))
      assert.strictEqual(asked, 20)
      yield* until(() => server.exchanges.filter(({ json }) => json?.error?.code === -32_603).length === 900 - 30)
      assert.isBelow(memory, 64 * mib)
      assert.deepStrictEqual((yield* client.callTool("t")).content, [])
    }).pipe(Effect.scoped))

  it.live("streams that end at once: requests each one again at most ten times in a second (minRetry)", () =>
    Effect.gen(function*() {
      let streams = 0
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => {
        if (hit.method !== "GET") return hit.respondResult({ content: [] })
        streams++
        hit.openStream().end(`retry: 0\nid: ${streams}\ndata: {}\n\n`)
      }, {
        standaloneStream: (hit) => {
          streams++
          hit.openStream().end(`retry: 0\nid: ${streams}\ndata: {}\n\n`)
        }
      }))
      const client = yield* Client.make(NodeHttp.transport({ url: server.url, shutdownTimeout: 0 }), {
        ...options,
        enforceCapabilities: false
      })
      const begun = performance.now()
      yield* Effect.sleep("2 seconds")
      assert.deepStrictEqual((yield* client.callTool("t")).content, [])
      assert.isAtMost(streams, 2 + (performance.now() - begun) / 100)
    }).pipe(Effect.scoped))

  it.live("streams without a response: each call ends at its timeout, and its stream with it", () =>
    Effect.gen(function*() {
      let closed = 0
      const { transport } = yield* storm(revision, (hit) => {
        hit.openStream(": \n\n")
        hit.response.once("close", () => closed++)
      })
      const client = yield* Client.make(transport, options)
      const calls = yield* Effect.forEach(
        Array.from({ length: 300 }),
        () =>
          Effect.forkScoped(Effect.flip(client.callTool("t", {}, { timeout: "1 second" })), { startImmediately: true })
      )
      for (const { reason } of yield* Effect.forEach(calls, Fiber.join)) assert.strictEqual(reason._tag, "Timeout")
      yield* until(() => closed > 0)
    }).pipe(Effect.scoped))
})

describe("2026-07-28 · a storm of", () => {
  it.live("changes and acknowledgments of a subscription: keeps maxBufferedNotifications, and reports a Gap", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        const { id, method } = hit.json
        if (method === "server/discover") {
          const supportedVersions = ["2026-07-28"]
          return hit.respondResult({
            resultType: "complete",
            supportedVersions,
            capabilities,
            ttlMs: 0,
            cacheScope: "private"
          })
        }
        const _meta = { "io.modelcontextprotocol/subscriptionId": id }
        const acknowledged = note("subscriptions/acknowledged", { _meta, notifications: { toolsListChanged: true } })
        hit.openStream(acknowledged)
        pour(hit, (n) => n % 2 === 0 ? note("tools/list_changed", { _meta }) : acknowledged, 50_000, () => over = true)
      })
      let over = false
      const transport = NodeHttp.transport({ url: server.url, shutdownTimeout: 0 })
      const client = yield* Client.make(transport, { limits: { maxBufferedNotifications: 8 } })
      const seen: Array<string> = []
      const memory = yield* kept(Effect.gen(function*() {
        yield* Effect.forkScoped(
          Stream.runForEach(
            Stream.take(client.changes({ tools: true }), 4),
            ({ _tag }) => Effect.andThen(Effect.sync(() => void seen.push(_tag)), until(() => over))
          ),
          { startImmediately: true }
        )
        yield* until(() => seen.length === 4)
      }))
      assert.isBelow(memory, 16 * mib)
      assert.include(seen, "Gap")
      assert.isAtMost(server.exchanges.length, 3)
    }).pipe(Effect.scoped))
})

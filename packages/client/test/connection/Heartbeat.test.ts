/** Heartbeats: periodic requests that detect an unresponsive server. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import { ConnectionLost, MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { endMessage, quiet, until } from "./support.ts"

const heartbeat: Client.Heartbeat = { interval: "10 seconds", timeout: "2 seconds" }

const open = (revision: Revision.Revision, options: Client.Options = {}) =>
  Effect.gen(function*() {
    const line = ScriptedServer.make(ScriptedServer.handshake(revision, () => ScriptedServer.success({ tools: [] })))
    const client = yield* Client.make(line.transport, { revisions: [revision], heartbeat, ...options })
    yield* client.ping()
    const method = Revision.era(revision) === "stateless" ? "server/discover" : "ping"
    const before = line.requests(method).length
    return { client, line, method, beats: () => line.requests(method).length - before }
  })

const refused = (status: number): ScriptedServer.Delivery =>
  new TransportError({ reason: new MessageRejected({ message: `HTTP ${status}`, status }) })

describe("a heartbeat", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · SHOULD periodically issue pings to detect connection health; at the configured interval`, () =>
      Effect.gen(function*() {
        const { beats, line } = yield* open(revision)
        yield* TestClock.adjust(9_999)
        yield* quiet
        assert.strictEqual(beats(), 0)
        for (let beat = 1; beat <= 3; beat++) {
          yield* TestClock.adjust(beat === 1 ? 1 : 10_000)
          yield* until(() => beats() === beat)
          yield* quiet
        }
        assert.strictEqual(line.attempts, 1)
      }))

    it.effect(`${revision} · closes and reopens the connection if the server does not respond in time`, () =>
      Effect.gen(function*() {
        const { beats, client, line, method } = yield* open(revision, { reconnect: { jitter: "none" } })
        const { onRequest } = line
        line.onRequest = (request) => request.method === method && line.attempts === 1 ? "drop" : onRequest(request)
        yield* TestClock.adjust("11 seconds")
        yield* TestClock.adjust(999)
        assert.strictEqual(line.openConnections, 1)
        yield* TestClock.adjust(1)
        yield* until(() => line.openConnections === 0)
        yield* TestClock.adjust(500)
        yield* until(() => line.openConnections === 1)
        yield* client.ping()
        const answered = beats()
        // The new connection has its own heartbeat, and the old one has stopped.
        yield* TestClock.adjust("10 seconds")
        yield* until(() => beats() === answered + 1)
        yield* quiet
        assert.strictEqual(beats(), answered + 1)
        assert.strictEqual(line.attempts, 2)
      }))
  }

  it.effect("is off by default", () =>
    Effect.gen(function*() {
      const { beats, line } = yield* open("2025-11-25", { heartbeat: undefined })
      line.onRequest = () => "drop"
      yield* TestClock.adjust("1 day")
      yield* quiet
      assert.deepStrictEqual([beats(), line.openConnections], [0, 1])
    }))

  it.effect("ends the client with a message if there is no reconnect policy", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open("2025-11-25")
      line.onRequest = () => "drop"
      const called = yield* Effect.forkChild(Effect.flip(client.listToolsPage()), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      yield* TestClock.adjust("2 seconds")
      const message = "The server does not respond to ping: No response to ping within 2000 ms (timeout)"
      assert.strictEqual(endMessage(yield* client.ended), message)
      const error = yield* Fiber.join(called)
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual(line.openConnections, 0)
    }))

  it.effect("accepts any response: a JSON-RPC error, or an HTTP error that is not the server's fault", () =>
    Effect.gen(function*() {
      for (const fate of [refused(400), refused(401), refused(429), undefined]) {
        const { beats, line } = yield* open("2025-11-25")
        let asked = 0
        line.onRequest = () => (asked++, fate)
        for (let beat = 1; beat <= 3; beat++) {
          yield* TestClock.adjust("10 seconds")
          yield* until(() => asked === beat)
          yield* quiet
        }
        assert.strictEqual(line.openConnections, 1)
        assert.strictEqual(beats(), fate === undefined ? 3 : 0)
      }
      const rude = ScriptedServer.make((request, server) =>
        request.method === "ping"
          ? { error: { code: -32601, message: "what?" } }
          : ScriptedServer.handshake("2025-11-25")(request, server)
      )
      yield* Client.make(rude.transport, { revisions: ["2025-11-25"], heartbeat })
      yield* TestClock.adjust("10 seconds")
      yield* until(() => rude.requests("ping").length === 1)
      yield* quiet
      assert.strictEqual(rude.openConnections, 1)
    }))

  it.effect("treats a gateway error, or an undelivered request, as loss of the server", () =>
    Effect.gen(function*() {
      const nobody = new TransportError({ reason: new ConnectionLost({ message: "ECONNREFUSED" }), undelivered: true })
      for (const fate of [refused(500), refused(502), refused(503), nobody]) {
        const { client, line } = yield* open("2025-11-25")
        line.onRequest = () => fate
        yield* TestClock.adjust("10 seconds")
        assert.match(
          endMessage(yield* client.ended),
          /^The server does not respond to ping: .*(HTTP 50|ECONNREFUSED)/
        )
      }
    }))
})

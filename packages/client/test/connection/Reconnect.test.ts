/** Reconnection after a lost connection, and the conditions for giving up. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import { MessageRejected, OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import * as Reconnect from "../../src/Reconnect.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { endMessage, quiet, until, watch } from "./support.ts"
import { fieldsOf } from "../support/fields.ts"
import { peerOf } from "../support/peer.ts"

const tools = () => ScriptedServer.success({ tools: [], resultType: "complete", ttlMs: 0, cacheScope: "private" })

/** Delays without jitter. */
const exact: Reconnect.Policy = { jitter: "none" }

const open = (options: Client.Options = {}, revision: Revision.Revision = "2025-11-25") =>
  Effect.gen(function*() {
    const line = ScriptedServer.make(ScriptedServer.handshake(revision, tools))
    const client = yield* Client.make(line.transport, { revisions: [revision], ...options })
    return { line, client }
  })

describe("the policy", () => {
  const policy = Reconnect.resolve({ jitter: "none" })

  it("waits 500 ms, then twice as long each time, up to 30 seconds; 8 attempts, stable after 30 seconds", () => {
    const delays = [1, 2, 3, 4, 5, 6, 7, 8, 1_000].map((attempt) => Reconnect.delay(policy, attempt, 0))
    assert.deepStrictEqual(delays, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
    assert.strictEqual(policy.maxAttempts, 8)
    assert.strictEqual(Reconnect.stableAfter, 30_000)
    assert.strictEqual(Reconnect.resolve().jitter, "half")
  })

  it("randomizes none, half, or all of a delay", () => {
    const of = (jitter: "none" | "half" | "full", random: number) =>
      Reconnect.delay(Reconnect.resolve({ jitter, initialDelay: 1_000 }), 1, random)
    assert.deepStrictEqual([of("none", 0.5), of("none", 0)], [1_000, 1_000])
    assert.deepStrictEqual([of("half", 0), of("half", 0.5), of("half", 1)], [500, 750, 1_000])
    assert.deepStrictEqual([of("full", 0), of("full", 0.5), of("full", 1)], [0, 500, 1_000])
  })

  it("waits for the server's retryAfter if it is longer, up to 10 minutes", () => {
    assert.strictEqual(Reconnect.delay(policy, 1, 0, 60_000), 60_000)
    assert.strictEqual(Reconnect.delay(policy, 3, 0, 1_000), 2_000)
    assert.strictEqual(Reconnect.delay(policy, 1, 0, 1e12), 600_000)
  })

  it("finds retryAfter in the cause of a failure, and handles circular causes", () => {
    const cause = new TransportError({ reason: new MessageRejected({ message: "Busy" }), retryAfter: 7 })
    assert.strictEqual(Reconnect.retryAfter({ _tag: "Lost", cause: ScriptedServer.lost("gone", 5) }), 5)
    assert.strictEqual(Reconnect.retryAfter({ cause: { cause } }), 7)
    const circle: { cause?: unknown } = {}
    circle.cause = circle
    assert.strictEqual(Reconnect.retryAfter(circle), undefined)
    assert.strictEqual(Reconnect.retryAfter(undefined), undefined)
  })
})

describe("a lost connection", () => {
  it.effect("ends the client without a policy, as on stdio by default", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open()
      line.lose()
      assert.strictEqual(endMessage(yield* client.ended), "The scripted connection was lost")
      const error = yield* Effect.flip(client.listToolsPage())
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual(error.method, "tools/list")
      assert.strictEqual(error.undelivered, true)
      assert.strictEqual(fieldsOf(error).end?._tag, "Lost")
      assert.strictEqual(line.attempts, 1)
    }))

  it.effect("is reopened by default if the transport reconnects, unless the option is false", () =>
    Effect.gen(function*() {
      for (const [reconnect, attempts] of [[undefined, 2], [true, 2], [false, 1]] as const) {
        const line = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", tools), { reconnects: true })
        yield* Client.make(line.transport, { revisions: ["2025-11-25"], reconnect })
        line.lose()
        yield* quiet
        yield* TestClock.adjust("1 second")
        yield* quiet
        assert.strictEqual(line.attempts, attempts, String(reconnect))
      }
    }))

  for (const revision of Revision.all) {
    it.effect(`${revision} · is reopened with a new handshake, and used by the queued calls`, () =>
      Effect.gen(function*() {
        const { client, line } = yield* open({ reconnect: exact }, revision)
        yield* client.ping()
        const handshake = line.methods.slice(0, -1)
        line.lose()
        yield* until(() => line.openConnections === 0)
        const listed = yield* Effect.forkChild(client.listToolsPage(), { startImmediately: true })
        const pinged = yield* Effect.forkChild(client.ping(), { startImmediately: true })
        yield* TestClock.adjust(499)
        yield* quiet
        assert.strictEqual(line.attempts, 1)
        yield* TestClock.adjust(1)
        assert.deepStrictEqual((yield* Fiber.join(listed)).tools, [])
        yield* Fiber.join(pinged)
        assert.strictEqual(line.attempts, 2)
        const ping = Revision.era(revision) === "stateless" ? "server/discover" : "ping"
        assert.deepStrictEqual(line.methods, [...handshake, ping, ...handshake, "tools/list", ping])
      }))
  }

  it.effect("is reopened after the previous connection is closed completely", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open({ reconnect: exact })
      for (let i = 0; i < 5; i++) {
        line.lose()
        yield* until(() => line.openConnections === 0)
        yield* TestClock.adjust("30 seconds")
        yield* until(() => line.openConnections === 1)
        yield* client.ping()
        yield* TestClock.adjust("31 seconds")
      }
      assert.strictEqual(line.attempts, 6)
      assert.strictEqual(line.maxOpenConnections, 1)
    }))

  it.effect("may be reopened to a different server, whose properties the client then returns", () =>
    Effect.gen(function*() {
      let revision: Revision.Revision = "2025-11-25"
      const line = ScriptedServer.make((request, server) =>
        ScriptedServer.handshake(revision, tools, revision === "2025-11-25" ? { tools: {} } : {})(request, server)
      )
      const client = yield* Client.make(line.transport, { reconnect: exact })
      assert.deepStrictEqual([client.revision, client.capabilities], ["2025-11-25", { tools: {} }])
      yield* client.listToolsPage()
      revision = "2026-07-28"
      line.lose()
      yield* until(() => line.openConnections === 0)
      // The old values stay until the new handshake completes.
      assert.strictEqual(client.revision, "2025-11-25")
      // The old server's capabilities allow the call, and the new ones reject it.
      const waiting = yield* Effect.forkChild(Effect.flip(client.listToolsPage()), { startImmediately: true })
      yield* TestClock.adjust(500)
      assert.strictEqual((yield* Fiber.join(waiting)).reason._tag, "Unsupported")
      assert.deepStrictEqual([client.revision, client.era, client.capabilities], ["2026-07-28", "stateless", {}])
      assert.strictEqual(line.requests("tools/list").length, 1)
    }))

  it.effect("is given up after maxAttempts in a row, with an error that has their number and the last cause", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open({ reconnect: exact })
      const seen = yield* watch(client)
      line.onConnect = (attempt) => new TransportError({ reason: new OpenFailed({ message: `no ${attempt}` }) })
      line.lose()
      yield* until(() => line.openConnections === 0)
      const waiting = yield* Effect.forkChild(Effect.flip(client.listToolsPage({ timeout: "1 hour" })), {
        startImmediately: true
      })
      yield* TestClock.adjust("10 minutes")
      const error = yield* Fiber.join(waiting)
      assert.strictEqual(error.reason._tag, "Closed")
      assert.strictEqual(error.undelivered, true)
      assert.match(error.message, /^tools\/list was not sent: Gave up after 8 attempts to reconnect: no 9$/)
      assert.instanceOf(error.cause, Reconnect.ReconnectExhausted)
      assert.strictEqual((error.cause as Reconnect.ReconnectExhausted).attempts, 8)
      assert.strictEqual(
        ((error.cause as Reconnect.ReconnectExhausted).cause as ClientError).reason._tag,
        "ConnectionFailed"
      )
      assert.strictEqual(line.attempts, 9)
      const end = yield* client.ended
      assert.strictEqual(endMessage(end), "Gave up after 8 attempts to reconnect: no 9")
      yield* seen.done
      const delays = seen.seen.flatMap((status) =>
        status._tag === "Reconnecting" ? [[status.attempt, status.delay]] : []
      )
      assert.deepStrictEqual(delays, [
        [1, 500],
        [2, 1_000],
        [3, 2_000],
        [4, 4_000],
        [5, 8_000],
        [6, 16_000],
        [7, 30_000],
        [8, 30_000]
      ])
      // Later calls fail at once.
      assert.strictEqual((yield* Effect.flip(client.ping())).cause, error.cause)
    }))

  it.effect("is given up after maxAttempts connections that the server ends cleanly", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open({ reconnect: { ...exact, maxAttempts: 5 } })
      for (let i = 0; i < 6; i++) {
        yield* client.ping()
        line.disconnect()
        yield* until(() => line.openConnections === 0)
        yield* TestClock.adjust("29 seconds")
      }
      const end = yield* client.ended
      assert.match(endMessage(end), /^Gave up after 5 attempts to reconnect: the server ended the connection$/)
      assert.strictEqual(line.attempts, 6)
      assert.strictEqual(line.openConnections, 0)
    }))

  it.effect("resets the count of attempts after a connection that lived for stableAfter, and not before", () =>
    Effect.gen(function*() {
      for (const [lived, expected] of [[30_000, [1, 1, 1]], [29_999, [1, 2, 3]]] as const) {
        const { client, line } = yield* open({ reconnect: { ...exact, maxDelay: 500 } })
        const seen = yield* watch(client)
        // The first connection lived long enough.
        yield* TestClock.adjust("1 minute")
        for (let i = 0; i < 3; i++) {
          line.lose()
          yield* until(() => line.openConnections === 0)
          yield* TestClock.adjust(500)
          yield* until(() => line.openConnections === 1)
          yield* client.ping()
          yield* TestClock.adjust(lived)
        }
        const attempts = seen.seen.flatMap((status) => status._tag === "Reconnecting" ? [status.attempt] : [])
        assert.deepStrictEqual(attempts, [...expected])
      }
    }))

  it.effect("is reopened after the server's retryAfter", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open({ reconnect: exact })
      const seen = yield* watch(client)
      line.onConnect = (attempt) =>
        attempt === 2
          ? new TransportError({ reason: new OpenFailed({ message: "Busy" }), retryAfter: 90_000 })
          : undefined
      line.lose(ScriptedServer.lost("going down", 45_000))
      yield* until(() => line.openConnections === 0)
      yield* TestClock.adjust(44_999)
      assert.strictEqual(line.attempts, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(line.attempts, 2)
      yield* TestClock.adjust(89_999)
      assert.strictEqual(line.attempts, 2)
      yield* TestClock.adjust(1)
      yield* until(() => line.openConnections === 1)
      yield* until(() => seen.seen.length === 4)
      assert.deepStrictEqual(seen.tags(), ["Connected", "Reconnecting", "Reconnecting", "Connected"])
    }))

  it.effect("is given up at once when the server responds with 401", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open({ reconnect: exact })
      line.onRequest = () =>
        new TransportError({ reason: new MessageRejected({ message: "Who are you?", status: 401 }) })
      line.lose()
      yield* until(() => line.openConnections === 0)
      yield* TestClock.adjust("1 hour")
      assert.match(endMessage(yield* client.ended), /^Gave up after 1 attempt to reconnect: .*Who are you\?$/)
      assert.strictEqual(line.attempts, 2)
    }))

  it.effect("is not reopened when the client closed it", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open({ reconnect: true })
      peerOf(client).close({ _tag: "ClosedByUs" })
      assert.strictEqual((yield* client.ended)._tag, "ClosedByUs")
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(line.attempts, 1)
    }))

  it.effect("is opened once, without retries, for the first connection of a client", () =>
    Effect.gen(function*() {
      const line = ScriptedServer.make(ScriptedServer.handshake("2025-11-25"))
      line.onConnect = () => new TransportError({ reason: new OpenFailed({ message: "nobody there" }) })
      const error = yield* Effect.flip(Effect.scoped(Client.make(line.transport, { reconnect: true })))
      assert.strictEqual(error.reason._tag, "ConnectionFailed")
      assert.strictEqual(line.attempts, 1)
    }))
})

describe("a client that closes", () => {
  const scoped = Effect.gen(function*() {
    const scope = yield* Scope.make()
    const { client, line } = yield* Scope.provide(open({ reconnect: exact }), scope)
    return { client, line, close: Scope.close(scope, Exit.void) }
  })

  it.effect("opens no connection during a backoff, and fails queued calls with Closed", () =>
    Effect.gen(function*() {
      const { client, close, line } = yield* scoped
      const seen = yield* watch(client)
      line.lose()
      yield* until(() => line.openConnections === 0)
      const waiting = yield* Effect.forkChild(Effect.flip(client.listToolsPage()), { startImmediately: true })
      yield* close
      const error = yield* Fiber.join(waiting)
      assert.strictEqual(error.reason._tag, "Closed")
      assert.deepStrictEqual(fieldsOf(error).end, { _tag: "ClosedByUs" })
      assert.deepStrictEqual(yield* client.ended, { _tag: "ClosedByUs" })
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(line.attempts, 1)
      yield* seen.done
      assert.deepStrictEqual(seen.tags(), ["Connected", "Reconnecting", "Ended"])
    }))

  it.effect("closes the new connection during its handshake", () =>
    Effect.gen(function*() {
      const { client, close, line } = yield* scoped
      line.onRequest = () => "drop"
      line.lose()
      yield* until(() => line.openConnections === 0)
      yield* TestClock.adjust(500)
      yield* until(() => line.openConnections === 1)
      yield* close
      assert.strictEqual(line.openConnections, 0)
      assert.deepStrictEqual(yield* client.ended, { _tag: "ClosedByUs" })
    }))

  it.effect("fails pending calls with Closed and does not retry them", () =>
    Effect.gen(function*() {
      const { client, close, line } = yield* scoped
      line.onRequest = () => "drop"
      const waiting = yield* Effect.forkChild(Effect.flip(client.listToolsPage()), { startImmediately: true })
      yield* close
      const error = yield* Fiber.join(waiting)
      assert.strictEqual(error.reason._tag, "Closed")
      assert.deepStrictEqual(fieldsOf(error).end, { _tag: "ClosedByUs" })
      assert.strictEqual(error.undelivered, undefined)
      assert.strictEqual(line.attempts, 1)
    }))
})

describe("the status", () => {
  it.effect("starts with the current status and ends with the client", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open({ reconnect: { ...exact, maxAttempts: 1 } })
      const early = yield* watch(client)
      line.lose()
      yield* until(() => line.openConnections === 0)
      const between = yield* watch(client)
      yield* TestClock.adjust(500)
      yield* until(() => line.openConnections === 1)
      yield* client.ping()
      line.lose()
      const end = yield* client.ended
      const late = yield* watch(client)
      for (const { done } of [early, between, late]) yield* done
      const connected = {
        _tag: "Connected",
        revision: "2025-11-25",
        info: { name: "scripted", version: "1.0.0" }
      } as const
      const lost = { _tag: "Lost", cause: ScriptedServer.lost() } as const
      const reconnecting = { _tag: "Reconnecting", attempt: 1, delay: 500, cause: lost } as const
      assert.deepStrictEqual(early.seen, [connected, reconnecting, connected, { _tag: "Ended", end }])
      assert.deepStrictEqual(between.seen, [reconnecting, connected, { _tag: "Ended", end }])
      assert.deepStrictEqual(late.seen, [{ _tag: "Ended", end }])
    }))

  it.effect("keeps the last 16 statuses for a slow consumer", () =>
    Effect.gen(function*() {
      const { client, line } = yield* open({ reconnect: { ...exact, maxAttempts: 40, maxDelay: 500 } })
      let held = true
      const seen: Array<string> = []
      const gate = until(() => !held, "the gate stayed shut")
      const fiber = yield* Effect.forkChild(
        Stream.runForEach(client.status, (status) => {
          seen.push(status._tag)
          return seen.length === 1 ? gate : Effect.void
        }),
        { startImmediately: true }
      )
      yield* until(() => seen.length === 1)
      line.onConnect = () => new TransportError({ reason: new OpenFailed({ message: "no" }) })
      line.lose()
      yield* until(() => line.openConnections === 0)
      yield* TestClock.adjust("1 hour")
      yield* client.ended
      held = false
      yield* Fiber.join(fiber)
      // The first status, and the last 16 of the 40 attempts and the end.
      assert.isAtMost(seen.length, 1 + 16 + 1)
      assert.strictEqual(seen.at(-1), "Ended")
    }))
})

describe("maxAttempts: Infinity", () => {
  it.effect("never gives up", () =>
    Effect.gen(function*() {
      const { line } = yield* open({ reconnect: { ...exact, maxAttempts: Infinity, maxDelay: 500 } })
      line.onConnect = () => new TransportError({ reason: new OpenFailed({ message: "no" }) })
      line.lose()
      yield* until(() => line.openConnections === 0)
      yield* TestClock.adjust("100 seconds")
      assert.strictEqual(line.attempts, 201)
    }))
})

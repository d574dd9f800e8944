import { assert, describe, it } from "@effect/vitest"
import type { Transport } from "@skein/runtime/Connection"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as ClientPool from "../../src/ClientPool.ts"
import * as Roots from "../../src/Roots.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const inputSchema = { type: "object" }

const offers = (...tools: ReadonlyArray<string>): ScriptedServer.Script =>
  ScriptedServer.handshake("2025-11-25", ({ method }) => {
    if (method === "tools/list") return ScriptedServer.success({ tools: tools.map((name) => ({ name, inputSchema })) })
    return ScriptedServer.methodNotFound(method)
  }, { tools: {} })

const healthy = (...tools: ReadonlyArray<string>) => ScriptedServer.make(offers(...tools))

/** Never responds. */
const hanging = () => ScriptedServer.make(() => "no response")

const failing: Transport = {
  connect: Effect.fail(new TransportError({ reason: new OpenFailed({ message: "The command was not found" }) }))
}

/** A transport that counts open connections, and that can fail. */
const counted = (transport: Transport, options: { readonly fails?: () => boolean } = {}) => {
  const count = { open: 0, opened: 0, most: 0 }
  return {
    count,
    transport: {
      connect: Effect.suspend(() => {
        if (options.fails?.() === true) return failing.connect
        return Effect.andThen(
          Effect.acquireRelease(
            Effect.sync(() => {
              count.opened++
              count.most = Math.max(count.most, ++count.open)
            }),
            () => Effect.sync(() => count.open--)
          ),
          transport.connect
        )
      })
    } satisfies Transport
  }
}

// Without jitter: the delays are 1, 2, 4, … seconds.
const reconnect = { initialDelay: "1 second", jitter: "none" } as const

const tag = (pool: ClientPool.ClientPool["Service"], name: string) =>
  pool.entries.find((entry) => entry.name === name)?.state._tag

/** Lets all runnable fibers proceed. */
const settle = TestClock.adjust(0)

describe("a pool", () => {
  it.effect("marks the entry of a failing server as broken, and keeps the others available", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({
        a: { transport: healthy("x", "y").transport },
        gone: { transport: failing },
        b: { transport: healthy("z").transport }
      })
      const tools = yield* pool.tools
      assert.deepStrictEqual(
        tools.map(({ result, server }) =>
          Result.isSuccess(result)
            ? [server, ...result.success.map(({ name }) => name)]
            : [server, result.failure.reason._tag]
        ),
        [["a", "x", "y"], ["gone", "ConnectionFailed"], ["b", "z"]]
      )
      assert.deepStrictEqual(pool.entries.map(({ name, state }) => [name, state._tag]), [
        ["a", "Open"],
        ["gone", "Broken"],
        ["b", "Open"]
      ])
      const error = yield* Effect.flip(pool.client("gone"))
      assert.strictEqual(error.message, "The command was not found")
    }))

  it.effect("lists a hanging server with Timeout, without delaying the others", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make(
        { slow: { transport: hanging().transport }, quick: { transport: healthy("x").transport } },
        { timeout: "1 hour" }
      )
      assert.strictEqual((yield* (yield* pool.client("quick")).listTools()).length, 1)
      const listing = yield* Effect.forkChild(pool.tools, { startImmediately: true })
      yield* TestClock.adjust("30 seconds")
      const [slow, quick] = yield* Fiber.join(listing)
      assert.isTrue(Result.isFailure(slow!.result) && slow!.result.failure.reason._tag === "Timeout")
      assert.isTrue(Result.isSuccess(quick!.result))
      assert.strictEqual(tag(pool, "slow"), "Opening")
    }))

  it.effect("opens a server within `timeout`, and closes a connection that was opened too late", () =>
    Effect.gen(function*() {
      const { count, transport } = counted(hanging().transport)
      const pool = yield* ClientPool.make(
        { slow: { transport, options: { revisions: ["2026-07-28"] } } },
        { timeout: "10 seconds", reconnect }
      )
      const waiting = yield* Effect.forkChild(Effect.flip(pool.client("slow")), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(waiting)).reason._tag, "Timeout")
      yield* settle
      assert.deepStrictEqual([count.opened, count.open], [1, 0])
    }))

  it.effect("opens at most `concurrency` servers at the same time, 8 by default", () =>
    Effect.gen(function*() {
      for (const concurrency of [undefined, 2]) {
        let opening = 0
        let most = 0
        const gate = yield* Deferred.make<void>()
        const server = healthy("x")
        const transport: Transport = {
          connect: Effect.gen(function*() {
            most = Math.max(most, ++opening)
            yield* Deferred.await(gate)
            opening--
            return yield* server.transport.connect
          })
        }
        const servers = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`s${at}`, { transport }]))
        const pool = yield* ClientPool.make(servers, { concurrency })
        yield* settle
        assert.strictEqual(most, concurrency ?? 8)
        yield* Deferred.succeed(gate, undefined)
        assert.strictEqual((yield* pool.tools).filter(({ result }) => Result.isSuccess(result)).length, 12)
        assert.strictEqual(most, concurrency ?? 8)
      }
    }))

  it.effect("retries a broken server with growing delays, and its entry has the time of the next attempt", () =>
    Effect.gen(function*() {
      let left = 3
      const { count, transport } = counted(healthy("x").transport, { fails: () => left-- > 0 })
      const pool = yield* ClientPool.make({ a: { transport } }, { reconnect })
      const seen: Array<unknown> = []
      for (const wait of [0, 1_000, 2_000]) {
        yield* TestClock.adjust(wait)
        const { state } = pool.entries[0]!
        seen.push(state._tag === "Broken" ? [state.attempt, state.retryAt] : state._tag)
      }
      assert.deepStrictEqual(seen, [[1, 1_000], [2, 3_000], [3, 7_000]])
      assert.strictEqual((yield* Effect.flip(pool.client("a"))).reason._tag, "ConnectionFailed")
      yield* TestClock.adjust(4_000)
      yield* pool.client("a")
      assert.strictEqual(count.opened, 1)
    }))

  it.effect("stops retrying a server after `maxAttempts`, until restart", () =>
    Effect.gen(function*() {
      let fails = true
      const { transport } = counted(healthy("x").transport, { fails: () => fails })
      const pool = yield* ClientPool.make({ a: { transport } }, { reconnect: { ...reconnect, maxAttempts: 2 } })
      yield* TestClock.adjust("1 hour")
      const { state } = pool.entries[0]!
      assert.isTrue(state._tag === "Broken" && state.attempt === 3 && state.retryAt === undefined)
      fails = false
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(tag(pool, "a"), "Broken")
      yield* pool.restart("a")
      yield* pool.client("a")
      assert.strictEqual(tag(pool, "a"), "Open")
    }))

  it.effect("reopens a server that ends, with growing delays when it ends each time", () =>
    Effect.gen(function*() {
      const server = healthy("x")
      const { count, transport } = counted(server.transport)
      const pool = yield* ClientPool.make(
        { a: { transport, options: { reconnect: false } } },
        { reconnect }
      )
      yield* pool.client("a")
      const attempts: Array<number> = []
      for (const wait of [1, 2, 4]) {
        server.disconnect()
        yield* settle
        const { state } = pool.entries[0]!
        attempts.push(state._tag === "Broken" ? state.attempt : 0)
        yield* TestClock.adjust(wait * 1_000)
        yield* pool.client("a")
      }
      assert.deepStrictEqual(attempts, [1, 2, 3])
      yield* TestClock.adjust("1 minute")
      server.disconnect()
      yield* settle
      const { state } = pool.entries[0]!
      assert.isTrue(state._tag === "Broken" && state.attempt === 1 && state.error.reason._tag === "Closed")
      assert.deepStrictEqual([count.opened, count.open], [4, 0])
    }))

  it.effect("marks the entry of a transport that throws as broken", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({ a: { transport: { connect: Effect.die(new Error("a bug")) } } })
      const error = yield* Effect.flip(pool.client("a"))
      assert.strictEqual(error.reason._tag, "ConnectionFailed")
      assert.strictEqual((error.cause as Error).message, "a bug")
    }))

  it.effect("lists no tools for servers that declare none", () =>
    Effect.gen(function*() {
      const mute = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", undefined, {}))
      const pool = yield* ClientPool.make({ mute: { transport: mute.transport } })
      for (const listing of [pool.tools, pool.resources, pool.resourceTemplates, pool.prompts]) {
        assert.deepStrictEqual(yield* listing, [{ server: "mute", result: Result.succeed([]) }])
      }
    }))
})

describe("a pool at run time", () => {
  it.effect("adds servers, and rejects duplicate and unknown names", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({ a: { transport: healthy().transport } })
      yield* pool.add("b", { transport: healthy("x").transport })
      assert.strictEqual((yield* (yield* pool.client("b")).listTools())[0]!.name, "x")
      assert.strictEqual((yield* Effect.flip(pool.add("a", { transport: failing }))).reason._tag, "DuplicateName")
      assert.strictEqual((yield* Effect.flip(pool.client("c"))).reason._tag, "ServerNotFound")
      assert.strictEqual((yield* Effect.flip(pool.restart("c"))).reason._tag, "ServerNotFound")
      assert.isFalse(yield* pool.remove("c"))
    }))

  it.effect("holds `maxServers`, 100 by default; fails with LimitExceeded for one more", () =>
    Effect.gen(function*() {
      const { transport } = healthy()
      const many = (length: number) => Object.fromEntries(Array.from({ length }, (_, at) => [`s${at}`, { transport }]))
      assert.strictEqual((yield* Effect.flip(ClientPool.make(many(101)))).reason._tag, "LimitExceeded")
      const pool = yield* ClientPool.make(many(2), { maxServers: 2 })
      assert.strictEqual((yield* Effect.flip(pool.add("more", { transport }))).reason._tag, "LimitExceeded")
      yield* pool.remove("s0")
      yield* pool.add("more", { transport })
      assert.deepStrictEqual(pool.entries.map(({ name }) => name), ["s1", "more"])
      assert.strictEqual((yield* ClientPool.make(many(100))).entries.length, 100)
    }))

  it.effect("closes a removed server, and fails its waiting callers", () =>
    Effect.gen(function*() {
      const { count, transport } = counted(healthy().transport)
      const pool = yield* ClientPool.make({ a: { transport }, slow: { transport: hanging().transport } })
      yield* pool.client("a")
      const waiting = yield* Effect.forkChild(Effect.flip(pool.client("slow")), { startImmediately: true })
      assert.isTrue(yield* pool.remove("slow"))
      assert.strictEqual((yield* Fiber.join(waiting)).reason._tag, "Closed")
      assert.isTrue(yield* pool.remove("a"))
      assert.strictEqual(count.open, 0)
      assert.deepStrictEqual(pool.entries, [])
    }))

  it.effect("completes a removal that is interrupted", () =>
    Effect.gen(function*() {
      let open = 0
      const server = healthy()
      const transport: Transport = {
        connect: Effect.andThen(
          Effect.acquireRelease(
            Effect.sync(() => open++),
            () => Effect.andThen(Effect.sleep("1 second"), Effect.sync(() => open--))
          ),
          server.transport.connect
        )
      }
      const pool = yield* ClientPool.make({ a: { transport } })
      yield* pool.client("a")
      const removing = yield* Effect.forkChild(pool.remove("a"), { startImmediately: true })
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(removing), { startImmediately: true })
      yield* settle
      assert.strictEqual(open, 1)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interrupting)
      assert.strictEqual(open, 0)
    }))

  it.effect("closes the old client before it restarts a server, and opens one client for two concurrent restarts", () =>
    Effect.gen(function*() {
      const { count, transport } = counted(healthy().transport)
      const pool = yield* ClientPool.make({ a: { transport } })
      const before = yield* pool.client("a")
      yield* Effect.all([pool.restart("a"), pool.restart("a")], { concurrency: 2 })
      const after = yield* pool.client("a")
      yield* settle
      assert.notStrictEqual(after, before)
      assert.deepStrictEqual(count, { open: 1, opened: 2, most: 1 })
    }))

  it.effect("closes all servers concurrently, and fails waiting callers", () =>
    Effect.gen(function*() {
      const server = healthy()
      let open = 0
      // Takes a second to close.
      const transport: Transport = {
        connect: Effect.andThen(
          Effect.acquireRelease(
            Effect.sync(() => open++),
            () => Effect.andThen(Effect.sleep("1 second"), Effect.sync(() => open--))
          ),
          server.transport.connect
        )
      }
      const scope = yield* Scope.make()
      const pool = yield* Scope.provide(
        ClientPool.make({
          a: { transport },
          b: { transport },
          c: { transport },
          d: { transport: hanging().transport }
        }),
        scope
      )
      const waiting = yield* Effect.forkChild(Effect.flip(pool.client("d")), { startImmediately: true })
      for (const name of ["a", "b", "c"]) yield* pool.client(name)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(closing)
      assert.strictEqual(open, 0)
      assert.strictEqual((yield* Fiber.join(waiting)).reason._tag, "Closed")
    }))

  it.effect("emits its present state, then the latest state after each change, until it is closed", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const pool = yield* Scope.provide(ClientPool.make({ a: { transport: healthy().transport } }), scope)
      const seen: Array<string> = []
      const watching = yield* Effect.forkChild(
        Stream.runForEach(
          pool.states,
          (entries) =>
            Effect.sync(() => seen.push(entries.map(({ name, state }) => `${name} ${state._tag}`).join(", ")))
        ),
        { startImmediately: true }
      )
      yield* settle
      yield* pool.add("b", { transport: failing })
      yield* settle
      yield* pool.remove("b")
      yield* settle
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(watching)
      assert.strictEqual(seen[0], "a Opening")
      assert.includeMembers(seen, ["a Open", "a Open, b Broken"])
      assert.isTrue(seen.indexOf("a Open, b Broken") < seen.lastIndexOf("a Open"))
    }))

  it.effect("passes the pool's name of the requesting server to input handlers", () =>
    Effect.gen(function*() {
      const asking = () =>
        ScriptedServer.make(ScriptedServer.handshake("2026-07-28", ({ method }) =>
          method === "resources/read"
            ? ScriptedServer.success({
              resultType: "input_required",
              inputRequests: { where: { method: "roots/list" } }
            })
            : ScriptedServer.methodNotFound(method), { resources: {} }))
      const labels: Array<string | undefined> = []
      const roots = Roots.layerEffect(({ label }) => Effect.sync(() => (labels.push(label), [])))
      const pool = yield* Effect.provide(
        ClientPool.make({
          files: { transport: asking().transport, options: { limits: { maxRounds: 1 } } },
          mail: { transport: asking().transport, options: { label: "my mail", limits: { maxRounds: 1 } } }
        }),
        roots
      )
      for (const name of ["files", "mail"]) {
        const client = yield* pool.client(name)
        assert.strictEqual((yield* Effect.flip(client.readResource("a:b"))).reason._tag, "LimitExceeded")
      }
      assert.deepStrictEqual(labels, ["files", "my mail"])
    }))

  it.effect("is available as a layer", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.ClientPool
      assert.strictEqual((yield* (yield* pool.client("a")).listTools()).length, 1)
    }).pipe(Effect.provide(Layer.orDie(ClientPool.layer({ a: { transport: healthy("x").transport } })))))
})

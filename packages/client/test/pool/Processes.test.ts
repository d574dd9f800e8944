/** A pool of real processes, in real time. No test waits for longer than necessary. */
import { assert, describe, it } from "@effect/vitest"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ClientPool from "../../src/ClientPool.ts"
import * as Stdio from "../../src/Stdio.ts"
import { toolServer } from "./toolServer.ts"

/** A server with one tool. The stubborn variant ignores both the end of its stdin and SIGTERM. */
const script = (stubborn: boolean): string =>
  toolServer(stubborn ? "process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6)" : "")

/** A process, and the ids of all its starts. */
const server = (stubborn = false) => {
  const pids: Array<number> = []
  const { connect } = Stdio.transport({
    command: process.execPath,
    args: ["-e", script(stubborn)],
    shutdownTimeout: "250 millis"
  })
  const transport: Transport = { connect: Effect.tap(connect, ({ pid }) => Effect.sync(() => pids.push(pid))) }
  return { pids, transport }
}

const runs = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Waits until a server of the pool satisfies the condition. */
const until = (pool: ClientPool.ClientPool["Service"], name: string, tag: ClientPool.State["_tag"]) =>
  Stream.runHead(Stream.filter(
    pool.states,
    (entries) => entries.some((entry) => entry.name === name && entry.state._tag === tag)
  ))

describe("a pool over stdio", () => {
  it.live("marks the entry of a process that dies as broken, restarts it, and keeps the others available", () =>
    Effect.gen(function*() {
      const [a, b] = [server(), server()]
      const pool = yield* ClientPool.make({ a, b }, { reconnect: { initialDelay: "10 millis" } })
      yield* pool.tools
      process.kill(a.pids[0]!, "SIGKILL")
      yield* until(pool, "a", "Broken")
      yield* until(pool, "a", "Open")
      assert.strictEqual((yield* (yield* pool.client("a")).listTools()).length, 1)
      assert.strictEqual(a.pids.length, 2)
      assert.isTrue(b.pids.length === 1 && runs(b.pids[0]!))
    }))

  it.live("ends the process of a removed server, without waiting for a stubborn one", () =>
    Effect.gen(function*() {
      const [a, b] = [server(true), server()]
      const pool = yield* ClientPool.make({ a, b })
      yield* pool.tools
      yield* Effect.forkScoped(pool.remove("a"), { startImmediately: true })
      assert.isTrue(yield* pool.remove("b"))
      assert.isFalse(runs(b.pids[0]!))
      assert.isTrue(runs(a.pids[0]!))
    }))

  it.live("ends all processes on close, including stubborn ones", () =>
    Effect.gen(function*() {
      const servers = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`s${at}`, server(at < 4)]))
      const scope = yield* Scope.make()
      const pool = yield* Scope.provide(ClientPool.make(servers), scope)
      yield* pool.tools
      const pids = Object.values(servers).flatMap(({ pids }) => pids)
      assert.strictEqual(pids.filter(runs).length, 6)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(pids.filter(runs), [])
    }))
})

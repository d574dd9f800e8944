/** A host whose server is lost repeatedly ends with the fibers and resources that it started with. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { readFileSync } from "node:fs"
import * as Client from "../../src/Client.ts"
import * as Stdio from "../../src/Stdio.ts"
import { added, census } from "../support/census.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { until } from "./support.ts"

describe("a host that loses its server 1,000 times", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · ends with the fibers that it started with`, () =>
      Effect.gen(function*() {
        const line = ScriptedServer.make(ScriptedServer.handshake(revision, (request) =>
          request.method === "tools/list"
            ? ScriptedServer.success({ tools: [], resultType: "complete", ttlMs: 0, cacheScope: "private" })
            : "no response"))
        const before = yield* census
        const counts = yield* Effect.scoped(Effect.gen(function*() {
          const client = yield* Client.make(line.transport, {
            revisions: [revision],
            reconnect: { jitter: "none", initialDelay: 10, maxDelay: 10, maxAttempts: Infinity },
            heartbeat: { interval: "1 hour", timeout: "1 minute" }
          })
          const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkScoped(effect, { startImmediately: true })
          yield* fork(Stream.runDrain(client.status))
          yield* fork(Stream.runDrain(client.notifications))
          const counts: Array<number> = []
          for (let losses = 0; losses <= 1_000; losses++) {
            yield* client.listToolsPage()
            if (losses === 10 || losses === 1_000) counts.push((yield* census).fibers)
            if (losses === 1_000) break
            // A call without a response, a call that waits, and a call whose fiber is interrupted.
            const lost = yield* Effect.forkChild(Effect.exit(client.callTool("slow")), { startImmediately: true })
            if (losses % 2 === 0) line.lose()
            else line.disconnect()
            const waiting = yield* Effect.forkChild(client.listToolsPage(), { startImmediately: true })
            const gone = yield* Effect.forkChild(client.listToolsPage(), { startImmediately: true })
            yield* until(() => line.openConnections === 0)
            yield* Fiber.interrupt(gone)
            yield* TestClock.adjust(10)
            yield* Fiber.join(waiting)
            assert.strictEqual((yield* Fiber.join(lost))._tag, "Failure")
          }
          return counts
        }))
        assert.deepStrictEqual([line.attempts, line.openConnections, line.maxOpenConnections], [1_001, 0, 1])
        assert.isAtMost(counts[1]!, counts[0]!)
        const after = yield* census
        assert.isAtMost(after.fibers, before.fibers)
        assert.deepStrictEqual(added(before.resources, after.resources), [])
        assert.isAtMost(after.listeners, before.listeners)
      }), 60_000)
  }
})

/** Returns true if a process does not exist, or is a zombie that its parent has not reaped. */
const gone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return process.platform === "linux" && /\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return true
  }
}

/** A session-based server that returns its pid, and dies in the way that a call selects. */
const mortal = `
  const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line)
    const serverInfo = { name: "mortal", version: "1" }
    if (method === "initialize") answer(id, { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo })
    else if (method === "tools/call" && params.name === "pid") answer(id, { content: [{ type: "text", text: String(process.pid) }] })
    else if (method === "tools/call" && params.name === "exit") process.exit(params.arguments.code)
    else if (method === "tools/call" && params.name === "kill") process.kill(process.pid, "SIGKILL")
  })`

describe("2026-07-28 · stdio · if the server process exits unexpectedly, the client SHOULD restart it", () => {
  it.live(
    "with a reconnect policy: 20 deaths start 21 processes, one at a time, and leave none",
    () =>
      Effect.gen(function*() {
        const transport = Stdio.transport({ command: process.execPath, args: ["-e", mortal], stderr: "ignore" })
        const before = yield* census
        const pids: Array<number> = []
        yield* Effect.scoped(Effect.gen(function*() {
          const client = yield* Client.make(transport, {
            revisions: ["2025-11-25"],
            reconnect: { initialDelay: 1, maxDelay: 1, maxAttempts: 20 }
          })
          for (let deaths = 0; deaths <= 20; deaths++) {
            const { content } = yield* client.callTool("pid")
            pids.push(Number((content[0] as { readonly text: string }).text))
            assert.isTrue(pids.slice(0, -1).every(gone), "one before is still there")
            if (deaths === 20) break
            const dies = deaths % 3 === 0 ? client.callTool("kill") : client.callTool("exit", { code: deaths % 3 - 1 })
            const error = yield* Effect.flip(dies)
            assert.strictEqual(error.reason._tag, "Closed")
          }
        }))
        assert.strictEqual(new Set(pids).size, 21)
        assert.isTrue(pids.every(gone))
        const after = yield* census
        assert.isAtMost(after.fibers, before.fibers)
        assert.deepStrictEqual(added(before.resources, after.resources), [])
        assert.isAtMost(after.listeners, before.listeners)
      }),
    60_000
  )

  it.live("does not restart a process without a reconnect policy", () =>
    Effect.gen(function*() {
      const transport = Stdio.transport({ command: process.execPath, args: ["-e", mortal], stderr: "ignore" })
      const client = yield* Client.make(transport, { revisions: ["2025-11-25"] })
      yield* Effect.flip(client.callTool("exit", { code: 3 }))
      const end = yield* client.ended
      assert.strictEqual(end._tag, "Lost")
      const error = yield* Effect.flip(client.callTool("pid"))
      assert.match(error.message, /^tools\/call was not sent: The server exited with code 3/)
    }))
})

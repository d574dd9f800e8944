/**
 * A server that stops while a call waits for its task: the client has not cancelled the call, so the task continues.
 */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { run } from "../../../server/test/stdio/Child.ts"
import * as http from "../../../server/test/http/kit.ts"
import type { Json } from "../../../server/test/kit.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-stopping-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const until = (done: () => boolean): Effect.Effect<unknown> => Effect.repeat(Effect.sleep(5), { until: done })

const clients = ["2025-06-18", "2025-11-25", "2026-07-28"] as const
type Client = typeof clients[number]

/** A process that is started with the same files again and again. */
const processes = Effect.map(folder, (folder) => {
  const [filename, log, go] = ["tasks.db", "log", "go"].map((name) => join(folder, name)) as [string, string, string]
  const done = () => existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : []
  return {
    done,
    logged: (line: string) => until(() => done().includes(line)),
    go: () => writeFileSync(go, ""),
    start: Effect.acquireRelease(
      Effect.sync(() => run("../../../../tasks/test/protocol/fixtures/baker.ts", [filename, log, go])),
      (child) => Effect.sync(() => child.process.kill("SIGKILL"))
    )
  }
})

/** Calls the tool, and does not wait for the response. */
const call = (child: ReturnType<typeof run>, revision: Client) =>
  Effect.gen(function*() {
    const say = (body: Json) => void child.process.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", ...body })}\n`)
    const clientInfo = { name: "test", version: "1" }
    if (revision === "2026-07-28") {
      const _meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientInfo": clientInfo,
        "io.modelcontextprotocol/clientCapabilities": {}
      }
      return say({ id: 1, method: "tools/call", params: { name: "bake", arguments: {}, _meta } })
    }
    say({ id: 0, method: "initialize", params: { protocolVersion: revision, capabilities: {}, clientInfo } })
    yield* Effect.promise(() => child.stdout.until(`"id":0`))
    say({ method: "notifications/initialized" })
    say({ id: 1, method: "tools/call", params: { name: "bake", arguments: {} } })
  })

describe("stdio: a process that stops while a call waits", () => {
  for (const revision of clients) {
    it.live(
      `${revision} · stopped by a signal: the task continues in the next process, without compensations`,
      () =>
        Effect.scoped(Effect.gen(function*() {
          const { done, go, logged, start } = yield* processes
          const first = yield* start
          yield* call(first, revision)
          yield* logged("waits")
          first.process.kill("SIGTERM")
          expect(yield* Effect.promise(() => first.exit)).toBe(143)
          expect(first.messages().filter(({ id }) => id === 1)).toEqual([])
          go()
          const second = yield* start
          yield* logged("cake")
          expect(done()).toEqual(["oven on", "waits", "waits", "cake"])
          second.process.stdin!.end()
          expect(yield* Effect.promise(() => second.exit)).toBe(0)
        })),
      120_000
    )
  }

  for (const revision of clients) {
    it.live(
      `${revision} · stopped by its client, which closed stdin: the task continues in the next process, without compensations`,
      () =>
        Effect.scoped(Effect.gen(function*() {
          const { done, go, logged, start } = yield* processes
          const first = yield* start
          yield* call(first, revision)
          yield* logged("waits")
          first.process.stdin!.end()
          expect(yield* Effect.promise(() => first.exit)).toBe(0)
          go()
          yield* start
          yield* logged("cake")
          expect(done()).toEqual(["oven on", "waits", "waits", "cake"])
        })),
      120_000
    )
  }

  it.live(
    "2025-11-25 · its client cancelled the call and closed stdin: the task is cancelled and compensated",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { done, logged, start } = yield* processes
        const first = yield* start
        yield* call(first, "2025-11-25")
        yield* logged("waits")
        const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }
        first.process.stdin!.end(`${JSON.stringify(cancelled)}\n`)
        expect(yield* Effect.promise(() => first.exit)).toBe(0)
        // The next process does what the first one had no time for.
        yield* start
        yield* logged("oven off: cancelled")
        expect(done().filter((line) => line !== "waits")).toEqual(["oven on", "oven off: cancelled"])
      })),
    120_000
  )
})

/** Servers on one file, one after the other; and the steps of their task. */
const servers = Effect.map(folder, (folder) => {
  const gate = Latch.makeUnsafe(false)
  const log: Array<string> = []
  const write = (line: string) => Effect.sync(() => void log.push(line))
  const bake = Task.layer(Task.make("bake"), () =>
    Effect.gen(function*() {
      yield* Step.run("oven", {}, () => write("oven on")).pipe(
        Step.withCompensation((_, why) => write(`oven off: ${why}`))
      )
      yield* Step.run("wait", {}, () => Effect.andThen(write("waits"), gate.await))
      yield* Step.run("cake", {}, () => write("cake"))
      return "A cake"
    }))
  const options = { filename: join(folder, "tasks.db"), shutdownTimeout: 50, pollInterval: 50 }
  const layer = McpServer.layer({ name: "test", version: "1" }, bake, Tasks.layer()).pipe(
    Layer.provide(SqliteTasks.layer(options))
  )
  const serve = Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const at = yield* Scope.provide(http.serve(layer, { shutdownTimeout: 50 }), scope)
    return { at, stop: Scope.close(scope, Exit.void) }
  })
  return { gate, log, logged: (line: string) => until(() => log.includes(line)), serve }
})

const enter = (at: { readonly port: number }, protocolVersion: string) =>
  Effect.gen(function*() {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } }
    const opened = yield* http.post(at, { jsonrpc: "2.0", id: 0, method: "initialize", params })
    const session = String(opened.headers["mcp-session-id"])
    const headers = { ...http.posting, "mcp-session-id": session, "mcp-protocol-version": protocolVersion }
    yield* http.send(at, { headers, body: { jsonrpc: "2.0", method: "notifications/initialized" } })
    return headers
  })

describe("Streamable HTTP: a server that stops while a call waits", () => {
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "bake" } }
  const calls = (at: { readonly port: number }, revision: Client) =>
    revision === "2026-07-28"
      ? Effect.succeed(http.modern("tools/call", { name: "bake" }))
      : Effect.map(
        enter(at, revision),
        (headers) => ({ headers, body })
      )

  for (const revision of clients) {
    it.live(`${revision} · the client receives an error, and the task continues with the next server, without compensations`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { gate, log, logged, serve } = yield* servers
        const first = yield* serve
        const request = yield* calls(first.at, revision)
        const answer = yield* Effect.forkScoped(http.send(first.at, request), { startImmediately: true })
        yield* logged("waits")
        yield* first.stop
        const { json, messages } = yield* Fiber.join(answer)
        expect((json ?? messages.at(-1)).error.message).toContain(
          "which may have run: check that before you send it again"
        )
        expect(log).toEqual(["oven on", "waits"])
        yield* gate.open
        yield* serve
        yield* logged("cake")
        expect(log).toEqual(["oven on", "waits", "waits", "cake"])
      })))
  }

  it.live("2025-11-25 · a client that ends its session (DELETE) has cancelled its calls, and their tasks", () =>
    Effect.scoped(Effect.gen(function*() {
      const { log, logged, serve } = yield* servers
      const { at } = yield* serve
      const headers = yield* enter(at, "2025-11-25")
      yield* Effect.forkScoped(http.send(at, { headers, body }))
      yield* logged("waits")
      yield* http.send(at, { method: "DELETE", headers })
      yield* logged("oven off: cancelled")
      expect(log).toEqual(["oven on", "waits", "oven off: cancelled"])
    })))

  it.live("2026-07-28 · a client that closes its connection has cancelled its call, and the task", () =>
    Effect.scoped(Effect.gen(function*() {
      const { log, logged, serve } = yield* servers
      const { at } = yield* serve
      yield* Effect.raceFirst(http.send(at, http.modern("tools/call", { name: "bake" })), logged("waits"))
      yield* logged("oven off: cancelled")
      expect(log).toEqual(["oven on", "waits", "oven off: cancelled"])
    })))
})

/** A server of several processes: `workers` of `NodeHttp.runMain`. */
import { describe, expect, it } from "@effect/vitest"
import * as LegacySse from "@skein/server/LegacySse"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { countOf, quota } from "../../src/internal/http/workers/count.ts"
import * as kit from "./kit.ts"
import { type Process, run } from "./process/run.ts"
import { Client, initialize, notification, request, until } from "./session/kit.ts"
import { response } from "./fleet/kit.ts"

const start = (options: object = {}, env?: Readonly<Record<string, string>>) =>
  run("workers.ts", { workers: { count: 2, allowLocal: true }, ...options }, env)

/** Opens a session. Each request has a connection of its own, so the workers take turns. */
const enter = (server: Process) =>
  Effect.gen(function*() {
    const opened = yield* kit.send(server, { headers: kit.posting, body: initialize("2025-11-25") })
    const id = String(opened.headers["mcp-session-id"])
    const client = new Client(server as never, id, { "mcp-session-id": id })
    const reply = yield* client.post(notification("notifications/initialized"))
    expect([opened.status, reply.status]).toEqual([200, 202])
    return client
  })

const call = (id: number, name: string) => request(id, "tools/call", { name, arguments: {} })
const textOf = ({ json, messages }: kit.Reply): string => (json ?? messages.at(-1)).result.content[0].text

/** Calls until the results have this many values. */
const pids = (client: Client, count: number): Effect.Effect<ReadonlySet<string>> => {
  const found = new Set<string>()
  const more: Effect.Effect<ReadonlySet<string>> = Effect.suspend(() =>
    found.size >= count
      ? Effect.succeed(found)
      : Effect.flatMap(client.post(call(1, "pid")), (reply) => {
        found.add(textOf(reply))
        return more
      })
  )
  return more
}

describe("workers", () => {
  it.live("serve each session together: calls, questions, streams, changes, and its end", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      expect(server.stderr.all.join()).toContain("(workers: 2)")
      const client = yield* enter(server)
      expect((yield* pids(client, 2)).size).toBe(2)
      const stream = yield* client.get()
      yield* client.post(request(2, "resources/subscribe", { uri: "test://watched" }))
      for (let round = 0; round < 4; round++) {
        const asked = yield* client.stream(call(3, "ask"))
        yield* asked.next
        const question = (yield* asked.next).json
        expect((yield* client.post(response(question.id, `${round}`))).status).toBe(202)
        expect((yield* asked.message).result.content[0].text).toBe(`${round}`)
        yield* client.post(call(4, "touch"))
        yield* until(() =>
          stream.waiting().filter(({ json }) => json?.method === "notifications/resources/updated").length === round + 1
        )
      }
      expect((yield* client.delete()).status).toBe(204)
      for (let n = 0; n < 4; n++) expect((yield* client.post(call(5, "pid"))).status).toBe(404)
    })))

  it.live("2024-11-05 · serve the sessions of HTTP+SSE together", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start({ legacySse: LegacySse.make() })
      const stream = yield* kit.open(server as never, {
        method: "GET",
        path: "/sse",
        headers: { accept: "text/event-stream" }
      })
      const path = (yield* stream.next).data!
      const say = (body: kit.Json) => kit.send(server as never, { path, headers: kit.posting, body })
      expect((yield* say(initialize("2024-11-05"))).status).toBe(202)
      expect((yield* stream.message).id).toBe("init")
      yield* say(notification("notifications/initialized"))
      for (let n = 0; n < 8; n++) {
        expect((yield* say(call(n, "pid"))).status).toBe(202)
        expect((yield* stream.message).id).toBe(n)
      }
    })))

  it.live("2025-11-25 · resume the stream of a call that another one handles, before the call has ended", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      const client = yield* enter(server)
      for (let round = 0; round < 4; round++) {
        const asked = yield* client.stream(call(1, "ask"))
        yield* asked.next
        const question = yield* asked.next
        asked.leave()
        const resumed = yield* client.get({ "last-event-id": question.id! })
        expect((yield* client.post(response(question.json.id, `${round}`))).status).toBe(202)
        expect((yield* resumed.message).result.content[0].text).toBe(`${round}`)
      }
    })))

  it.live("are replaced when they exit, and their sessions go on", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      const client = yield* enter(server)
      const [killed] = yield* pids(client, 2)
      process.kill(Number(killed), "SIGKILL")
      yield* Effect.promise(() => server.stderr.until("has exited (SIGKILL): another one is started"))
      const others = yield* Effect.repeat(pids(client, 2), { until: (found) => !found.has(killed!) })
      expect(others.size).toBe(2)
      server.kill("SIGTERM")
      expect(yield* server.exit).toBe(143)
    })))

  it.live("survive a message to the primary process that fails, and end quietly when it is killed", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      const client = yield* enter(server)
      const before = yield* pids(client, 2)
      for (let n = 0; n < 4; n++) yield* client.post(call(1, "epipe"))
      expect(yield* pids(client, 2)).toEqual(before)
      server.kill("SIGKILL")
      // The pipe of stderr closes with the last worker.
      expect(yield* server.exit).toBe("SIGKILL")
      expect(server.stderr.all.filter((line) => /EPIPE|Error/.test(line))).toEqual([])
    })))

  it.live("finish the requests in flight on SIGTERM, and report the end once each", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      const clients = [yield* enter(server), yield* enter(server), yield* enter(server), yield* enter(server)]
      const calls = yield* Effect.forEach(clients, (client) => Effect.forkChild(client.post(call(1, "slow"))))
      yield* until(() => server.stderr.all.filter((line) => line.includes("half way")).length === 4)
      server.kill("SIGTERM")
      const replies = yield* Effect.forEach(calls, Fiber.join)
      expect(new Set(replies.map(textOf)).size).toBe(2)
      expect(yield* server.exit).toBe(143)
      expect(server.stderr.all.filter((line) => line.includes("Shutting down"))).toHaveLength(2)
      expect(server.stderr.all.filter((line) => line.includes("Stopped after"))).toHaveLength(1)
    })))

  it.live("are all replaced on SIGHUP, without a refused connection, and keep sessions", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      const client = yield* enter(server)
      const before = yield* pids(client, 2)
      const statuses: Array<number> = []
      const load = yield* Effect.forkChild(Effect.forever(
        Effect.map(client.post(call(1, "pid")), ({ status }) => void statuses.push(status))
      ))
      server.kill("SIGHUP")
      yield* Effect.promise(() => server.stderr.until("Replaced the workers"))
      yield* Fiber.interrupt(load)
      expect(new Set(statuses)).toEqual(new Set([200]))
      const after = yield* pids(client, 2)
      expect([...after].filter((pid) => before.has(pid))).toEqual([])
    })))

  it.live("end with the primary process after 5 exits within a minute", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      const client = yield* enter(server)
      for (let exits = 1; exits <= 5; exits++) {
        const [pid] = yield* pids(client, 2)
        process.kill(Number(pid), "SIGKILL")
        const lines = () => server.stderr.all.filter((line) => /has exited|have exited/.test(line)).length
        yield* until(() => lines() === exits)
      }
      expect(yield* server.exit).toBe(1)
      expect(server.stderr.all.join()).toContain("5 workers have exited within a minute, the last one with SIGKILL")
    })))

  it.live("report a mistake of the server once", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start({ fails: true })
      expect(yield* server.exit).toBe(1)
      expect(server.stderr.all.filter((line) => line.includes("no database"))).toHaveLength(1)
      expect(server.stderr.all.join()).toContain(
        "no worker could be started: the first one ended before it listened (exit code 1)"
      )
    })))

  it.live("are set by SKEIN_WORKERS; a value that is no number from 1 is refused", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start({ workers: undefined }, { SKEIN_WORKERS: "2" })
      expect(server.stderr.all.join()).toContain("(workers: 2)")
      for (const workers of ["0", "many"]) {
        const refused = yield* start({ workers: undefined }, { SKEIN_WORKERS: workers })
        expect(yield* refused.exit).toBe(1)
        expect(refused.stderr.all.join()).toContain(`SKEIN_WORKERS is "${workers}": expected auto or a number from 1`)
      }
      const wrong = yield* start({ workers: 1.5 })
      expect(yield* wrong.exit).toBe(1)
      expect(wrong.stderr.all.join()).toContain("The option workers is 1.5: expected a number from 1, or \"auto\"")
    })))

  it.live("are refused with a port for the other nodes, which only one of them could have", () =>
    Effect.scoped(Effect.gen(function*() {
      const keys = ["k".repeat(32)]
      const refused = yield* start({ nodeRequests: { keys, port: 8081 } })
      expect(yield* refused.exit).toBe(1)
      expect(refused.stderr.all.join()).toContain("leave out the port of nodeRequests (SKEIN_NODE_REQUESTS_PORT)")
      yield* enter(yield* start({ nodeRequests: { keys, port: 0 } }))
    })))

  it.live("are refused with stores in memory, whose names and remedies the message has", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start({ workers: 2, limited: true })
      expect(yield* server.exit).toBe(1)
      const text = server.stderr.all.join("\n")
      expect(text).toContain("with workers, each process would have these parts apart:")
      expect(text).toContain("- the counts of RateLimit.layer: use RateLimit.layerStore with a store that all share")
      expect(text).toContain("- the state in memory (\"hits\"): provide SqlStateStore.layer")
      expect(text).toContain("To start all the same, set workers: { count, allowLocal: true }")
    })))

  it.live("share the state of a session in a database", () =>
    Effect.scoped(Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "skein-workers-"))),
        (folder) => Effect.promise(() => rm(folder, { recursive: true }))
      )
      const server = yield* start({ workers: 2, database: join(folder, "state.db") })
      const [client, other] = [yield* enter(server), yield* enter(server)]
      for (let n = 1; n <= 6; n++) expect(textOf(yield* client.post(call(n, "count")))).toBe(`${n}`)
      expect(textOf(yield* other.post(call(1, "count")))).toBe("1")
    })))

  it.live("are refused in a worker of another cluster", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start({ foreign: true })
      expect(yield* server.exit).toBe(1)
      expect(server.stderr.all.join()).toContain("the option workers cannot be used in a worker of another cluster")
    })))

  it.live("exit at once on a second signal", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      const client = yield* enter(server)
      yield* Effect.forkChild(Effect.ignore(client.post(call(1, "slow"))))
      yield* Effect.promise(() => server.stderr.until("half way"))
      const found = [...yield* pids(client, 2)].map(Number)
      server.kill("SIGINT")
      server.kill("SIGINT")
      expect(yield* server.exit).toBe(130)
      const isRunning = (pid: number): boolean => {
        try {
          return process.kill(pid, 0)
        } catch {
          return false
        }
      }
      yield* until(() => !found.some(isRunning))
    })))
})

describe("workers: \"auto\"", () => {
  const files = (content: { readonly [path: string]: string }) => (path: string) => content[path]

  it("counts the processors of the machine, and at most 8", () => {
    expect(countOf("auto", 4, Infinity)).toBe(4)
    expect(countOf("auto", 64, Infinity)).toBe(8)
    expect(countOf("auto", 64, 2.5)).toBe(2)
    expect(countOf("auto", 4, 0.5)).toBe(1)
    expect(countOf(12, 4, 1)).toBe(12)
  })

  it("reads the limit of the container, of either version", () => {
    expect(quota(files({ "/sys/fs/cgroup/cpu.max": "200000 100000" }))).toBe(2)
    expect(quota(files({ "/sys/fs/cgroup/cpu.max": "max 100000" }))).toBe(Infinity)
    const version1 = (limit: string) =>
      files({ "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": limit, "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000" })
    expect(quota(version1("150000"))).toBe(1.5)
    expect(quota(version1("-1"))).toBe(Infinity)
    expect(quota(files({}))).toBe(Infinity)
  })
})

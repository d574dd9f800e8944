/**
 * The workloads of the client soak: opening and closing thousands of clients over each transport, and restarting their
 * server.
 */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import type { Transport } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as FaultyServer from "@skein/testing/FaultyServer"
import * as Scenario from "@skein/testing/Scenario"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

export interface Workload {
  readonly name: string
  /** The number of repetitions in a full run. */
  readonly times: number
  /** The number of repetitions before the baseline, so that it includes everything that is created once. */
  readonly warmUp: number
  /** Replaces `times` when less than a tenth of a full run is requested. For slow workloads. */
  readonly timesWhenQuick?: number
  /** Repeats the workload, and returns descriptions of wrong results. */
  readonly run: (times: number) => Effect.Effect<ReadonlyArray<string>>
}

const revisions = ["2025-11-25", "2026-07-28"] as const

/** The faults of the test server. Half of the clients meet one of them, the other half none. */
const faults: ReadonlyArray<Scenario.Fault> = [
  Scenario.cut(20),
  Scenario.cut(300),
  Scenario.cut(300, "end"),
  { _tag: "Status", status: 500, body: "html", handled: false },
  { _tag: "ResponseBody", is: "truncated" },
  { _tag: "ResponseId", how: "missing" },
  { _tag: "Progress", times: 50 }
]

const limits = { timeout: "2 seconds", maxTimeout: "2 seconds" } as const
const reconnect = { initialDelay: 1, maxDelay: 5, maxAttempts: 1_000_000, jitter: "none" } as const

const repeat = (count: number, concurrency: number, one: (n: number) => Effect.Effect<string | undefined>) =>
  Effect.map(
    Effect.forEach(Array.from({ length: count }, (_, n) => n), one, { concurrency }),
    (problems) => [...new Set(problems.filter((problem) => problem !== undefined))]
  )

/**
 * Opens a client, calls a tool, and closes the client; every fifth one closes during the call. Returns a problem when
 * the result is wrong, or when the call fails although `mustSucceed`.
 */
const openCallClose = (transport: Transport, n: number, key: string, mustSucceed: boolean) =>
  Effect.scoped(Effect.gen(function*() {
    const client = yield* Client.make(transport, { limits, reconnect: false, revisions: [revisions[n % 2]!] })
    if (n % 3 === 0) yield* client.listToolsPage()
    const called = client.callTool("echo", { key })
    if (n % 5 === 0) {
      yield* Effect.forkScoped(Effect.ignore(called), { startImmediately: true })
      return undefined
    }
    const { content } = yield* called
    return JSON.stringify(content).includes(key)
      ? undefined
      : `the result does not contain ${key}: ${JSON.stringify(content)}`
  })).pipe(
    Effect.catch((error) => Effect.succeed(mustSucceed ? `${error.reason._tag}: ${error.message}` : undefined))
  )

const echo = Tool.layer(Tool.make("echo", { description: "Returns a constant." }), () => Effect.succeed("in memory"))

const inMemory: Workload = {
  name: "clients in memory",
  times: 10_000,
  warmUp: 500,
  run: (count) =>
    Effect.scoped(Effect.gen(function*() {
      const layer = McpServer.layer({ name: "soak", version: "1.0.0" }, echo)
      const server = Context.get(yield* Effect.orDie(Layer.build(layer)), McpServer.McpServer)
      return yield* repeat(count, 20, (n) =>
        openCallClose(InMemoryTransport.transport(server.serve), n, "in memory", true))
    }))
}

const overHttp = (name: string, transport: (url: string) => Transport): Workload => ({
  name,
  times: 5_000,
  warmUp: 30,
  timesWhenQuick: 500,
  run: (count) =>
    repeat(count, 16, (n) =>
      Effect.scoped(Effect.gen(function*() {
        const fault = faults[n % (2 * faults.length)]
        const server = yield* FaultyServer.http({
          revision: revisions[n % 2]!,
          resumable: n % 4 === 0,
          faults: fault === undefined ? [] : [Scenario.rule("request", fault)]
        })
        return yield* openCallClose(transport(server.url), n, `key ${n}`, fault === undefined)
      })))
})

const resumption = { initialDelay: 1, maxDelay: 5, maxAttempts: 3 }

const overFetch = overHttp("clients over HTTP, fetch", (url) => Http.transport({ url, resumption }))
const overNodeHttp = overHttp("clients over HTTP, node:http", (url) => NodeHttp.transport({ url, resumption }))

const overStdio: Workload = {
  name: "clients over stdio",
  times: 50,
  warmUp: 4,
  run: (count) =>
    repeat(count, 2, (n) =>
      Effect.scoped(Effect.gen(function*() {
        const fault = n % 2 === 0 ? undefined : n % 4 === 1 ? Scenario.cut(30) : { _tag: "StopReading" } as const
        const { args, command } = yield* FaultyServer.stdio({
          revision: revisions[n % 2]!,
          faults: fault === undefined ? [] : [Scenario.rule("request", fault)]
        })
        const transport = Stdio.transport({ command, args, shutdownTimeout: 250 })
        return yield* openCallClose(transport, n, `key ${n}`, fault === undefined)
      })))
}

const restarts = (revision: typeof revisions[number], transport: (url: string) => Transport): Workload => ({
  name: `server restarts, ${revision}`,
  times: 500,
  warmUp: 15,
  run: (count) =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* FaultyServer.http({ revision, faults: [] })
      const options = { limits, reconnect, revisions: [revision] }
      const client = yield* Client.make(transport(server.url), options).pipe(Effect.orDie)
      const problems: Array<string> = []
      for (let n = 0; n < count; n++) {
        // Every third restart happens during a call.
        const key = `restart ${n}`
        if (n % 3 === 0) {
          yield* Effect.forkScoped(Effect.ignore(client.callTool("slow", { key, ms: 20 })), { startImmediately: true })
        }
        yield* server.restart
        const listed = yield* Effect.result(client.listToolsPage())
        if (listed._tag === "Failure") {
          problems.push(`after restart ${n}: ${listed.failure.reason._tag}: ${listed.failure.message}`)
        }
        if (server.callCount(key) > 1) problems.push(`${key}: executed ${server.callCount(key)} times instead of once`)
      }
      if (server.restartCount !== count) problems.push(`${server.restartCount} restarts instead of ${count}`)
      return problems
    }))
})

/** About 20,000 clients and 2,000 restarts: three minutes on an idle machine. */
export const workloads: ReadonlyArray<Workload> = [
  inMemory,
  overFetch,
  overNodeHttp,
  overStdio,
  restarts("2025-11-25", (url) => NodeHttp.transport({ url, resumption })),
  restarts("2026-07-28", (url) => NodeHttp.transport({ url, resumption })),
  restarts("2025-11-25", (url) => Http.transport({ url, resumption })),
  restarts("2026-07-28", (url) => Http.transport({ url, resumption }))
]

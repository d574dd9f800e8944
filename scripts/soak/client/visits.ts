/**
 * What a host does that uses clients: it opens them by the thousand and closes them, and it loses a server again and again.
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

/** One thing that a host does so many times. */
export interface Visits {
  readonly name: string
  /** How often, in a thorough soak, and how often before it is counted what there is: what is made once has been made then. */
  readonly times: number
  readonly warmUp: number
  /** What a run of less than a tenth takes its part of, instead of `times`: for what takes long. */
  readonly few?: number
  /** Does it, and gives what was not as it should be. */
  readonly run: (times: number) => Effect.Effect<ReadonlyArray<string>>
}

const revisions = ["2025-11-25", "2026-07-28"] as const

/** Every second visit to a faulty server meets one of these faults. */
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

const times = (count: number, concurrency: number, one: (n: number) => Effect.Effect<string | undefined>) =>
  Effect.map(
    Effect.forEach(Array.from({ length: count }, (_, n) => n), one, { concurrency }),
    (wrong) => [...new Set(wrong.filter((what) => what !== undefined))]
  )

/** Opens a client, has it call, and closes it. With `call` the result is waited for; else the client closes in the middle. */
const visit = (transport: Transport, n: number, key: string, expected: boolean) =>
  Effect.scoped(Effect.gen(function*() {
    const client = yield* Client.make(transport, { limits, reconnect: false, revisions: [revisions[n % 2]!] })
    if (n % 3 === 0) yield* client.listTools()
    const called = client.callTool("echo", { key })
    if (n % 5 === 0) {
      yield* Effect.forkScoped(Effect.ignore(called), { startImmediately: true })
      return undefined
    }
    const { content } = yield* called
    return JSON.stringify(content).includes(key) ? undefined : `Another answer than ${key}: ${JSON.stringify(content)}`
  })).pipe(
    Effect.catch((error) => Effect.succeed(expected ? `${error.reason._tag}: ${error.message}` : undefined))
  )

const echo = Tool.layer(Tool.make("echo", { description: "Answers at once." }), () => Effect.succeed("in memory"))

const links: Visits = {
  name: "clients in memory",
  times: 10_000,
  warmUp: 500,
  run: (count) =>
    Effect.scoped(Effect.gen(function*() {
      const layer = McpServer.layer({ name: "soak", version: "1.0.0" }, echo)
      const server = Context.get(yield* Effect.orDie(Layer.build(layer)), McpServer.McpServer)
      return yield* times(count, 20, (n) => visit(InMemoryTransport.transport(server.serve), n, "in memory", true))
    }))
}

const overHttp = (name: string, transport: (url: string) => Transport): Visits => ({
  name,
  times: 5_000,
  warmUp: 30,
  few: 500,
  run: (count) =>
    times(count, 16, (n) =>
      Effect.scoped(Effect.gen(function*() {
        const fault = faults[n % (2 * faults.length)]
        const server = yield* FaultyServer.http({
          revision: revisions[n % 2]!,
          resumable: n % 4 === 0,
          faults: fault === undefined ? [] : [Scenario.rule("request", fault)]
        })
        return yield* visit(transport(server.url), n, `key ${n}`, fault === undefined)
      })))
})

const resumption = { initialDelay: 1, maxDelay: 5, maxAttempts: 3 }

const fetched = overHttp("clients over HTTP, by fetch", (url) => Http.transport({ url, resumption }))
const noded = overHttp("clients over HTTP, by node:http", (url) => NodeHttp.transport({ url, resumption }))

const processes: Visits = {
  name: "clients over stdio",
  times: 50,
  warmUp: 4,
  run: (count) =>
    times(count, 2, (n) =>
      Effect.scoped(Effect.gen(function*() {
        const fault = n % 2 === 0 ? undefined : n % 4 === 1 ? Scenario.cut(30) : { _tag: "StopReading" } as const
        const { args, command } = yield* FaultyServer.stdio({
          revision: revisions[n % 2]!,
          faults: fault === undefined ? [] : [Scenario.rule("request", fault)]
        })
        const timeouts = { closeTimeout: 100, termTimeout: 500 }
        return yield* visit(Stdio.transport({ command, args, ...timeouts }), n, `key ${n}`, fault === undefined)
      })))
}

const losses = (revision: typeof revisions[number], transport: (url: string) => Transport): Visits => ({
  name: `servers lost, ${revision}`,
  times: 500,
  warmUp: 15,
  run: (count) =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* FaultyServer.http({ revision, faults: [] })
      const options = { limits, reconnect, revisions: [revision] }
      const client = yield* Client.make(transport(server.url), options).pipe(Effect.orDie)
      const wrong: Array<string> = []
      for (let n = 0; n < count; n++) {
        // In the middle of a call, after it, and while nothing goes on.
        const key = `lost ${n}`
        if (n % 3 === 0) {
          yield* Effect.forkScoped(Effect.ignore(client.callTool("slow", { key, ms: 20 })), { startImmediately: true })
        }
        yield* server.restart
        const listed = yield* Effect.result(client.listTools())
        if (listed._tag === "Failure") {
          wrong.push(`After loss ${n}: ${listed.failure.reason._tag}: ${listed.failure.message}`)
        }
        if (server.callCount(key) > 1) wrong.push(`${key} was carried out ${server.callCount(key)} times`)
      }
      if (server.restartCount !== count) wrong.push(`The server was lost ${server.restartCount} times only`)
      return wrong
    }))
})

/** All of it: some 20,000 clients and 2,000 losses, in three minutes where nothing else runs. */
export const visits: ReadonlyArray<Visits> = [
  links,
  fetched,
  noded,
  processes,
  losses("2025-11-25", (url) => NodeHttp.transport({ url, resumption })),
  losses("2026-07-28", (url) => NodeHttp.transport({ url, resumption })),
  losses("2025-11-25", (url) => Http.transport({ url, resumption })),
  losses("2026-07-28", (url) => Http.transport({ url, resumption }))
]

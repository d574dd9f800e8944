/**
 * The cost of a notification, in PostgreSQL and in a node, by the number of nodes that listen, and the changes of sessions
 * that PostgreSQL commits in a second.
 */
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as Fleet from "@skein/server/Fleet"
import type * as EventBus from "@skein/server/EventBus"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { readFileSync } from "node:fs"
import { Client } from "pg"
import { encode } from "../../packages/fleet/src/internal/node/envelope.ts"
import { channelOf } from "../../packages/fleet/src/internal/postgres/database.ts"
import { join } from "../../packages/fleet/src/internal/postgres/nodes.ts"
import { makeRecords } from "../../packages/fleet/src/internal/postgres/records.ts"
import { cpuTime } from "../lib/machine.ts"
import { execute } from "../tasks/counters.ts"
import type { Databases } from "../tasks/databases.ts"
import { connect } from "./database.ts"

export interface Fanout {
  readonly listeners: number
  /**
   * Processor time of PostgreSQL in microseconds for a notification to all listeners, one after the other and from several
   * connections at once, and for one to none of them.
   */
  readonly all: number
  readonly atOnce: number
  readonly none: number
  /** Memory of a connection that listens, in bytes: its part of what it shares with others, and its own. */
  readonly memory: number
}

const channel = channelOf("default")

const memoryOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "latin1"))?.[1] ?? Number.NaN) * 1_024

// How many connections send at once.
const senderCount = 8

/** Sends notifications, each in a transaction, while a number of connections listen. */
export const measureFanout = async (
  databases: Databases,
  sizes: ReadonlyArray<number>,
  count: number
): Promise<ReadonlyArray<Fanout>> => {
  const url = await databases.create("postgres")
  const open = async (): Promise<Client> => {
    const client = new Client({ connectionString: url })
    await client.connect()
    return client
  }
  const senders = await Promise.all(Array.from({ length: senderCount }, open))
  const clients: Array<Client> = []
  const pids: Array<number> = []
  const received: Array<number> = []
  const send = async (to: string, from: ReadonlyArray<Client>): Promise<number> => {
    received.fill(0)
    let sent = 0
    const before = databases.cpu()
    await Promise.all(from.map(async (sender) => {
      while (sent < count) await sender.query("SELECT pg_notify($1, $2)", [to, `${sent++}${"x".repeat(150)}`])
    }))
    // A listener that was woken and has read everything answers; the others have, too, when they are asked.
    for (const client of clients) await client.query("SELECT 1")
    if (to === channel && received.some((number) => number !== count)) throw new Error("a notification was lost")
    return (databases.cpu() - before) * 1_000 / count
  }
  try {
    const found: Array<Fanout> = []
    for (const size of sizes) {
      while (clients.length < size) {
        const client = await open()
        const index = clients.push(client) - 1
        received.push(0)
        client.on("notification", () => void received[index]!++)
        pids.push((await client.query<{ readonly pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]!.pid)
        await client.query(`LISTEN ${channel}`)
        await client.query(`LISTEN ${channel}_${index}`)
      }
      const idle = databases.cpu()
      for (const client of clients) await client.query("SELECT 1")
      const polled = (databases.cpu() - idle) * 1_000 / count
      found.push({
        listeners: size,
        all: await send(channel, senders.slice(0, 1)) - polled,
        atOnce: await send(channel, senders) - polled,
        none: await send("other", senders.slice(0, 1)) - polled,
        memory: pids.reduce((sum, pid) => sum + memoryOf(pid), 0) / pids.length
      })
    }
    return found
  } finally {
    for (const client of [...clients, ...senders]) await client.end()
  }
}

/** The processor time of a node for each message that it receives, in microseconds. */
export const measureReceipts = (
  databases: Databases,
  count: number
): Effect.Effect<number, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const url = yield* Effect.promise(() => databases.create("postgres"))
    const context: Context.Context<Fleet.Fleet | EventBus.EventBus> = yield* Layer.build(
      PostgresFleet.layer({ url, maxConnections: 2 })
    )
    let received = 0
    yield* Context.get(context, Fleet.Fleet).receive({ message: () => void received++, gap: () => {} })
    const text = encode({
      from: 1_000_000,
      content: {
        _tag: "Session",
        message: { _tag: "Changed", id: "1-abc", change: { isInitialized: true } }
      }
    })
    // A transaction sends the same text only once.
    const notify = () =>
      execute(url, `SELECT count(pg_notify('${channel}', '${text}' || repeat(' ', n))) FROM generate_series(1, 100) n`)
    const before = cpuTime()
    for (let batch = 0; batch < count / 100; batch++) {
      yield* Effect.promise(notify)
      while (received < (batch + 1) * 100) yield* Effect.sleep(1)
    }
    return (cpuTime() - before) * 1_000 / count
  })

export interface Commits {
  /** How many sessions are opened in a second, by 16 connections, and how many are changed. */
  readonly creates: number
  readonly changes: number
}

/** Opens sessions, and changes them, in concurrent transactions, with `synchronous_commit` on and off. */
export const measureCommits = (
  databases: Databases,
  count: number
): Effect.Effect<{ readonly on: Commits; readonly off: Commits }, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const measure = (isSynchronous: boolean) =>
      Effect.scoped(Effect.gen(function*() {
        const { sql, url } = yield* connect(databases)
        const name = new URL(url).pathname.slice(1)
        yield* sql.unsafe(`ALTER DATABASE ${name} SET synchronous_commit = ${isSynchronous ? "on" : "off"}`)
        // Its settings are those of connections that begin afterwards.
        const settings = yield* Effect.promise(() => connected(url))
        if (settings !== (isSynchronous ? "on" : "off")) throw new Error(`synchronous_commit is ${settings}`)
        const { node } = yield* join(sql, "default", 3_600_000)
        const records = makeRecords(sql, "default", node, channel)
        const ids = Array.from({ length: count }, (_, n) => `session ${n}`)
        const timed = <E>(run: (id: string) => Effect.Effect<unknown, E>) =>
          Effect.gen(function*() {
            const begin = performance.now()
            yield* Effect.forEach(ids, run, { concurrency: 16, discard: true })
            return count / (performance.now() - begin) * 1_000
          })
        const create = (id: string) =>
          records.create(
            {
              id,
              principalId: undefined,
              revision: "2025-11-25",
              info: { name: "client", version: "1" },
              capabilities: {},
              isInitialized: false,
              logLevel: undefined,
              subscriptions: [],
              listensAt: node
            },
            { maxSessions: 1e9, maxSessionsPerPrincipal: 1e9, idleTimeout: 1_800_000 },
            id
          )
        return {
          creates: yield* timed(create),
          changes: yield* timed((id) => records.change(id, { isInitialized: true }, "{}", true))
        }
      }))
    return { on: yield* measure(true), off: yield* measure(false) }
  })

const connected = async (url: string): Promise<string> => {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<{ readonly synchronous_commit: string }>("SHOW synchronous_commit")
  await client.end()
  return rows[0]!.synchronous_commit
}

/** A fleet on PostgreSQL whose connections are cut, and whose database restarts. */
import { describe, expect, it } from "@effect/vitest"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import type { Message } from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Client } from "pg"
import { afterAll, beforeAll } from "vitest"
import { type Postgres, required, startPostgres, timeLimits, unavailable } from "../../../sql/test/postgres.ts"
import { type Node, open, start, until, untilEffect } from "../kit.ts"

const skipped = unavailable !== undefined && !required

const query = (url: string, text: string, values: ReadonlyArray<unknown> = []) =>
  Effect.promise(async () => {
    const client = new Client({ connectionString: url, ...timeLimits })
    client.on("error", () => {})
    await client.connect()
    try {
      return (await client.query(text, [...values])).rows as ReadonlyArray<Readonly<Record<string, unknown>>>
    } finally {
      await client.end()
    }
  })

const texts = ({ arrived }: Node): Array<string> =>
  (arrived as ReadonlyArray<Message>).flatMap((message) => message._tag === "Received" ? [message.text] : [])

const numbers = (count: number) => Array.from({ length: count }, (_, n) => `${n}`)

describe.skipIf(skipped)(skipped ? `outages of PostgreSQL (${unavailable})` : "outages of PostgreSQL", () => {
  let postgres: Postgres
  beforeAll(async () => {
    if (unavailable !== undefined) throw new Error(unavailable)
    postgres = await startPostgres()
  })
  afterAll(() => postgres?.stop())

  const nodes = (count: number, leaseTimeout: "5 seconds" | "1 minute" = "5 seconds") =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres.createDatabase())
      const all: Array<Node> = []
      for (let n = 0; n < count; n++) {
        all.push(yield* start(PostgresFleet.layer({ url, applicationName: `node ${n}`, leaseTimeout })))
      }
      return { url, all: all as [Node, Node, Node] }
    })

  it.live("reports a gap, notifies of each list once, and delivers what was sent, when LISTEN was cut", () =>
    Effect.gen(function*() {
      const { all: [a, b], url } = yield* nodes(2, "1 minute")
      const { id } = yield* open(a)
      yield* b.fleet.find(id, undefined)
      a.fleet.send(b.fleet.node, { _tag: "Received", id, text: "before" })
      yield* until("a message arrives", () => texts(b).length === 1)
      yield* query(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'node 1' AND query LIKE 'LISTEN%'"
      )
      for (const text of numbers(200)) {
        a.fleet.send(b.fleet.node, { _tag: "Received", id, text })
        yield* Effect.sleep(1)
      }
      yield* a.fleet.change(id, { logLevel: "error" })
      yield* until("the connection is back", () => b.gaps === 1)
      yield* until("all messages have arrived", () => texts(b).length >= 201)
      expect(texts(b).toSorted()).toEqual(["before", ...numbers(200)].toSorted())
      const lists = b.arrived.flatMap((change) => change._tag === "List" ? [change.kind] : [])
      expect(lists.toSorted()).toEqual(["prompts", "resources", "tools"])
      expect([a.gaps, b.gaps]).toEqual([0, 1])
      expect((yield* b.fleet.find(id, undefined))?.logLevel).toBe("error")
    }).pipe(Effect.scoped))

  it.live("fails with FleetError while the database is down, and loses nothing that was acknowledged", () =>
    Effect.gen(function*() {
      const { all } = yield* nodes(3)
      const { id } = yield* open(all[0], "alice")
      for (const { fleet } of all) yield* fleet.find(id, "alice")
      const acknowledged: Array<string> = []
      let failed = 0
      let stopped = false
      const subscribing = yield* Effect.forkScoped(Effect.gen(function*() {
        for (let n = 0; !stopped; n++) {
          const subscribe = `test://${n}`
          const { fleet } = all[n % 3]!
          const isStored = yield* Effect.match(fleet.change(id, { subscribe }), {
            onFailure: ({ _tag }) => {
              if (_tag === "FleetError") failed++
              return false
            },
            onSuccess: () => true
          })
          if (isStored) acknowledged.push(subscribe)
          else yield* Effect.sleep(20)
        }
      }))
      yield* until("some changes are stored", () => acknowledged.length > 5)
      for (const text of numbers(20)) all[0].fleet.send(all[1].fleet.node, { _tag: "Received", id, text })
      yield* Effect.promise(() => postgres.kill())
      yield* until("a change has failed", () => failed > 0)
      const failure = yield* Effect.flip(all[1].fleet.find(id, "alice"))
      expect(failure._tag).toBe("FleetError")
      // A message that a client's request was answered for waits.
      for (const text of numbers(40).slice(20)) all[2].fleet.send(all[1].fleet.node, { _tag: "Received", id, text })
      yield* Effect.promise(() => postgres.start())
      const before = acknowledged.length
      yield* until("changes are stored again", () => acknowledged.length > before + 5)
      stopped = true
      yield* Fiber.join(subscribing)
      const { subscriptions } = (yield* all[2].fleet.find(id, "alice"))!
      expect(subscriptions).toEqual(expect.arrayContaining(acknowledged))
      yield* until("all nodes are connected again", () => all.every(({ gaps }) => gaps > 0))
      yield* until("all messages have arrived", () => texts(all[1]).length >= 40)
      expect(texts(all[1]).toSorted()).toEqual(numbers(40).toSorted())
      const serving = () => all.every(({ fleet }) => all.every((other) => fleet.isServing(other.fleet.node)))
      yield* until("all nodes know each other", serving)
    }).pipe(Effect.scoped))

  it.live("continues with its number after its lease has ended", () =>
    Effect.gen(function*() {
      const { all: [a, b], url } = yield* nodes(2)
      yield* query(url, "DELETE FROM skein_fleet_nodes WHERE node = $1", [b.fleet.node])
      yield* until("the others take it for gone, or it has a lease again", () => b.gaps > 0)
      yield* until("it is known again", () => a.fleet.isServing(b.fleet.node))
      const later = yield* start(PostgresFleet.layer({ url }))
      expect(later.fleet.node).toBeGreaterThan(b.fleet.node)
    }).pipe(Effect.scoped))

  it.live("stops while the database is down", () =>
    Effect.gen(function*() {
      const { all: [a, b] } = yield* nodes(2)
      yield* Effect.promise(() => postgres.kill())
      for (const { fleet } of [a, b]) fleet.broadcast({ _tag: "Missed", id: "x" })
      yield* Effect.ensuring(Effect.all([a.close, b.close]), Effect.promise(() => postgres.start()))
    }).pipe(Effect.scoped))

  it.live("refuses to start with a number above maxNode", () =>
    Effect.gen(function*() {
      const { url } = yield* nodes(1)
      yield* query(url, "SELECT setval('skein_fleet_nodes_node_seq', 1048575)")
      const error = yield* Effect.flip(start(PostgresFleet.layer({ url })))
      expect(error.message).toContain("the number of this node would be 1048576, and the largest is 1048575")
      expect(yield* query(url, "SELECT node FROM skein_fleet_nodes WHERE node > 1048575")).toEqual([])
    }).pipe(Effect.scoped))

  it.live("creates the tables once for nodes that start together, and starts without the right to with migrate: false", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres.createDatabase())
      const error = yield* Effect.flip(start(PostgresFleet.layer({ url, migrate: false })))
      expect(error.message).toContain("version 0, and this program needs version 1: call PostgresFleet.migrate")
      const together = Array.from({ length: 4 }, () => start(PostgresFleet.layer({ url, maxConnections: 2 })))
      const all = yield* Effect.all(together, { concurrency: "unbounded" })
      expect(all.map(({ fleet }) => fleet.node).toSorted()).toEqual([1, 2, 3, 4])
      yield* query(
        url,
        "CREATE ROLE app LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO app;" +
          "GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO app"
      )
      const plain = yield* start(PostgresFleet.layer({ url: url.replace("postgres@", "app@"), migrate: false }))
      const { id } = yield* open(plain, "alice")
      expect(yield* all[0]!.fleet.find(id, "alice")).toBeDefined()
    }).pipe(Effect.scoped))

  it.live("deletes the rows of long messages, and of nodes that have gone", () =>
    Effect.gen(function*() {
      const { all: [a], url } = yield* nodes(1)
      a.fleet.broadcast({ _tag: "Received", id: "x", text: "x".repeat(10_000) })
      const rows = query(url, "SELECT id FROM skein_fleet_payloads")
      yield* untilEffect("the message is stored", Effect.map(rows, ({ length }) => length === 1))
      yield* query(url, "UPDATE skein_fleet_payloads SET expires_at = 0")
      yield* query(url, "INSERT INTO skein_fleet_nodes (namespace, expires_at) VALUES ('default', 0)")
      yield* untilEffect("the message is deleted", Effect.map(rows, ({ length }) => length === 0))
      const left = query(url, "SELECT node FROM skein_fleet_nodes")
      yield* untilEffect("the node is deleted", Effect.map(left, ({ length }) => length === 1))
    }).pipe(Effect.scoped))
})

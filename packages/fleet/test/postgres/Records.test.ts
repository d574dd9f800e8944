/** The statements of a fleet on PostgreSQL that must stay cheap with many sessions. */
import { expect, it } from "@effect/vitest"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as PgClient from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { type Parameter, pointQueries } from "../../src/internal/postgres/database.ts"
import { join, makeNodes } from "../../src/internal/postgres/nodes.ts"
import { makeRecords } from "../../src/internal/postgres/records.ts"

describePostgres("the statements of a fleet", (postgres) => {
  const connect = Effect.gen(function*() {
    const url = yield* Effect.promise(() => postgres().createDatabase())
    const sql = yield* PgClient.make({ url, maxConnections: 2, settings: pointQueries })
    yield* Effect.provideService(PostgresFleet.migrate, SqlClient.SqlClient, sql)
    const { node } = yield* join(sql, "shop", 60_000)
    return { sql, node }
  }).pipe(Effect.provide(Reactivity.layer))

  /** Adds sessions that expire one after the other. */
  const insert = (sql: SqlClient.SqlClient, count: number, client: string) =>
    sql`INSERT INTO skein_fleet_sessions SELECT 'shop', ${client} || n, '', ${client}, '{}', TRUE, NULL, '{}', 1, '{1}',
      3600000, extract(epoch FROM now()) * 1000 + 3600000 + n FROM generate_series(1, ${count}::integer) n`

  it.effect("write a record that is used once in a tenth of its idle time", () =>
    Effect.gen(function*() {
      const { node, sql } = yield* connect
      yield* insert(sql, 1, "a")
      const records = makeRecords(sql, "shop", node, "channel")
      const left = Effect.map(
        sql<{ readonly left: number }>`SELECT (expires_at - extract(epoch FROM now()) * 1000)::float8 AS left
          FROM skein_fleet_sessions`,
        ([row]) => row!.left / 60_000
      )
      const pass = (minutes: number) =>
        sql`UPDATE skein_fleet_sessions SET expires_at = expires_at - ${minutes * 60_000}`
      yield* pass(1)
      yield* records.touch(["a1"])
      const touched = yield* left
      // 60 minutes, and a tenth: slow machines take some of it, and whole milliseconds are rounded up.
      expect(touched).toBeGreaterThan(61)
      expect(touched).toBeLessThan(66.1)
      yield* records.touch(["a1"])
      expect(yield* left).toBeLessThanOrEqual(touched)
      yield* pass(10)
      yield* records.touch(["a1"])
      expect(yield* left).toBeGreaterThan(61)
      // A record that has expired stays so.
      yield* pass(100)
      yield* records.touch(["a1"])
      expect(yield* left).toBeLessThan(0)
    }).pipe(Effect.scoped))

  it.effect.each([
    { state: "before PostgreSQL knows how many there are", isKnown: false },
    { state: "with a plan for few", isKnown: true }
  ])("find sessions without reading the others: $state", ({ isKnown }) =>
    Effect.gen(function*() {
      const { node, sql } = yield* connect
      if (isKnown) {
        yield* insert(sql, 1, "b")
        yield* sql`VACUUM ANALYZE skein_fleet_sessions`
      }
      const plans: Array<string> = []
      const unsafe = ((text: string, parameters: ReadonlyArray<Parameter>) => {
        const values = parameters.map((value) => typeof value === "string" ? `'${value}'` : String(value))
        const explain = (mode: string) =>
          Effect.gen(function*() {
            yield* sql.unsafe(`SET LOCAL plan_cache_mode = ${mode}`)
            yield* sql.unsafe(`PREPARE statement AS ${text}`)
            const rows = yield* sql.unsafe<{ readonly "QUERY PLAN": string }>(
              `EXPLAIN EXECUTE statement (${values.join()})`
            )
            yield* sql.unsafe("DEALLOCATE statement")
            plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"))
          })
        const both = Effect.andThen(explain("force_generic_plan"), explain("force_custom_plan"))
        return Effect.andThen(Effect.orDie(sql.withTransaction(both)), sql.unsafe(text, parameters))
      }) as typeof sql.unsafe
      const records = makeRecords(Object.assign(Object.create(sql) as typeof sql, { unsafe }), "shop", node, "channel")
      yield* records.find("a1", "ann")
      yield* records.change("a1", { logLevel: "debug" }, "{}", true)
      yield* records.end("a1", "{}")
      yield* records.touch(["a1"])
      expect(plans).toHaveLength(8)
      for (const plan of plans) {
        const scans = plan.match(/\S+ Scan.* on skein_fleet_sessions/g)!.filter((scan) => !scan.startsWith("Tid Scan"))
        expect(scans).toEqual([expect.stringMatching(/^Index Scan using skein_fleet_sessions_pkey/)])
        expect(plan).toMatch(/Index Cond: \(id = /)
      }
    }).pipe(Effect.scoped))

  it.effect("find expired records without reading the others", () =>
    Effect.gen(function*() {
      const { node, sql } = yield* connect
      yield* insert(sql, 5_000, "a")
      yield* sql`INSERT INTO skein_fleet_payloads SELECT n::text, '', extract(epoch FROM now()) * 1000 + 3600000
        FROM generate_series(1, 5000) n`
      yield* sql`UPDATE skein_fleet_sessions SET expires_at = 1 WHERE id IN ('a7', 'a8', 'a9')`
      yield* sql`ANALYZE`
      const plans: Array<string> = []
      const unsafe = ((text: string, parameters: ReadonlyArray<unknown>) =>
        Effect.tap(
          sql.unsafe<{ readonly "QUERY PLAN": unknown }>(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, parameters),
          ([row]) => Effect.sync(() => plans.push(JSON.stringify(row!["QUERY PLAN"])))
        )) as typeof sql.unsafe
      yield* makeNodes(Object.assign(Object.create(sql) as typeof sql, { unsafe }), "shop", node, 60_000).clean(
        undefined
      )
      expect(plans).toHaveLength(2)
      for (const plan of plans) {
        const rows = Array.from(
          plan.matchAll(/"(?:Actual Rows|Rows Removed by Filter)":([\d.]+)/g),
          ([, count]) => Number(count)
        )
        expect(Math.max(...rows)).toBeLessThan(10)
      }
      expect(yield* sql`SELECT id FROM skein_fleet_sessions`).toHaveLength(4_997)
    }).pipe(Effect.scoped))

  it.effect("delete all sessions above the bound at once, those of the client with the most", () =>
    Effect.gen(function*() {
      const { node, sql } = yield* connect
      yield* insert(sql, 5, "few")
      yield* insert(sql, 3_000, "many")
      const ended = yield* makeNodes(sql, "shop", node, 60_000).clean(15)
      expect(ended).toHaveLength(2_990)
      const rows = yield* sql<{ readonly id: string }>`SELECT id FROM skein_fleet_sessions ORDER BY expires_at, id`
      const latest = Array.from({ length: 10 }, (_, n) => `many${2_991 + n}`)
      expect(rows.map(({ id }) => id)).toEqual(["few1", "few2", "few3", "few4", "few5", ...latest])
    }).pipe(Effect.scoped))

  it.effect("count the sessions seldom if that takes long", () =>
    Effect.gen(function*() {
      const { node, sql } = yield* connect
      yield* insert(sql, 1, "a")
      let counts = 0
      // Counting takes 2 seconds.
      const unsafe = ((text: string, parameters: ReadonlyArray<unknown>) => {
        const statement = sql.unsafe(text, parameters)
        if (!text.includes("COUNT(*)")) return statement
        counts++
        return Effect.andThen(TestClock.adjust("2 seconds"), statement)
      }) as typeof sql.unsafe
      const nodes = makeNodes(Object.assign(Object.create(sql) as typeof sql, { unsafe }), "shop", node, 60_000)
      const pass = (seconds: number) => sql`UPDATE skein_fleet_keys SET counted_at = counted_at - ${seconds * 1_000}`
      yield* nodes.clean(10)
      expect(counts).toBe(1)
      yield* pass(20)
      yield* nodes.clean(10)
      expect(counts).toBe(1)
      yield* pass(21)
      yield* nodes.clean(10)
      expect(counts).toBe(2)
    }).pipe(Effect.scoped))
})

import { describe, it } from "@effect/vitest"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Client } from "pg"
import { afterAll, expect } from "vitest"
import { required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { durable, ended, handlers, submit } from "./kit.ts"

const server = unavailable === undefined || required ? await startPostgres() : undefined
afterAll(() => server?.stop())

/** Workers of one database, and the steps that they run. */
const makeWorkers = Effect.gen(function*() {
  const url = yield* Effect.promise(() => server!.createDatabase())
  let running = 0
  const steps = { most: 0, starts: new Map<string, Array<number>>() }
  const work = (name: string, milliseconds: number) =>
    durable(({ key }) =>
      Step.run(name, {}, () =>
        Effect.gen(function*() {
          steps.most = Math.max(steps.most, ++running)
          const starts = steps.starts.get(String(key)) ?? []
          steps.starts.set(String(key), starts)
          starts.push(yield* Clock.currentTimeMillis)
          yield* Effect.ensuring(Effect.sleep(milliseconds), Effect.sync(() => void running--))
          return "done"
        }))
    )
  const start = Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const engine = yield* Layer.buildWithScope(PostgresTasks.layer({ url, leaseTimeout: "2 seconds" }), scope)
    const tools = { bake: work("bake", 100), call: work("call", 0) }
    yield* Scope.provide(Context.get(engine, TaskEngine).runTasks(handlers(tools)), scope)
    return { engine, stop: Scope.close(scope, Exit.void) }
  })
  return { steps, start, url }
})

describe.skipIf(server === undefined)("PostgreSQL · several workers", () => {
  it.live(
    "run no more tasks of a tool together than its concurrency, while one stops and connections are lost",
    () =>
      Effect.gen(function*() {
        const { start, steps, url } = yield* makeWorkers
        const first = yield* start
        const second = yield* start
        yield* Context.get(first.engine, TaskEngine).pace(new Map([["bake", { concurrency: 3 }]]))
        const tasks = yield* Effect.forEach(
          Array.from({ length: 60 }),
          () => Effect.provideContext(submit("bake"), second.engine),
          { concurrency: 10 }
        )
        yield* start
        yield* Effect.sleep("300 millis")
        yield* first.stop
        yield* Effect.promise(async () => {
          const client = new Client({ connectionString: url })
          await client.connect()
          await client.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
          )
          await client.end()
        })
        // A read on a connection that has just been closed fails, and may be repeated.
        const again = { schedule: Schedule.spaced("50 millis"), times: 100 }
        for (const { id } of tasks) yield* Effect.retry(Effect.provideContext(ended(id), second.engine), again)
        expect(steps.most).toBe(3)
      }).pipe(Effect.scoped),
    60_000
  )

  it.live("start no more tasks of a key in a period than its rate allows", () =>
    Effect.gen(function*() {
      const { start, steps, url } = yield* makeWorkers
      const workers = yield* Effect.all([start, start, start])
      const [{ engine }] = workers
      const query = (text: string) =>
        Effect.promise(async () => {
          const client = new Client({ connectionString: url })
          await client.connect()
          const { rows } = await client.query<{ readonly rate_key: string; readonly at: string }>(text)
          await client.end()
          return rows
        })
      // The workers delete old starts. A step may start long after its task was claimed.
      yield* query("CREATE TABLE claims (rate_key TEXT, at BIGINT)")
      yield* query(`CREATE FUNCTION note_claim() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO claims VALUES (NEW.rate_key, NEW.started_at); RETURN NEW; END $$`)
      yield* query(
        "CREATE TRIGGER claimed AFTER INSERT ON skein_task_starts FOR EACH ROW EXECUTE FUNCTION note_claim()"
      )
      yield* Context.get(engine, TaskEngine).pace(
        new Map([["call", { perKey: { rate: { limit: 4, periodMs: 1000 } } }]])
      )
      const tasks = yield* Effect.forEach(
        Array.from({ length: 24 }, (_, index) => index),
        (index) => {
          const key = `key ${index % 2}`
          return Effect.provideContext(submit("call", { args: { key }, queueKey: key }), workers[index % 3]!.engine)
        },
        { concurrency: 8 }
      )
      for (const { id } of tasks) yield* Effect.provideContext(ended(id), engine)
      expect([...steps.starts.values()].map((starts) => starts.length)).toEqual([12, 12])
      const claims = Map.groupBy(
        yield* query("SELECT rate_key, at FROM claims ORDER BY at"),
        ({ rate_key }) => rate_key
      )
      expect(claims.size).toBe(2)
      for (const rows of claims.values()) {
        expect(rows).toHaveLength(12)
        const gaps = rows.slice(4).map(({ at }, index) => Number(at) - Number(rows[index]!.at))
        expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1000)
      }
    }).pipe(Effect.scoped), 60_000)

  it.live("pause and resume a tool for all of them", () =>
    Effect.gen(function*() {
      const { start } = yield* makeWorkers
      const first = yield* start
      const second = yield* start
      expect(yield* Context.get(first.engine, TaskAdmin).pause("bake")).toBe(true)
      const { id } = yield* Effect.provideContext(submit("bake"), second.engine)
      yield* Effect.sleep("1500 millis")
      const { inspect, resume } = Context.get(second.engine, TaskAdmin)
      expect((yield* inspect(id))!.place).toMatchObject({ _tag: "Ready", heldBy: "pause", runs: 0 })
      expect(yield* resume("bake")).toBe(true)
      const resumed = performance.now()
      yield* Effect.provideContext(ended(id), first.engine)
      expect(performance.now() - resumed).toBeLessThan(10_000)
    }).pipe(Effect.scoped), 60_000)
})

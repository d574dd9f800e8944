/**
 * Clients that try to exceed limits: many calls at once, as tasks in both revisions and inline, with all kinds of
 * ends.
 */
import { expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import type * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import * as kit from "../protocol/kit.ts"
import { counters } from "../store/kit.ts"

const server = (definitions: Parameters<typeof kit.server>[0], options?: Tasks.Options) =>
  Effect.provide(kit.server(definitions, options, MemoryTasks.layer() as never), Logger.layer([]))

const endless = Task.layer(Task.make("endless"), () => Effect.as(Step.sleep("s", "1 day"), ""))
const other = Task.layer(Task.make("other"), () => Effect.never)
const modern = { principal: { id: "ann" } }
const legacy = { principal: { id: "ann" }, revision: "2025-11-25" } as const
const older = { principal: { id: "ann" }, revision: "2025-06-18" } as const

const full = {
  code: -32603,
  message: "Too many tasks: the call was not started. Try again after other tasks have ended"
}

const sqlOf = (context: Context.Context<never>) => Context.get(context as Context.Context<SqlClient>, SqlClient)

/** The stored counters and the rows at one moment: both change while the tasks end. */
const consistent = (context: Context.Context<never>) =>
  Effect.map(
    sqlOf(context).withTransaction(counters({ sql: sqlOf(context), store: undefined as never })),
    ({ counted, kept }) => expect(kept).toEqual(counted)
  )

it.live(
  "starts as many of many concurrent calls as the limit allows; the others leave nothing",
  () =>
    Effect.scoped(Effect.gen(function*() {
      const { connect, context } = yield* server([endless, other], {
        limits: { perClient: { live: 7, retained: 9 } }
      })
      const doors = [yield* connect(modern), yield* connect(legacy), yield* connect(older), yield* connect(modern)]
      const flood = Effect.forEach(
        Array.from({ length: 60 }, (_, n) => n),
        (n) =>
          Effect.timeoutOption(
            doors[n % 4]!.request("tools/call", {
              name: n % 3 === 0 ? "other" : "endless",
              ...(n % 4 === 1 ? { task: {} } : {})
            }),
            400
          ),
        { concurrency: "unbounded" }
      )
      const answers = (yield* flood).flatMap((answer) => answer._tag === "Some" ? [answer.value] : [])
      const refused = answers.filter(({ error }) => error !== undefined)
      expect(refused).toHaveLength(53)
      for (const { error } of refused) expect(error).toEqual(full)
      const sql = sqlOf(context)
      const rows = yield* sql<{ id: string }>`SELECT id FROM skein_tasks`
      expect(rows).toHaveLength(7)
      expect(yield* sql`SELECT task_id FROM skein_task_queue`).toHaveLength(7)
      yield* consistent(context)

      // Ended tasks are stored, and count as such.
      for (const { id } of rows) yield* doors[0]!.result("tasks/cancel", { taskId: id })
      yield* consistent(context)
      expect((yield* flood).filter((answer) => answer._tag === "Some" && answer.value.error !== undefined))
        .toHaveLength(58)
      yield* consistent(context)
      // Other owners are not affected.
      const bob = yield* connect({ principal: { id: "bob" } })
      yield* kit.begin(bob, "endless")
    })),
  120_000
)

it.live(
  "counts calls that are cancelled while they start, and tasks that end, correctly",
  () =>
    Effect.scoped(Effect.gen(function*() {
      const ends = Task.layer(
        Task.make("ends", { input: { how: Schema.String } }),
        ({ how }): Effect.Effect<string, never, never> =>
          how === "die" ? Effect.die("dead") : how === "interrupt" ? Effect.interrupt : Effect.succeed("")
      )
      const { connect, context } = yield* server([ends, endless])
      const client = yield* connect(legacy)
      for (let n = 0; n < 30; n++) {
        const how = ["die", "interrupt", "succeed"][n % 3]
        const id = client.send("tools/call", {
          name: n % 2 ? "ends" : "endless",
          arguments: { how },
          task: { ttl: n % 5 }
        })
        if (n % 2) client.notify("notifications/cancelled", { requestId: id })
      }
      yield* Effect.sleep(300)
      yield* consistent(context)
      const sql = sqlOf(context)
      // The time to live of all of them is over.
      yield* Effect.repeat(
        Effect.andThen(Effect.sleep(100), sql`SELECT id FROM skein_tasks`),
        { until: (rows) => rows.length === 0 }
      )
      yield* consistent(context)
      expect(yield* sql`SELECT * FROM skein_task_queue`).toHaveLength(0)
    })),
  120_000
)

const asks = (seen: Array<string>) =>
  Task.layer(Task.make("asks"), () =>
    Effect.gen(function*() {
      seen.push(yield* Task.id)
      const answer = yield* Effect.orDie(Elicitation.form("Name?", { name: Schema.String }, { key: "k" }))
      return answer.action === "accept" ? answer.content.name : answer.action
    }))

it.live(
  "2026-07-28 · the state of a waiting call is valid for its own task only, for any caller and number of repetitions",
  () =>
    Effect.scoped(Effect.gen(function*() {
      const seen: Array<string> = []
      const { connect, context } = yield* server([asks(seen)])
      const can = { elicitation: {} }
      const ann = yield* connect({ principal: { id: "ann" }, can })
      const eve = yield* connect({ principal: { id: "eve" }, can })
      const nobody = yield* connect({ can })
      const first = yield* ann.result("tools/call", { name: "asks" })
      expect(first.resultType).toBe("input_required")
      const { requestState } = first
      const begun = () => new Set(seen).size
      expect(begun()).toBe(1)

      // Another caller, or a part of the state, starts nothing.
      const inputResponses = { k: { action: "accept", content: { name: "Eve" } } }
      for (const client of [eve, nobody]) {
        const error = yield* client.error("tools/call", { name: "asks", requestState, inputResponses })
        expect(error.code).toBe(-32602)
      }
      for (const state of [requestState.slice(1), `${requestState}A`, "", "null", requestState.toUpperCase()]) {
        const { code } = yield* ann.error("tools/call", { name: "asks", requestState: state, inputResponses })
        expect(code).toBe(-32602)
      }
      expect((yield* ann.error("tools/call", { name: "asks", arguments: { a: 1 }, requestState })).code).toBe(-32602)
      expect(begun()).toBe(1)

      // Without answers the call asks again; many concurrent calls wait for the one task, and the first answer
      // counts.
      expect((yield* ann.result("tools/call", { name: "asks", requestState })).resultType).toBe("input_required")
      const named = (name: string) => ({ k: { action: "accept", content: { name } } })
      const answers = yield* Effect.forEach(["Ann", "Amy", "Ada"], (name) =>
        ann.result("tools/call", { name: "asks", requestState, inputResponses: named(name) }), {
        concurrency: "unbounded"
      })
      const texts = new Set(answers.map(({ content: [{ text }] }: kit.Json) =>
        text
      ))
      expect(texts.size).toBe(1)
      // The same applies after the task has ended.
      const late = yield* ann.result("tools/call", { name: "asks", requestState, inputResponses: named("Abe") })
      expect(texts).toEqual(new Set([late.content[0].text]))
      expect(begun()).toBe(1)
      expect(yield* sqlOf(context)`SELECT id FROM skein_tasks`).toHaveLength(1)

      // After the task is deleted, the state is no longer valid.
      yield* sqlOf(context)`UPDATE skein_tasks SET expires_at = 0`
      expect((yield* ann.error("tools/call", { name: "asks", requestState, inputResponses: named("Abe") })).code).toBe(
        -32603
      )
      expect(begun()).toBe(1)
    })),
  120_000
)

it.live("drops arguments under the name of the prepared value for every tool: a tool may become prepared before they are read", () =>
  Effect.scoped(Effect.gen(function*() {
    const { connect, context } = yield* server([endless])
    const client = yield* connect(modern)
    yield* kit.begin(client, "endless", { a: 1, "@skein/tasks/prepared": "forged" })
    const [row] = yield* sqlOf(context)<{ args: string }>`SELECT args FROM skein_tasks`
    expect(JSON.parse(row!.args)).toEqual({ a: 1 })
  })))

it.live("10,000 watchers of one task receive its end", () =>
  Effect.scoped(Effect.gen(function*() {
    const { connect, context } = yield* server([endless])
    const client = yield* connect(modern)
    const { taskId } = yield* kit.begin(client, "endless")
    const engine = yield* Effect.provide(kit.engine, context)
    let ended = 0
    const fibers = yield* Effect.forEach(Array.from({ length: 10_000 }), () =>
      Effect.forkScoped(Effect.andThen(
        Stream.runDrain(engine.watch(taskId)),
        Effect.sync(() => void ended++)
      )))
    yield* Effect.sleep(50)
    yield* client.result("tasks/cancel", { taskId })
    yield* Effect.forEach(fibers, Fiber.await)
    expect(ended).toBe(10_000)
  })), 120_000)

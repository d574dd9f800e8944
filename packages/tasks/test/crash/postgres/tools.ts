/**
 * Tasks beside the orders: one that is made to wait where the test wants it, and one that beats time.
 */
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import { world } from "./outside.ts"

/** Waits at its gates: in a step that acts outside, in a transactional one after it wrote, and between the two. */
const held = (outside: string) =>
  Task.layer(
    Task.make("held", { input: { gates: Schema.Array(Schema.String) }, pollInterval: "100 millis" }),
    ({ gates }) =>
      Effect.gen(function*() {
        const sql = yield* SqlClient
        const task = yield* Task.id
        const { act, gate } = world(outside)
        const at = (name: string) => gates.includes(name) ? gate(name) : Effect.void
        const write = (step: string) => Effect.orDie(sql`INSERT INTO ledger (task, step) VALUES (${task}, ${step})`)
        const out = (step: string) => Step.run(step, {}, (key) => act({ task, order: -1, step, key }))

        yield* Step.run(
          "outside",
          {},
          (key) => Effect.andThen(act({ task, order: -1, step: "outside", key }), at("outside"))
        ).pipe(
          Step.withCompensation(() => out("inside out"))
        )
        yield* at("between")
        yield* Step.run("inside", { transactional: true }, () => Effect.andThen(write("inside"), at("inside"))).pipe(
          Step.withCompensation(() => Step.run("undo", { transactional: true }, () => write("undo")))
        )
        if (gates.includes("sleep")) yield* Step.sleep("sleep", "1 hour")
        yield* out("last")
        return "Let go"
      })
  )

/** Acts, again and again: what comes between is the pause. */
const beats = (outside: string) =>
  Task.layer(
    Task.make("beats", { input: { every: Schema.Int, times: Schema.Int }, pollInterval: "1 second" }),
    ({ every, times }) =>
      Effect.gen(function*() {
        const task = yield* Task.id
        const { act } = world(outside)
        for (let n = 0; n < times; n++) {
          const step = `beat ${n}`
          yield* Step.run(step, {}, (key) => Effect.andThen(act({ task, order: -2, step, key }), Effect.sleep(every)))
        }
        return "Silence"
      })
  )

export const tools = (outside: string) => Layer.mergeAll(held(outside), beats(outside))

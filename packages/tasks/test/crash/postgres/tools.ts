/**
 * Tasks besides the orders: one that waits where the test wants it, and one that acts at an interval.
 */
import * as Elicitation from "@skein/server/Elicitation"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import { world } from "./outsideServer.ts"

/** Where a task can wait: in a step that acts outside, in a transactional step that has written, … */
export type Gate = "outside" | "between" | "inside" | "question" | "sleep" | "end" | "undo" | "fail"

class Lost extends Data.TaggedError("Lost") {
  override readonly message = "It was not let go"
}

/** Waits at the gates that it is given. With the gate `fail` it fails at its end. */
const held = (outside: string) =>
  Task.layer(
    Task.make("held", { input: { gates: Schema.Array(Schema.String) }, pollInterval: "100 millis" }),
    ({ gates }) =>
      Effect.gen(function*() {
        const sql = yield* SqlClient
        const task = yield* Task.id
        const { act, gate } = world(outside)
        const at = (name: Gate) => gates.includes(name) ? gate(`${task} ${name}`) : Effect.void
        const out = (step: string, then: Effect.Effect<void> = Effect.void) =>
          Step.run(step, {}, (key) => Effect.andThen(act({ task, order: -1, step, key }), then))
        const write = (step: "inside" | "undo") =>
          Step.run(
            step,
            { transactional: true },
            () => Effect.andThen(Effect.orDie(sql`INSERT INTO ledger (task, step) VALUES (${task}, ${step})`), at(step))
          )

        const noteReason = (reason: string) => act({ task, order: -1, step: "reason", key: `${task} ${reason}` })

        yield* out("outside", at("outside")).pipe(
          Step.withCompensation((_, reason) => Effect.andThen(noteReason(reason), out("inside out")))
        )
        yield* at("between")
        yield* write("inside").pipe(
          Step.withCompensation((_, reason) => Effect.andThen(noteReason(reason), write("undo")))
        )
        if (gates.includes("question")) {
          yield* Elicitation.accepted(Elicitation.form("Go on?", { sure: Schema.Boolean }))
        }
        if (gates.includes("sleep")) yield* Step.sleep("sleep", "1 hour")
        yield* out("last")
        yield* at("end")
        if (gates.includes("fail")) return yield* new Lost()
        return "Let go"
      })
  )

/** Acts again and again: the time between two effects is the pause. */
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

/** The names of steps may be long. */
const padding = "x".repeat(300)

/**
 * Two steps that race: at equal times, or with up to `jitter` milliseconds between them. Each run writes the winner
 * down. The sleep is so long that the run is suspended.
 */
const races = (outside: string) =>
  Task.layer(
    Task.make("races", { input: { jitter: Schema.Int }, pollInterval: "1 second" }),
    ({ jitter }) =>
      Effect.gen(function*() {
        const task = yield* Task.id
        const { act } = world(outside)
        const branch = (name: string) =>
          Step.run(
            `${name} ${padding}`,
            { success: Schema.String },
            () => Effect.as(Effect.sleep(200 + Math.random() * jitter), name)
          )
        const winner = yield* Effect.raceFirst(branch("left"), branch("right"))
        yield* act({ task, order: -3, step: "winner", key: `${task} ${winner}` })
        yield* Step.sleep(`rest ${padding}`, 5100)
        yield* Step.run(`last ${padding}`, {}, (key) => act({ task, order: -3, step: "last", key }))
        return winner
      })
  )

/** Blocks the event loop in each of two steps. */
const blocks = (outside: string) =>
  Task.layer(
    Task.make("blocks", { input: { milliseconds: Schema.Int }, pollInterval: "1 second" }),
    ({ milliseconds }) =>
      Effect.gen(function*() {
        const task = yield* Task.id
        const { act } = world(outside)
        for (const step of ["first", "second"]) {
          yield* Step.run(step, {}, (key) =>
            Effect.andThen(
              act({ task, order: -4, step, key }),
              Effect.sync(() => {
                const end = performance.now() + milliseconds
                while (performance.now() < end);
              })
            ))
        }
        return "Unblocked"
      })
  )

export const tools = (outside: string) => Layer.mergeAll(held(outside), beats(outside), races(outside), blocks(outside))

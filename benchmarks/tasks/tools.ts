/**
 * The tools of the server whose tasks are measured.
 */
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { say } from "./serve.ts"
import { clock, done } from "./wire.ts"

const step = (number: number) =>
  Step.run(`step ${number}`, { success: Schema.String }, (key) => Effect.succeed(`${key} ${number}`))

/** How many steps a marching task has: a history that is neither short nor long. */
export const strides = 40

const definitions = [
  Tool.layer(Tool.make("plain", { execution: { taskSupport: "optional" } }), () => Effect.succeed(done)),
  Task.layer(Task.make("one"), () => Effect.as(step(1), done)),
  Task.layer(
    Task.make("five"),
    () => Effect.as(Effect.forEach([1, 2, 3, 4, 5], step, { discard: true }), done)
  ),
  Task.layer(Task.make("sleeps"), () => Effect.as(Step.sleep("long", "1 day"), done)),
  Task.layer(Task.make("asks"), () => Effect.as(Elicitation.form("Well?", { answer: Schema.String }), done)),
  // Who looks in place of listening would be a minute late.
  Task.layer(
    Task.make("ticks", { input: { count: Schema.Int, every: Schema.Int }, pollInterval: "1 minute" }),
    ({ count, every }) =>
      Effect.gen(function*() {
        for (let tick = 0; tick < count; tick++) {
          yield* Effect.sleep(every)
          yield* Task.setStatusMessage(String(clock()))
        }
        return done
      })
  ),
  Task.layer(Task.make("marches", { input: { step: Schema.Int } }), (input) =>
    Effect.gen(function*() {
      const task = yield* Task.id
      for (let step = 0; step < strides; step++) {
        yield* Step.run(`step ${step}`, {}, () => Effect.sleep(input.step))
        yield* Effect.sync(() => say({ stride: { task, step, at: clock() } }))
      }
      return done
    }))
]

const unbounded = { live: Infinity, retained: Infinity }

/** The server, with tasks that nothing but the machine bounds. */
export const server = McpServer.layer(
  { name: "bench", version: "1.0.0" },
  ...definitions,
  Tasks.layer({ limits: { all: unbounded, perOwner: unbounded, perTool: unbounded } })
)

/**
 * The measured tools.
 */
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { sendReply } from "./commandLoop.ts"
import { clock, done } from "./commands.ts"

const step = (number: number) =>
  Step.run(`step ${number}`, { success: Schema.String }, (key) => Effect.succeed(`${key} ${number}`))

/** The number of steps of a `steps` task: a history of medium length. */
export const stepCount = 40

let sleepers = 0

/** The number of `sleep` tasks of this process that have begun to sleep. */
export const sleeperCount = (): number => sleepers

const definitions = [
  Tool.layer(Tool.make("plain", { execution: { taskSupport: "optional" } }), () => Effect.succeed(done)),
  Task.layer(Task.make("one"), () => Effect.as(step(1), done)),
  Task.layer(
    Task.make("five"),
    () => Effect.as(Effect.forEach([1, 2, 3, 4, 5], step, { discard: true }), done)
  ),
  Task.layer(Task.make("sleep"), () =>
    Effect.suspend(() => {
      sleepers++
      return Effect.as(Step.sleep("long", "1 day"), done)
    })),
  Task.layer(Task.make("ask"), () => Effect.as(Elicitation.form("Your answer?", { answer: Schema.String }), done)),
  Task.layer(Task.make("interview", { input: { questions: Schema.Int } }), ({ questions }) =>
    Effect.gen(function*() {
      for (let number = 1; number <= questions; number++) {
        yield* step(number)
        yield* Elicitation.form(`Question ${number}?`, { answer: Schema.String })
      }
      return done
    })),
  // With the long interval, a client that polls instead of subscribing would be a minute late.
  Task.layer(
    Task.make("ticks", { input: { count: Schema.Int, interval: Schema.Int }, pollInterval: "1 minute" }),
    ({ count, interval }) =>
      Effect.gen(function*() {
        for (let tick = 0; tick < count; tick++) {
          yield* Effect.sleep(interval)
          yield* Task.setStatusMessage(String(clock()))
        }
        return done
      })
  ),
  Task.layer(Task.make("steps", { input: { stepDuration: Schema.Int } }), (input) =>
    Effect.gen(function*() {
      const task = yield* Task.id
      for (let step = 0; step < stepCount; step++) {
        yield* Step.run(`step ${step}`, {}, () => Effect.sleep(input.stepDuration))
        yield* Effect.sync(() => sendReply({ stepEnd: { task, step, at: clock() } }))
      }
      return done
    }))
]

const unbounded = { live: Infinity, retained: Infinity }

/** The server, without limits on tasks. */
export const server = McpServer.layer(
  { name: "bench", version: "1.0.0" },
  ...definitions,
  Tasks.layer({ limits: { all: unbounded, perClient: unbounded, perTool: unbounded } })
)

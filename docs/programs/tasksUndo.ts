import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export const log: Array<string> = []
const hire = (what: string, key: string) =>
  Effect.sync(() => {
    log.push(`hired a ${what}`)
    return `${what} ${key.length}`
  })
const release = (id: string, why: string) => Effect.sync(() => void log.push(`released the ${id}: ${why}`))

// #region undo
class NoDriver extends Schema.TaggedError<NoDriver>()("NoDriver", { message: Schema.String }) {}

const hired = (what: string) =>
  Step.run(`hire ${what}`, { success: Schema.String }, (key) => hire(what, key)).pipe(
    Step.withCompensation((id, why) => Step.run(`release ${what}`, {}, () => release(id, why)))
  )

const cater = Task.layer(
  Task.make("cater", { input: { drivers: Schema.Int } }),
  ({ drivers }) =>
    Effect.gen(function*() {
      yield* hired("van")
      yield* hired("tent")
      if (drivers === 0) return yield* new NoDriver({ message: "No driver is available" })
      yield* Step.sleep("until the party", "2 days")
      return "Catered"
    })
)
// #endregion

const charge = (payment: string): Effect.Effect<void> =>
  Effect.andThen(Effect.sync(() => void log.push(`charged ${payment.length}`)), Effect.never)
const refund = (payment: string) => Effect.sync(() => void log.push(`refunded ${payment.length}, if it was charged`))

// #region before
const pay = Task.layer(Task.make("pay"), () =>
  Effect.gen(function*() {
    const payment = yield* Step.run("payment", { success: Schema.String }, () => Effect.sync(() => crypto.randomUUID()))
    // Registered before the step, which may be interrupted after it has charged.
    yield* Step.compensate(() => Step.run("refund", {}, () => refund(payment)))
    yield* Step.run("charge", {}, () => charge(payment))
    return "Paid"
  }))
// #endregion

const move = (from: string, to: string) => Effect.sync(() => void log.push(`moved from ${from} to ${to}`))

// #region section
const relocate = Task.layer(Task.make("relocate"), () =>
  Effect.gen(function*() {
    yield* hired("van")
    yield* Task.nonCancellable(
      "move",
      Effect.gen(function*() {
        yield* Step.run("out of the house", {}, () => move("the house", "the van"))
        yield* Step.sleep("drive", "2 hours")
        yield* Step.run("into the house", {}, () => move("the van", "the new house"))
      })
    )
    return "Moved"
  }))
// #endregion

// #region branch
const party = Task.layer(
  Task.make("party", { input: { drivers: Schema.Int } }),
  ({ drivers }) =>
    Effect.gen(function*() {
      const tent = yield* Task.branch("tent", hired("tent"))
      yield* hired("van")
      if (drivers > 0) return `With the tent ${yield* tent.join}`
      yield* tent.cancel
      return "In the garden"
    }).pipe(Effect.catchTag("TaskError", ({ message }) => Effect.fail({ message })))
)
// #endregion

export const Catering = McpServer.layer(
  { name: "catering", version: "1.0.0" },
  cater,
  pay,
  relocate,
  party,
  Tasks.layer()
)

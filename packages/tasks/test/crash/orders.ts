/**
 * The task that is killed: an order of five steps with a sleep, a question, a retry, a failure, a cancellation, events from
 * outside, children and output, or a section that a cancellation waits for. A
 * transactional step adds a row to `ledger`, which has no unique index, and increments `tally`.
 */
import * as Elicitation from "@skein/server/Elicitation"
import * as Tool from "@skein/server/Tool"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import type { Outside } from "./outsideLog.ts"

/** The special case that an order tests, by its number. */
export const kinds = [
  "plain",
  "asks",
  "naps",
  "cancelled",
  "fails",
  "cancelled while it asks",
  "plain",
  "asks",
  "retries",
  "races",
  "plain",
  "is paid",
  "has parcels",
  "cancelled while it moves"
] as const

export type Kind = typeof kinds[number]

export const kindOf = (order: number): Kind => kinds[order % kinds.length]!

export const asks = (kind: Kind): boolean => kind === "asks" || kind === "cancelled while it asks"
export const cancelled = (kind: Kind): boolean =>
  kind === "cancelled" || kind === "cancelled while it asks" || kind === "cancelled while it moves"

/** The numbers of the parcels of an order. */
export const parcels = [1, 2, 3] as const

class Busy extends Schema.TaggedError<Busy>()("Busy", {}) {
  override readonly message = "Nobody is there to pack it"
}

class Lost extends Data.TaggedError("Lost") {
  override readonly message = "The parcel is lost"
}

/** The tables that transactional steps write. */
export const tables = Effect.gen(function*() {
  const sql = yield* SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS ledger (task TEXT NOT NULL, step TEXT NOT NULL)`
  yield* sql`CREATE TABLE IF NOT EXISTS tally (id INTEGER PRIMARY KEY, count INTEGER NOT NULL)`
  yield* sql`INSERT INTO tally (id, count) VALUES (1, 0) ON CONFLICT DO NOTHING`
})

export interface Options {
  readonly outside: Outside
  /** Milliseconds, at most, that a step takes before and after it acts. */
  readonly pace: number
}

/** The names of steps may be long. */
const padding = "x".repeat(300)

/**
 * Two steps that race: at equal times, or with up to 200 ms between them. The next runs after the sleep must have the
 * same winner: each of them writes it down.
 */
const race = (order: number, task: string, { act }: Outside) => {
  const branch = (name: string, jitter: number) =>
    Step.run(
      `${name} ${padding}`,
      { success: Schema.String },
      () => Effect.as(Effect.sleep(100 + (order % 4 === 0 ? 0 : Math.random() * jitter)), name)
    )
  return Effect.gen(function*() {
    const winner = yield* Effect.raceFirst(branch("left", 200), branch("right", 200))
    yield* act({ task, order, step: "winner", key: `${task} ${winner}` })
    yield* Step.sleep(`rest ${padding}`, 5100)
  })
}

/** The limits on tasks of a server: one client starts all of them, and a long run by hand starts many. */
export const limits = { perClient: { live: 1_000, retained: 1_000_000 }, all: { live: 10_000, retained: 1_000_000 } }

const definition = Task.make("order", {
  input: { order: Schema.Int },
  pollInterval: "200 millis",
  limits: { live: 1000, retained: 1_000_000 }
})

const parcel = Task.make("parcel", {
  input: { order: Schema.Int, parcel: Schema.Int, of: Schema.String },
  limits: { live: 1000, retained: 1_000_000 }
})

/** Pays an order, as a webhook does: twice with the same keys, if its response was lost. */
const pay = Tool.layer(
  Tool.make("pay", { input: { task: Schema.String, receipt: Schema.String } }),
  ({ receipt, task }) =>
    Effect.gen(function*() {
      const { send, sendAll } = yield* TaskEngine
      yield* send(task, "paid", { receipt }, { key: "paid" })
      yield* sendAll("sent", task, { receipt }, { key: "sent" })
      return "paid"
      // Its payment has arrived, and the response to it has not.
    }).pipe(Effect.catchReason("TaskError", "AlreadyEnded", () => Effect.succeed("paid before")))
)

/** The orders, their parcels, and how they are paid. */
export const orders = (options: Options) =>
  Layer.mergeAll(
    ordering(options),
    Task.layer(parcel, ({ of, order, parcel }) => {
      const wrapped: Effect.Effect<void, never, CurrentTask> = Step.run("wrap", {}, (key) =>
        Effect.andThen(
          Effect.sleep(Math.random() * options.pace),
          options.outside.act({ task: of, order, step: `parcel ${parcel}`, key })
        ))
      return Effect.as(wrapped, `parcel ${parcel}`)
    }),
    pay
  )

/** Two steps of which none may be without the other. */
const move = (out: (step: string) => Effect.Effect<void, never, CurrentTask>) =>
  Task.nonCancellable(
    "move",
    Effect.andThen(Effect.andThen(Task.setStatusMessage("Moves"), out("load")), out("unload"))
  )

/** The payment of an order, and the notice that it is sent. Each run writes them down. */
const payment = (order: number, task: string, { act }: Outside) => {
  const received = (name: string, topic?: string) =>
    Effect.flatMap(
      Effect.orDie(Task.awaitEvent(name, { topic, schema: Schema.Struct({ receipt: Schema.String }) })),
      ({ receipt }) => act({ task, order, step: name, key: `${task} ${name} ${receipt}` })
    )
  return Task.setStatusMessage("Waits to be paid").pipe(
    Effect.andThen(received("paid")),
    Effect.andThen(received("sent", task))
  )
}

/** The parcels of an order as children, and as its output. */
const pack = (order: number, task: string) =>
  Effect.orDie(Effect.flatMap(
    Task.forEach(parcel, parcels.map((parcel) => ({ order, parcel, of: task })), { concurrency: 2 }),
    (packed) => Effect.forEach(packed, (name) => Task.emit(name), { discard: true })
  ))

const ordering = ({ outside, pace }: Options) =>
  Task.layer(definition, ({ order }) =>
    Effect.gen(function*() {
      const task = yield* Task.id
      const sql = yield* SqlClient
      const kind = kindOf(order)
      const pause = Effect.suspend(() => Effect.sleep(Math.random() * pace))
      const act = (step: string, key: string) => outside.act({ task, order, step, key })

      const out = (step: string) =>
        Step.run(step, {}, (key) => Effect.andThen(Effect.andThen(pause, act(step, key)), pause))
      const within = (step: string) =>
        Step.run(step, { transactional: true }, () =>
          Effect.orDie(Effect.gen(function*() {
            yield* sql`INSERT INTO ledger (task, step) VALUES (${task}, ${step})`
            // A moment to be killed in. On SQLite all other statements wait for it.
            yield* Effect.sleep(Math.random() * pace / 10)
            yield* sql`UPDATE tally SET count = count + 1`
          })))

      yield* Task.setStatusMessage("Pays")
      const noteReason = (reason: string) => act("reason", `${task} ${reason}`)
      yield* out("charge").pipe(
        Step.withCompensation((_, reason) => Effect.andThen(noteReason(reason), out("refund")))
      )
      yield* within("reserve").pipe(
        Step.withCompensation((_, reason) => Effect.andThen(noteReason(reason), within("release")))
      )
      if (kind === "cancelled while it moves") yield* move(out)
      if (kind === "is paid") yield* payment(order, task, outside)
      if (kind === "has parcels") yield* pack(order, task)
      yield* Task.setStatusMessage("Rests")
      yield* Step.sleep("rest", kind === "naps" ? 5100 : 50)
      if (kind === "races") yield* race(order, task, outside)
      if (asks(kind)) {
        yield* Elicitation.accepted(Elicitation.form(`Is order ${order} right?`, { right: Schema.Boolean }))
      }
      const retry = Schedule.upTo(Schedule.spaced("50 millis"), { times: 3 })
      yield* Step.run("pack", { error: Busy, retry }, (key) =>
        Effect.flatMap(
          outside.known(key),
          (known) => Effect.andThen(act("pack", key), kind === "retries" && !known ? Effect.fail(new Busy()) : pause)
        ))
      yield* within("book")
      yield* out("ship")
      if (kind === "fails") return yield* new Lost()
      return `Order ${order} is on its way`
    }))

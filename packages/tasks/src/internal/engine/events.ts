/**
 * Events from outside: values that the application sends to a task, which the store has until the task receives them. The
 * record of an event in the log is its receipt: the statement that stores it takes the event from the others.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { EventOptions } from "../../CurrentTask.ts"
import { EventError, EventTimeout, InvalidEvent } from "../../TaskError.ts"
import { checkName } from "../store/events.ts"
import { topicEvent } from "../store/topics.ts"
import { awaitStore } from "./engineContext.ts"
import type { NewEvent, Wait } from "./observations.ts"
import { misplacedWait } from "./placement.ts"
import type { Run } from "./run.ts"
import { firedEvent, timerEnd } from "./sleep.ts"
import type { EventKey } from "./taskLog.ts"

/** The value of an event, from its JSON text. */
const decode = <A>(name: string, text: string, schema: EventOptions<A>["schema"]): Effect.Effect<A, EventError> => {
  const value = JSON.parse(text) as unknown
  if (schema === undefined) return Effect.succeed(value as A)
  const invalid = (problem: string) => {
    const message = `the value of the event "${name}" does not match its schema: ${problem}`
    return Effect.fail(new EventError({ reason: new InvalidEvent({ message, value }) }))
  }
  if (Schema.isSchema(schema)) {
    const decoded = Schema.decodeUnknownResult(Schema.toCodecJson(schema as Schema.ConstraintCodec<A, unknown>))(value)
    return Result.isSuccess(decoded) ? Effect.succeed(decoded.success) : invalid(String(decoded.failure))
  }
  const { validate } = (schema as StandardSchemaV1<unknown, A>)["~standard"]
  return Effect.flatMap(
    Effect.promise(async () => validate(value)),
    (result) =>
      result.issues === undefined
        ? Effect.succeed(result.value)
        : invalid(result.issues.map(({ message }) => message).join(", "))
  )
}

/** Implements `Task.awaitEvent`. The events with one name are numbered, in the order in which the handler awaits them. */
export const awaitEvent = <A>(
  run: Run,
  given: string,
  { schema, timeout, topic }: EventOptions<A> = {}
): Effect.Effect<A, EventError> =>
  Effect.withFiber((fiber) => {
    const name = topic === undefined ? given : topicEvent(given, topic)
    const part = `awaitEvent "${name}"`
    const problem = misplacedWait(fiber, part)
    if (problem !== undefined) return problem
    if (run.undoReason !== undefined) return Effect.die(new Error(`${part} is not allowed in a compensation`))
    const { engine: { store }, log, task: { id } } = run
    const counter = `event/${name}`
    const attempt = (run.counts.get(counter) ?? 0) + 1
    run.counts.set(counter, attempt)
    const received: EventKey = { kind: "received", name, attempt }
    const timer = `event/${attempt}/${name}`
    const fired = firedEvent(timer)
    const associatedData = `${id}/received/${attempt}/${name}`
    let deadline = Infinity
    /** The event that has come in time. */
    const find = () => {
      const event = run.findUnreceived(name)
      return event !== undefined && event.at <= deadline ? event : undefined
    }
    const read = (place: number): Effect.Effect<NewEvent | undefined> =>
      Effect.flatMap(awaitStore(store.readEvent(id, place)), (text) =>
        text === undefined
          // Another worker has received it, or the database has lost it.
          ? Effect.as(run.readEvents, undefined)
          : Effect.map(awaitStore(store.encrypt(text, associatedData)), (value) => ({ ...received, value, place })))
    const wait: Wait<A, EventError> = {
      events: [received, fired],
      dueAt: () => find()?.at ?? deadline,
      arrive: Effect.suspend(() => {
        const event = find()
        return event === undefined ? Effect.succeed(fired) : read(event.place)
      }),
      next: ({ kind }) =>
        kind === "received"
          ? run.preventSuspension(
            Effect.flatMap(
              awaitStore(store.decrypt(log.find(received)!.value!, associatedData)),
              (text) => decode(name, text, schema)
            )
          )
          : Effect.fail(
            new EventError({ reason: new EventTimeout({ message: `No event "${name}" came within its timeout` }) })
          )
    }
    if (log.find(received) !== undefined || log.find(fired) !== undefined) return run.observe(wait)
    const started = Effect.gen(function*() {
      yield* Effect.orDie(checkName("name", name))
      if (topic !== undefined) yield* awaitStore(store.subscribe(id, name))
      yield* run.readEvents
      if (timeout === undefined) return
      deadline = yield* timerEnd(run, timer, Math.max(Math.ceil(Duration.toMillis(timeout)), 0))
    })
    return run.startNew(received, Effect.andThen(run.preventSuspension(started), run.observe(wait)))
  })

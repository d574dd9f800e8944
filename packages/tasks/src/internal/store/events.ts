/**
 * The events that an application sends to tasks. The store keeps an event until a run of its task has received it, in the
 * order of sending.
 *
 * Each transaction locks the row of the task in the queue before it changes an event. So the events of a task have an
 * order, and none is inserted while the task is deleted.
 */
import * as Effect from "effect/Effect"
import { AlreadyEnded, InvalidEvent, TaskError, TooManyEvents, UnknownTask } from "../../TaskError.ts"
import { maxNameChars, numberOf, textOf } from "./database.ts"
import { associatedData, live, type StoreContext } from "./rows.ts"
import type { Store } from "./store.ts"
import { escape, isPermanent, toJson, unescape } from "./storedText.ts"

/** Bytes of the value of an event, as JSON in UTF-8. */
const maxEventBytes = 262_144

/** The events of a task that it has not received. */
const maxUnreceivedEvents = 1000

const utf8Encoder = new TextEncoder()

const fail = (reason: TaskError["reason"]) => Effect.fail(new TaskError({ reason }))

/** The failure for an id that no task has. */
export const unknownTask = /* @__PURE__ */ fail(
  /* @__PURE__ */ new UnknownTask({ message: "no task has this id, or it has expired" })
)

const invalid = (message: string) => fail(new InvalidEvent({ message }))

/** Fails for a name or a key out of bounds. */
export const checkName = (kind: "name" | "key", text: string): Effect.Effect<void, TaskError> =>
  text !== "" && escape(text).length <= maxNameChars
    ? Effect.void
    : invalid(`the ${kind} of an event has ${text.length} characters: it must have 1 to ${maxNameChars}`)

/** The value as JSON text. Fails for an event out of bounds. */
export const checkedEvent = (
  name: string,
  value: unknown,
  key: string | undefined
): Effect.Effect<string, TaskError> =>
  Effect.flatMap(
    Effect.andThen(checkName("name", name), key === undefined ? Effect.void : checkName("key", key)),
    () => textOfValue(name, value)
  )

const textOfValue = (name: string, value: unknown): Effect.Effect<string, TaskError> =>
  Effect.flatMap(
    Effect.catchIf(toJson(value), isPermanent, ({ message }) =>
      invalid(`the event "${name}" cannot be sent: ${message}`)),
    (text) => {
      const bytes = utf8Encoder.encode(text).length
      return bytes <= maxEventBytes
        ? Effect.succeed(text)
        : invalid(`the value of the event "${name}" has ${bytes} bytes, and may have at most ${maxEventBytes}`)
    }
  )

/**
 * Inserts an event of a task by its stored name, with its stored value, in a transaction. Returns `false` if the task has
 * one with the key. Fails with `UnknownTask`, `AlreadyEnded` and `TooManyEvents`.
 */
export type InsertEvent = (
  id: string,
  name: string,
  text: string,
  key: string | undefined
) => Effect.Effect<boolean, TaskError>

/** The operations of `TaskStore` on events. */
export const make = ({ database, signals, texts }: StoreContext) => {
  const lockTask = database.prepare(
    `SELECT queue.signals FROM skein_task_queue AS queue JOIN skein_tasks AS tasks ON tasks.id = queue.task_id
     WHERE queue.task_id = ? AND tasks.expires_at > ? AND ${live} ${
      database.isPostgres ? "FOR NO KEY UPDATE OF queue" : ""
    }`
  )
  const selectTask = database.prepare("SELECT id FROM skein_tasks WHERE id = ? AND expires_at > ?")
  const selectKey = database.prepare("SELECT place FROM skein_task_events WHERE task_id = ? AND send_key = ?")
  const countUnreceived = database.prepare(
    "SELECT COUNT(*) AS events FROM skein_task_events WHERE task_id = ? AND value IS NOT NULL"
  )
  const insertEvent = database.prepare(
    "INSERT INTO skein_task_events (task_id, place, name, value, send_key, at) VALUES (?, ?, ?, ?, ?, ?)"
  )
  const selectUnreceived = database.prepare(
    "SELECT place, name, at FROM skein_task_events WHERE task_id = ? AND value IS NOT NULL ORDER BY place"
  )
  const selectValue = database.prepare(
    "SELECT name, value FROM skein_task_events WHERE task_id = ? AND place = ? AND value IS NOT NULL"
  )

  const insert: InsertEvent = Effect.fnUntraced(function*(id, name, text, key) {
    const stored = key === undefined ? null : escape(key)
    const now = yield* database.now
    const [task] = yield* lockTask(id, now)
    // A sender that repeats an event may do so after the end of the task.
    if (stored !== null && (yield* selectKey(id, stored)).length > 0) return false
    if (task === undefined) {
      const [ended] = yield* selectTask(id, now)
      return yield* ended === undefined
        ? unknownTask
        : fail(new AlreadyEnded({ message: "the task has ended, and receives no events" }))
    }
    const [count] = yield* countUnreceived(id)
    if (numberOf(count!, "events") >= maxUnreceivedEvents) {
      const message = `the task has ${maxUnreceivedEvents} events that it has not received, which is the limit`
      return yield* fail(new TooManyEvents({ message }))
    }
    // The number of signals grows with each event.
    yield* insertEvent(id, numberOf(task, "signals") + 1, name, text, stored, now)
    yield* signals.signal(id, now)
    return true
  })

  const send: Store["send"] = Effect.fnUntraced(function*(id, name, value, { key } = {}) {
    const text = yield* checkedEvent(name, value, key)
    const stored = escape(name)
    const encrypted = yield* texts.encrypt(text, associatedData.event(id, stored))
    return yield* database.transaction(insert(id, stored, encrypted, key))
  })

  const readEvents: Store["readEvents"] = (id) =>
    Effect.map(selectUnreceived(id), (rows) =>
      rows.map((row) => ({
        place: numberOf(row, "place"),
        name: unescape(textOf(row, "name")),
        at: numberOf(row, "at")
      })))

  const readEvent: Store["readEvent"] = (id, place) =>
    Effect.flatMap(selectValue(id, place), ([row]) =>
      row === undefined
        ? Effect.undefined
        : texts.decrypt(textOf(row, "value"), associatedData.event(id, textOf(row, "name"))))

  return { insertEvent: insert, send, readEvents, readEvent }
}

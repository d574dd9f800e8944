/**
 * Topics: events for all tasks that await them. A task subscribes to a topic when it first awaits an event of it, and then
 * has each later event, and those of the last day, among its own events.
 *
 * A topic is locked while a task subscribes and while an event is sent, so that the task receives the event once.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import { numberOf, type Row, textOf } from "./database.ts"
import { checkedEvent, type InsertEvent } from "./events.ts"
import { associatedData, type StoreContext } from "./rows.ts"
import type { Store } from "./store.ts"
import { escape, unescape } from "./storedText.ts"

/** Milliseconds that an event is stored for tasks that subscribe later. */
const retentionMs = 86_400_000

/** The events of a topic and a name that are stored for them: the last ones. */
const maxRetainedEvents = 100

/** The name of the events of a topic, among those of a task. */
export const topicEvent = (name: string, topic: string): string => `${name}@${topic}`

/** Whether an event cannot be sent to a task for a reason that lies in that task. */
const isOfTask = ({ reason: { _tag } }: TaskError): boolean => _tag === "AlreadyEnded" || _tag === "UnknownTask"

/** The operations of `TaskStore` on topics. `insert` inserts an event of one task, in a transaction. */
export const make = ({ database, texts }: StoreContext, insert: InsertEvent) => {
  const lock = database.isPostgres
    ? database.prepare("SELECT pg_advisory_xact_lock(hashtextextended(?, 5718))")
    : () => Effect.succeed([])
  const insertSubscription = database.prepare(
    "INSERT INTO skein_task_topics (event, task_id) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING task_id"
  )
  const selectSubscribers = database.prepare("SELECT task_id FROM skein_task_topics WHERE event = ? ORDER BY task_id")
  const selectRetained = database.prepare(
    "SELECT value, send_key FROM skein_task_topic_events WHERE event = ? AND at > ? ORDER BY place"
  )
  const insertRetained = database.prepare(
    `INSERT INTO skein_task_topic_events (event, place, value, send_key, at)
     VALUES (?, (SELECT COALESCE(MAX(place), 0) + 1 FROM skein_task_topic_events WHERE event = ?), ?, ?, ?)
     ON CONFLICT (event, send_key) WHERE send_key IS NOT NULL DO NOTHING RETURNING place`
  )
  const deleteFirst = database.prepare("DELETE FROM skein_task_topic_events WHERE event = ? AND place <= ?")
  const deleteOld = database.prepare("DELETE FROM skein_task_topic_events WHERE at <= ?")

  /** Inserts an event of one task, if that can receive events. Returns whether it was inserted. */
  const insertFor = (id: string, event: string, text: string, key: string | undefined) =>
    Effect.flatMap(
      texts.encrypt(text, associatedData.event(id, event)),
      (encrypted) => Effect.catchIf(insert(id, event, encrypted, key), isOfTask, () => Effect.succeed(false))
    )

  const subscribe: Store["subscribe"] = (id, name) => {
    const event = escape(name)
    const copy = (row: Row) =>
      Effect.flatMap(
        texts.decrypt(textOf(row, "value"), associatedData.topic(event)),
        (text) => insertFor(id, event, text, row["send_key"] == null ? undefined : unescape(textOf(row, "send_key")))
      )
    return database.transaction(Effect.gen(function*() {
      yield* lock(event)
      if ((yield* insertSubscription(event, id)).length === 0) return
      const now = yield* database.now
      yield* Effect.forEach(yield* selectRetained(event, now - retentionMs), copy, { discard: true })
    }))
  }

  const sendAll: Store["sendAll"] = Effect.fnUntraced(function*(name, topic, value, { key } = {}) {
    const event = escape(topicEvent(name, topic))
    const text = yield* checkedEvent(topicEvent(name, topic), value, key)
    const encrypted = yield* texts.encrypt(text, associatedData.topic(event))
    return yield* database.transaction(Effect.gen(function*() {
      yield* lock(event)
      const now = yield* database.now
      const [row] = yield* insertRetained(event, event, encrypted, key === undefined ? null : escape(key), now)
      if (row !== undefined) yield* deleteFirst(event, numberOf(row, "place") - maxRetainedEvents)
      yield* deleteOld(now - retentionMs)
      const subscribers = yield* selectSubscribers(event)
      const sent = yield* Effect.forEach(subscribers, (row) => insertFor(textOf(row, "task_id"), event, text, key))
      return sent.filter(Boolean).length
    }))
  })

  return { subscribe, sendAll }
}

/**
 * Tasks that run with other code than before: what their runs report, and the tasks that wait for the code that they
 * had.
 */
import * as Backoff from "@skein/runtime/Backoff"
import * as Effect from "effect/Effect"
import type { LogEntry } from "../store/store.ts"
import { type EventKey, maxBeside, textOf } from "./taskLog.ts"

/** Tasks whose changes of code are remembered: each is reported once by a process, and its pauses grow. */
const maxTasks = 10_000

/** The most events that a message names. */
const maxNamed = 10

/** The pauses until a task that waits for other code runs again. */
const stopPauses: Backoff.Backoff = { initialDelay: 1000, maxDelay: 300_000 }

/** Milliseconds that the next run of such a task waits for an event, at most. */
const maxPatienceMs = 60_000

/** Describes an event of a log for people. */
export const describeEvent = ({ attempt, kind, name }: EventKey): string => {
  if (kind === "emit") return `item ${attempt} of its output`
  if (kind === "step") return `step "${name}"${attempt > 1 ? ` (attempt ${attempt})` : ""}`
  if (kind === "once") return `once "${name}"`
  if (kind === "start") return `the start of the child "${name}"`
  if (kind === "join") return `the end of the child "${name}"`
  if (kind === "answer" || kind === "timeout") return `question "${name}"`
  if (kind === "section") return `section "${name}"`
  if (kind === "received") return `event "${name}"`
  if (name.startsWith("event/")) return `timeout of event "${name.replace(/^event\/\d+\//, "")}"`
  return `sleep "${name.startsWith("sleep/") ? name.slice("sleep/".length) : name}"`
}

/** Describes some events: the first ones by name, and the number of the others. */
export const describeEvents = (events: ReadonlyArray<EventKey>): string => {
  const named = [...new Set(events.map(describeEvent))]
  const more = named.length - maxNamed
  return named.slice(0, maxNamed).join(", ") + (more > 0 ? ` and ${more} others` : "")
}

/** A part of a task that ran beside a recorded event, and must not go on without it. */
export interface MissingEvent {
  /** The event that the code does not reach. */
  readonly event: LogEntry
  /** The part that would go on. */
  readonly part: EventKey
}

/** Remembers values by key. Beyond `most` keys, it forgets the one that was set longest ago. */
export class Recent<V> extends Map<string, V> {
  readonly #most: number

  constructor(most: number) {
    super()
    this.#most = most
  }

  override set(key: string, value: V): this {
    this.delete(key)
    super.set(key, value)
    const [oldest] = this.keys()
    if (this.size > this.#most) this.delete(oldest!)
    return this
  }
}

/** The tasks of a process whose code has changed. */
export class CodeChanges {
  readonly #stops = new Recent<number>(maxTasks)
  readonly #reported = new Recent<string>(maxTasks)

  /** How often a task was stopped because its code has changed, since it has gone on. */
  stopsOf(id: string): number {
    return this.#stops.get(id) ?? 0
  }

  /** Records that a task is stopped. Returns the milliseconds until it runs again. */
  noteStop(id: string): number {
    const stops = this.stopsOf(id) + 1
    this.#stops.set(id, stops)
    return Backoff.delay(stopPauses, stops)
  }

  /** Records that a task goes on. */
  noteProgress(id: string): void {
    this.#stops.delete(id)
  }

  /** Logs the recorded events that a run has not reached, once for each task and each set of events. */
  reportUnreached(id: string, events: ReadonlyArray<EventKey>): Effect.Effect<void> {
    if (events.length === 0) return Effect.void
    const described = describeEvents(events)
    if (this.#reported.get(id) === described) return Effect.void
    this.#reported.set(id, described)
    return Effect.logWarning(`the code of a task has changed: it does not reach what was recorded: ${described}`)
  }
}

/** Milliseconds that a run waits for an event which its code may reach slowly. */
export const patienceMs = (gapMs: number, stops: number): number =>
  Backoff.delay({ initialDelay: gapMs, maxDelay: maxPatienceMs }, stops + 1)

/**
 * The parts of a task that are under way while an event is stored, so that a later run knows what it must not start
 * without this event. An event beside more parts names the first ones.
 */
export const namesBeside = (event: EventKey, parts: Iterable<string>): ReadonlyArray<string> | undefined => {
  const own = textOf(event)
  const names: Array<string> = []
  for (const part of parts) {
    if (part !== own && names.push(part) === maxBeside) break
  }
  return names.length === 0 ? undefined : names
}

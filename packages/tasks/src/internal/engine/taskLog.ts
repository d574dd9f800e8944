/**
 * The log of a task as a run knows it: the events that earlier runs have observed, in their order, and those of this
 * run.
 *
 * A later run must observe the same events in the same order. Otherwise a branch could get ahead of another one that it
 * came after, and win a race or interrupt the others by its failure.
 */
import * as Iterable from "effect/Iterable"
import type { UndoReason } from "../../CurrentTask.ts"
import type { LogEnd, LogEntry } from "../store/store.ts"

/** The members that identify an event in a log. */
export type EventKey = Pick<LogEntry, "kind" | "name" | "attempt">

/** The key of an event, as a text. */
export const textOf = ({ attempt, kind, name }: EventKey): string => `${kind} ${attempt} ${name}`

/** The associated data of the record of an event. See `Cipher`. */
export const recordData = (id: string, { attempt, kind, name }: EventKey): string =>
  kind === "once" ? `${id}/once/${name}` : `${id}/${kind}/${attempt}/${name}`

const unobserved: ReadonlySet<LogEntry["kind"]> = new Set([
  "timer",
  "undo",
  "giveUp",
  "continued",
  "stopped",
  "settled",
  "patched",
  "unpatched",
  "section"
])

/**
 * Whether handlers do not observe an event: a timer is set, compensations begin, the task is given up, stopped or
 * settled, it runs with a change of the code or without it, a section begins, or the log begins.
 */
export const isUnobserved = ({ kind }: EventKey): boolean => unobserved.has(kind)

/** The parts of a task that an event names as under way beside it, at most. */
export const maxBeside = 10

/** The events of a task. */
export class TaskLog implements LogEnd {
  readonly #entries = new Map<string, LogEntry>()
  readonly #skipped: Array<LogEntry> = []
  /** The events of earlier runs that this run has not reached, in their order. */
  readonly #pending = new Map<string, number>()
  #nextSeq = 1
  #lastAt: number | undefined = undefined
  #continuation = 0
  /** Whether earlier runs have observed events. */
  readonly isReplay: boolean

  constructor(entries: Iterable<LogEntry>) {
    for (const entry of entries) {
      this.add(entry)
      if (!isUnobserved(entry)) this.#pending.set(textOf(entry), entry.seq)
    }
    this.isReplay = this.#pending.size > 0
  }

  /** The position of the next event. */
  get nextSeq(): number {
    return this.#nextSeq
  }

  /** The time of the last event. */
  get lastAt(): number | undefined {
    return this.#lastAt
  }

  /** The number of events. */
  get size(): number {
    return this.#entries.size
  }

  /** The position at which the task has begun again (`Task.continueWith`); 0 if it has not. */
  get continuation(): number {
    return this.#continuation
  }

  /** How often the task has begun, with its retries (`Task.Options.retry`). */
  get attempt(): number {
    return this.#firstOf("continued")?.attempt ?? 1
  }

  /** All events, for a run that begins again. */
  get entries(): Iterable<LogEntry> {
    return this.#entries.values()
  }

  /** Adds an event that is stored. */
  add(entry: LogEntry): void {
    this.#entries.set(textOf(entry), entry)
    this.#nextSeq = entry.seq + 1
    this.#lastAt = entry.at
    if (entry.kind === "continued") this.#continuation = entry.seq
  }

  #firstOf(kind: LogEntry["kind"]): LogEntry | undefined {
    for (const entry of this.#entries.values()) if (entry.kind === kind) return entry
    return undefined
  }

  /** Why earlier runs have begun to compensate. */
  get undoReason(): UndoReason | undefined {
    return this.#firstOf("undo")?.name as UndoReason | undefined
  }

  /** How many workers have died before the task was given up; `undefined` for any other task. */
  get givenUpAfter(): number | undefined {
    const entry = this.#firstOf("giveUp")
    return entry && Number(entry.name)
  }

  /** Whether an operator has decided that the task ends without the compensations that its code does not reach. */
  get isToSettle(): boolean {
    return this.#firstOf("settled") !== undefined
  }

  /** Whether the task has run with a handler that consists of steps; any other handler only asks, and uses `Once`. */
  get isOfDurable(): boolean {
    return Iterable.some(this.#entries.values(), ({ kind, name }) => {
      const isTimer = kind === "fired" || kind === "timer"
      return kind === "step" || kind === "received" || kind === "start" || kind === "join" || kind === "emit" ||
        kind === "undo" || kind === "continued" ||
        (isTimer && !name.startsWith("timeout/"))
    })
  }

  find(key: EventKey): LogEntry | undefined {
    return this.#entries.get(textOf(key))
  }

  /** Whether this run has not reached all events of earlier runs. */
  get hasPending(): boolean {
    return this.#pending.size > 0
  }

  /** The position of a pending event; `Infinity` for any other. */
  pendingSeq(key: EventKey): number {
    return this.#pending.get(textOf(key)) ?? Infinity
  }

  /** The position of the first pending event; `Infinity` if there is none. */
  get firstPending(): number {
    for (const seq of this.#pending.values()) return seq
    return Infinity
  }

  /** Records that the run has reached an event, or no longer waits for it. */
  markReached(key: EventKey): void {
    if (this.#pending.size > 0) this.#pending.delete(textOf(key))
  }

  /**
   * Drops the pending events before a position: the run does not reach them, because its code has changed or was
   * interrupted there.
   */
  skipBefore(seq: number): void {
    for (const [key, each] of this.#pending) {
      if (each >= seq) return
      this.#pending.delete(key)
      this.#skipped.push(this.#entries.get(key)!)
    }
  }

  /** The pending event before a position that a part of the task was under way beside. */
  findBeside(key: EventKey, before = Infinity): LogEntry | undefined {
    const text = textOf(key)
    for (const [pending, seq] of this.#pending) {
      if (seq >= before) return undefined
      const entry = this.#entries.get(pending)!
      if (entry.beside?.includes(text) === true) return entry
    }
    return undefined
  }

  /**
   * The events of earlier runs that this run has not reached. Pauses between attempts are left out, which depend on
   * times, and so is everything after the beginning of the compensations.
   */
  get unreached(): ReadonlyArray<LogEntry> {
    const all = [...this.#skipped, ...Array.from(this.#pending.keys(), (key) => this.#entries.get(key)!)]
    const end = this.#firstOf("undo")?.seq ?? Infinity
    return all.filter(({ kind, name, seq }) => seq < end && !(kind === "fired" && name.startsWith("retry/")))
  }
}

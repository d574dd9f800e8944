/**
 * Converts what version 0.1 stored of a task's handler, messages of `effect/cluster`, to a log and a row of the queue.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import { maxTime, toStoredMillis } from "./database.ts"
import { queued } from "./rows.ts"
import type { LogEntry } from "./store.ts"
import { unescape } from "./storedText.ts"

/** A message of an execution, with the last reply to it. Ids are texts, since they have up to 63 bits. */
export interface Message {
  readonly id: string
  /** Whether the message is a timer; otherwise it belongs to the workflow of the task. */
  readonly isTimer: boolean
  readonly tag: string
  readonly payload: string
  readonly isProcessed: boolean
  /** The end of a timer, in milliseconds of Unix time. */
  readonly deliverAt: number | undefined
  readonly replyId: string | undefined
  readonly reply: string | undefined
}

/** The parts of a task that version 0.1 stored elsewhere. */
export interface TaskOfCluster {
  readonly status: string
  readonly updatedAt: number
  readonly messages: ReadonlyArray<Message>
  /** The states of the questions, by key: 0 open, 1 answered, 2 withdrawn, 3 lost in a race. */
  readonly questions: ReadonlyMap<string, number>
}

/** An event without its position, which follows from the rank. */
interface RankedEvent extends Omit<LogEntry, "seq"> {
  readonly rank: bigint
}

/** An attempt of `once` that has ended. Only its value shows whether it succeeded. */
export interface OnceAttempt extends RankedEvent {
  readonly kind: "once"
  readonly value: string
}

/** The events of a task, in any order, and its row in the queue. */
export interface ConvertedTask {
  readonly events: ReadonlyArray<RankedEvent>
  /** The attempts of `once`. Those that have failed do not belong into the log. */
  readonly onceAttempts: ReadonlyArray<OnceAttempt>
  readonly state: number
  readonly wakeAt: number
}

/** The ids of the cluster count milliseconds from this time on, in their upper bits. */
const idEpoch = Date.UTC(2025, 0, 1)
const timeBits = 22n

/** The time in an id, in milliseconds of Unix time; 0 for an id that has none. */
const timeOf = (id: bigint): number => toStoredMillis(Number(id >> timeBits) + idEpoch)

const parse = (text: string | undefined): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(text ?? "")
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The value of a reply: `Complete` or `Suspended`. */
const resultOf = (reply: string | undefined): Record<string, unknown> | undefined => {
  const value = parse(reply)?.["value"]
  return isObject(value) ? value : undefined
}

/**
 * The text that an activity has returned; `undefined` if it has not ended. An activity that died, because its value has
 * no JSON form, is not in the log either: it runs again in each run.
 */
const textOf = (reply: string | undefined): string | undefined => {
  const exit = resultOf(reply)?.["exit"]
  return isObject(exit) && exit["_tag"] === "Success" && typeof exit["value"] === "string" ? exit["value"] : undefined
}

/** The name in a payload. Ids of messages have it too, but only a hash of a long one. */
const nameOf = (payload: Record<string, unknown> | undefined): string => {
  const name = payload?.["name"]
  return typeof name === "string" ? name : ""
}

/** Splits a name into its kind and the rest: `step/pay`. */
const split = (name: string): readonly [kind: string, rest: string] => {
  const slash = name.indexOf("/")
  return slash < 0 ? [name, ""] : [name.slice(0, slash), name.slice(slash + 1)]
}

const timerPrefix = "DurableClock/"

const smaller = (a: bigint | undefined, b: bigint | undefined): bigint | undefined =>
  a === undefined || (b !== undefined && b < a) ? b : a

/** Converts the messages of one task. */
export const convertExecution = ({ messages, questions, status, updatedAt }: TaskOfCluster): ConvertedTask => {
  const events: Array<RankedEvent> = []
  const onceAttempts: Array<OnceAttempt> = []
  /** The timers that have fired, and the answers, by name. */
  const fired = new Map<string, bigint>()
  const answered = new Map<string, bigint>()
  const timers = new Map<string, { readonly rank: bigint; readonly end: number }>()
  let isSuspended = false
  let wakeAt = Infinity
  const add = (kind: LogEntry["kind"], name: string, rank: bigint, at = timeOf(rank)) =>
    events.push({ kind, name, attempt: 1, value: null, startedAt: undefined, at, rank })

  for (const message of messages) {
    const id = BigInt(message.id)
    const payload = parse(message.payload)
    const name = nameOf(payload)
    if (message.isTimer) {
      const end = message.deliverAt ?? 0
      timers.set(unescape(name), { rank: id, end })
      if (!message.isProcessed) wakeAt = Math.min(wakeAt, end)
      continue
    }
    // A suspended execution with an unprocessed event is about to continue.
    if (message.tag === "run") isSuspended ||= resultOf(message.reply)?.["_tag"] === "Suspended"
    else if (!message.isProcessed) wakeAt = -1
    if (message.tag === "deferred") {
      if (name.startsWith(timerPrefix)) fired.set(unescape(name.slice(timerPrefix.length)), id)
      else {
        const [kind, key] = split(unescape(name))
        if (kind === "question") answered.set(key, id)
      }
    } else if (message.tag === "activity" && message.replyId !== undefined) {
      const value = textOf(message.reply)
      const attempt = Number(payload?.["attempt"])
      if (value === undefined || !Number.isSafeInteger(attempt)) continue
      const [kind, rest] = split(unescape(name))
      const rank = BigInt(message.replyId)
      const ended = { name: rest, attempt, value, startedAt: timeOf(id), at: timeOf(rank), rank }
      if (kind === "step") events.push({ ...ended, kind })
      else if (kind === "once") onceAttempts.push({ ...ended, kind })
      else if (kind === "sleep") events.push({ ...ended, kind: "fired", name: unescape(name) })
    }
  }

  for (const [timer, rank] of fired) {
    const [kind] = split(timer)
    if (kind === "sleep" || kind === "retry") add("fired", timer, rank)
  }
  for (const [timer, { end, rank }] of timers) {
    const [kind, name] = split(timer)
    // The name of the pause before a retry has its end.
    if (kind === "sleep" && !fired.has(timer)) add("timer", timer, rank, end)
    else if (kind === "timeout" && questions.get(name) === 0) add("timer", timer, rank, end)
  }
  for (const [key, state] of questions) {
    const timedOut = fired.get(`timeout/${key}`)
    // A question that was answered after its timer had fired takes the place of the timer: the handler has not observed
    // that the timer fired.
    const rank = state === 1 ? smaller(answered.get(key), timedOut) : timedOut
    if (rank !== undefined && state === 1) add("answer", key, rank)
    else if (rank !== undefined && state === 2) add("timeout", key, rank)
  }

  const isWaiting = isSuspended && status !== "cancelled" &&
    wakeAt >= 0 && (wakeAt < Infinity || status === "input_required")
  return {
    events,
    onceAttempts,
    state: isWaiting ? queued.waiting : queued.ready,
    wakeAt: isWaiting ? Math.min(wakeAt, maxTime) : updatedAt
  }
}

/** The log of the events, in their order. */
export const toLog = (events: ReadonlyArray<RankedEvent>): ReadonlyArray<LogEntry> => {
  const found = new Set<string>()
  const log: Array<LogEntry> = []
  for (const { rank: _, ...event } of events.toSorted((a, b) => a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0)) {
    const key = `${event.kind} ${event.attempt} ${event.name}`
    if (!found.has(key)) log.push({ ...event, seq: log.length + 1 })
    found.add(key)
  }
  return log
}

/**
 * Drives a task through a history: starts it, applies the events, waits for its end and for its deletion. Problems
 * are reported to the world.
 */
import { isFinal, type State } from "@skein/tasks/TaskState"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { newTask, settled } from "../engine/kit.ts"
import type { Event, Program } from "./generate.ts"
import { type Process, processes } from "./processes.ts"
import type { World } from "./world.ts"

/** The result of a task. */
export interface Past {
  /** The last state that was read. */
  readonly state: State
  readonly cancelled: boolean
  /** It was cancelled before its compensations began. */
  readonly cancelledFirst: boolean
  /** It expired before it was seen to end. */
  readonly expired: boolean
  /** The answers to the questions. */
  readonly answers: ReadonlyMap<string, string>
  readonly kills: number
  readonly stops: number
  /** The rows after its end, unless it has expired too. */
  readonly ledger: ReadonlyArray<{ readonly name: string; readonly key: string }>
  readonly asked: ReadonlyArray<string> | undefined
}

const caller = {
  revision: "2025-11-25",
  capabilities: { elicitation: { form: {} } },
  info: undefined,
  principal: undefined
} as const

/** The tables that may contain remains of a task, with the column of its id. */
const tables = {
  skein_tasks: "id",
  skein_task_questions: "name",
  skein_task_queue: "state",
  skein_task_events: "name",
  skein_task_log: "name"
}

/** The name of the part that asks. */
const nameOf = ({ params }: State["questions"][number]): string => String(params?.["message"])

/** Drives a task of the program. */
export const drive = (program: Program, history: ReadonlyArray<Event>, world: World) =>
  Effect.gen(function*() {
    const { kill, start, stop } = yield* processes(program, world)
    let process: Process = yield* start
    const ttl = program.ttl === undefined ? null : program.ttl * 1000
    const { createdAt, id } = yield* process.engine.submit(newTask("random", { caller, ttlMs: ttl }))
    const expiry = ttl === null ? Infinity : createdAt + ttl

    const answers = new Map<string, string>()
    /** All questions so far, by their keys; and those that can no longer be answered. */
    const names = new Map<string, string>()
    const closed = new Set<string>()
    let last: State | undefined
    let cancelled = false
    let cancelledFirst = false
    let kills = 0
    let stops = 0

    const problem = (text: string) => void world.problems.push(text)

    const look = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const state = yield* process.engine.get(id)
      if (state === undefined) {
        if (now < expiry) problem("It is gone before its time")
        return undefined
      }
      if (now >= expiry) problem("It is there after its time")
      if (last !== undefined) {
        if (state.version < last.version) problem("Its version has gone back")
        if (isFinal(last) && state.status !== last.status) problem(`It was ${last.status}, and is ${state.status}`)
      }
      if (cancelled && state.status !== "cancelled") problem(`It was cancelled, and is ${state.status}`)
      const open = new Set(state.questions.map(({ key }) => key))
      for (const key of names.keys()) if (!open.has(key)) closed.add(key)
      if (isFinal(state) && open.size > 0) problem(`It is ${state.status}, and asks`)
      for (const question of state.questions) {
        const name = nameOf(question)
        if (closed.has(question.key)) problem(`${name} is asked once more`)
        if (!names.has(question.key) && [...names.values()].includes(name)) problem(`${name} has two keys`)
        names.set(question.key, name)
      }
      if (!isFinal(state) && (open.size > 0) !== (state.status === "input_required")) {
        problem(`It is ${state.status} with ${open.size} questions`)
      }
      return last = state
    })

    /** Advances time: slowly after the task has expired, while it compensates. */
    const pass: (seconds: number) => Effect.Effect<void, TaskError> = (seconds) =>
      Effect.gen(function*() {
        let left = seconds * 1000
        while (left > 0) {
          const now = yield* Clock.currentTimeMillis
          const slow = cancelled || (now >= expiry - 1000 && now < expiry + 60_000)
          const before = now < expiry - 1000 ? expiry - 1000 - now : Infinity
          const step = slow ? Math.min(left, 1000) : Math.min(left, before)
          yield* TestClock.adjust(step)
          yield* settled
          yield* look
          left -= step
        }
      })

    const answer = (key: string, accept: boolean) =>
      Effect.gen(function*() {
        const text = `answer ${answers.size}`
        const content = accept ? { action: "accept", content: { text } } : { action: "decline" }
        const done = yield* process.engine.answer(id, key, content)
        const name = names.get(key)!
        if (done && closed.has(key)) problem(`${name} is answered twice`)
        if (done) {
          answers.set(name, accept ? text : "decline")
          closed.add(key)
        }
      })

    const happens = (event: Event) =>
      Effect.gen(function*() {
        switch (event._tag) {
          case "Pass":
            yield* settled
            return yield* pass(event.seconds)
          case "Turns":
            return yield* Effect.forEach(Array.from({ length: event.turns }), (_, turn) =>
              turn % 8 === 7
                ? Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
                : Effect.yieldNow, { discard: true })
          case "Answer": {
            const question = last?.questions[event.which]
            return question && (yield* answer(question.key, event.accept))
          }
          case "Again": {
            const key = [...closed].at(-1)
            return key && (yield* answer(key, true))
          }
          case "Stop":
          case "Kill":
            if (program.memory) return
            if (event._tag === "Stop") stops++
            else kills++
            yield* event._tag === "Stop" ? stop(process) : kill(process)
            yield* TestClock.adjust(event.seconds * 1000)
            process = yield* start
            return
          case "Cancel":
            if (yield* process.engine.cancel(id)) {
              if (last !== undefined && isFinal(last)) problem(`It was ${last.status}, and is cancelled`)
              cancelled = true
              cancelledFirst = world.reasons.length === 0
            }
        }
      })

    for (const event of history) {
      yield* look
      yield* happens(event)
    }

    const rows = (text: string) => Effect.orDie(process.sql.unsafe<Record<string, unknown>>(text))
    const over = Effect.map(rows("SELECT 1 FROM skein_task_queue"), (rows) => rows.length === 0)

    /** Answers the remaining questions, and advances time as far as necessary. */
    let pause = 1
    for (let turn = 0;; turn++) {
      yield* settled
      const state = yield* look
      if (state === undefined || (isFinal(state) && (yield* over))) break
      if (turn > 150) {
        problem(`It does not come to its end: it is ${state.status}`)
        break
      }
      for (const { key } of state.questions) yield* answer(key, true)
      if (state.questions.length > 0) pause = 1
      yield* pass(isFinal(state) ? 1 : pause)
      pause = Math.min(pause * 2, 20_000)
    }
    const expired = (yield* Clock.currentTimeMillis) >= expiry && !(last !== undefined && isFinal(last))
    const forgotten = (yield* look) === undefined
    if (last === undefined) return yield* Effect.die(new Error("It was never there"))

    const asked: Array<string> = []
    if (!forgotten) {
      for (const { params } of yield* rows("SELECT params FROM skein_task_questions")) {
        asked.push(String((JSON.parse(String(params)) as { readonly message: string }).message))
      }
      for (const [key, name] of names) {
        if (yield* process.engine.answer(id, key, { action: "decline" })) problem(`${name} is answered when it is over`)
      }
      for (const row of yield* rows("SELECT live, retained FROM skein_task_counts")) {
        if (row["live"] !== 0 || row["retained"] !== 1) problem(`It is counted as ${JSON.stringify(row)}`)
      }
      yield* process.engine.expireSoon(id)
    }
    const left = Effect.gen(function*() {
      const found: Array<string> = []
      for (const [table, column] of Object.entries(tables)) {
        const [row] = yield* rows(`SELECT ${column} AS text FROM ${table} LIMIT 1`)
        if (row !== undefined) found.push(`${table}: ${row["text"]}`)
      }
      for (const row of yield* rows("SELECT kind FROM skein_task_counts WHERE live <> 0 OR retained <> 0")) {
        found.push(`the count of ${row["kind"]}`)
      }
      return found
    })
    for (let second = 0; second < 200 && (yield* left).length > 0; second++) {
      yield* TestClock.adjust("1 second")
      yield* settled
    }
    for (const what of yield* left) problem(`It is forgotten, and this is left: ${what}`)
    const ledger = (yield* rows("SELECT name, key FROM ledger")) as unknown as Past["ledger"]
    yield* stop(process)
    return {
      state: last,
      cancelled,
      cancelledFirst,
      expired,
      answers,
      kills,
      stops,
      ledger,
      asked: forgotten ? undefined : asked
    } satisfies Past as Past
  }).pipe(Effect.scoped)

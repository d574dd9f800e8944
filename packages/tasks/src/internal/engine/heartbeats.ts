/**
 * The heartbeats of the steps of a run: the details that they report, for their next attempts and for operators, and when
 * they have reported last. Details are written at most once per `heartbeatInterval`, and always when an attempt ends that is
 * not the last one.
 */
import * as JsonForm from "@skein/protocol/JsonForm"
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { invalidOption, maxNameChars } from "../store/database.ts"
import { awaitStore, type EngineContext } from "./engineContext.ts"

/** Characters of the details of a step, as JSON. */
const maxDetailsChars = 8192

/** The part of `Run` that this module needs. */
export interface HeartbeatTarget {
  readonly engine: Pick<EngineContext, "store" | "heartbeatInterval">
  readonly task: { readonly id: string }
  readonly execution: { readonly workerId: string }
  readonly now: Effect.Effect<number>
  /** Starts a fiber that ends with the run. */
  readonly fork: (effect: Effect.Effect<void>) => Effect.Effect<unknown>
}

/** The details of a step, as JSON text. */
interface Details {
  readonly json: string
  /** In milliseconds of Unix time. */
  readonly at: number
  isStored: boolean
}

/** The associated data of the details of a step. */
export const heartbeatData = (id: string, step: string): string => `${id}/heartbeat/${step}`

/** Makes the heartbeats of one run. */
export const makeHeartbeats = (run: HeartbeatTarget) => {
  const details = new Map<string, Details>()
  /** When the running attempts began, or have reported last, by the monotonic clock. */
  const reports = new Map<string, number>()
  const pending = new Set<string>()
  let isWriting = false

  /** Writes the details of a step that are not written yet. */
  const flush = (step: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const found = details.get(step)
      if (!pending.delete(step) || found === undefined) return Effect.void
      const { engine: { store }, execution: { workerId }, task: { id } } = run
      found.isStored = true
      return awaitStore(Effect.flatMap(
        store.encrypt(found.json, heartbeatData(id, step)),
        (text) => store.heartbeats.set(id, workerId, { step, at: found.at, details: text })
      ))
    })

  const write = Effect.gen(function*() {
    while (pending.size > 0) {
      for (const step of [...pending]) yield* flush(step)
      yield* Effect.sleep(run.engine.heartbeatInterval)
    }
    isWriting = false
  })

  const noteReport = (step: string): Effect.Effect<void> =>
    Effect.map(Clock.Clock, (clock) => void reports.set(step, monotonicMillis(clock)))

  /**
   * Reports that a step makes progress. Details out of bounds are a defect. It does not wait for the write: it may be called in a
   * transaction, which the write would have to wait for.
   */
  const report = (step: string, value: unknown): Effect.Effect<void> => {
    if (value === undefined) return noteReport(step)
    const wrong = (problem: string) => Effect.die(invalidOption(`heartbeat of step "${step}": ${problem}`))
    const form = JsonForm.make(value, "its details")
    if (Result.isFailure(form)) return wrong(form.failure)
    const json = JSON.stringify(form.success)
    if (json.length > maxDetailsChars) {
      return wrong(`its details have ${json.length} characters as JSON, and may have at most ${maxDetailsChars}`)
    }
    if (step.length > maxNameChars) return wrong(`the name of the step exceeds ${maxNameChars} characters`)
    return Effect.flatMap(Effect.andThen(noteReport(step), run.now), (at) => {
      details.set(step, { json, at, isStored: details.get(step)?.isStored ?? false })
      pending.add(step)
      if (isWriting) return Effect.void
      isWriting = true
      return Effect.asVoid(run.fork(write))
    })
  }

  /** The last details of a step, in this attempt or an earlier one; `undefined`: there are none. */
  const last = (step: string): Effect.Effect<unknown> =>
    Effect.suspend(() => {
      const found = details.get(step)
      if (found !== undefined) return Effect.succeed(JSON.parse(found.json) as unknown)
      const { engine: { store }, task: { id } } = run
      return Effect.flatMap(awaitStore(store.heartbeats.list(id)), (stored) => {
        const heartbeat = stored.find((heartbeat) => heartbeat.step === step)
        if (heartbeat === undefined) return Effect.undefined
        return Effect.map(awaitStore(store.decrypt(heartbeat.details, heartbeatData(id, step))), (json) => {
          details.set(step, { json, at: heartbeat.at, isStored: true })
          return JSON.parse(json) as unknown
        })
      })
    })

  /** Removes the details of a step that has ended. */
  const remove = (step: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const found = details.get(step)
      details.delete(step)
      pending.delete(step)
      reports.delete(step)
      return found?.isStored === true
        ? awaitStore(run.engine.store.heartbeats.remove(run.task.id, step))
        : Effect.void
    })

  return { report, last, flush, remove, noteReport, lastReport: (step: string) => reports.get(step) ?? 0 }
}

/** The heartbeats of a run. */
export type Heartbeats = ReturnType<typeof makeHeartbeats>

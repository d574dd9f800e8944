/**
 * How long steps usually take, for operators: the medians of the newest tasks. They are read for steps that run for more than a
 * second, which alone are reported.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ExecutingStep, TaskPlace } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import { type Database, numberOf } from "./database.ts"
import { escape } from "./storedText.ts"

/** The newest tasks whose steps count for a median, and the fewest durations that have one. */
const newestTasks = 1000
const minDurations = 5

/** Milliseconds for which a median is kept, and how many are. */
const keptMillis = 60_000
const maxKept = 1_000

/** Adds the medians to the steps of places. */
export const makeMedians = (database: Database) => {
  const selectDurations = database.prepare(
    `SELECT log.at - log.started_at AS ms
     FROM (SELECT id, tool FROM skein_tasks ORDER BY created_at DESC, id DESC LIMIT ${newestTasks}) AS newest
     JOIN skein_task_log AS log ON log.task_id = newest.id AND log.kind = 'step' AND log.name = ?
     WHERE newest.tool = ? AND log.started_at IS NOT NULL`
  )
  const kept = new Map<string, { readonly at: number; readonly ms: number | undefined }>()
  const medianOf = Effect.fnUntraced(function*(
    tool: string,
    step: string,
    now: number
  ): Effect.fn.Return<number | undefined, TaskError> {
    const key = JSON.stringify([tool, step])
    const known = kept.get(key)
    if (known !== undefined && now - known.at < keptMillis) return known.ms
    const rows = yield* selectDurations(escape(step), escape(tool))
    const durations = rows.map((row) => numberOf(row, "ms")).sort((one, other) => one - other)
    const ms = durations.length < minDurations ? undefined : durations[Math.floor(durations.length / 2)]
    if (kept.size >= maxKept) kept.clear()
    kept.set(key, { at: now, ms })
    return ms
  })
  const add = (tool: string, place: TaskPlace): Effect.Effect<TaskPlace, TaskError> => {
    if (place._tag !== "Running" || place.steps.length === 0) return Effect.succeed(place)
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.map(
        Effect.forEach(place.steps, (step): Effect.Effect<ExecutingStep, TaskError> =>
          Effect.map(medianOf(tool, step.name, now), (medianMs) => ({ ...step, medianMs }))),
        (steps) => ({ ...place, steps })
      ))
  }
  return { add }
}

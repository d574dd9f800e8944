/**
 * Runs the commands of `skein tasks` that export a task, and import one.
 */
import * as Effect from "effect/Effect"
import { quoteName } from "../base/format.ts"
import { readText } from "../base/nodeFiles.ts"
import { operatorName } from "../base/nodeProgram.ts"
import { type CommandFailed, failed, Process } from "../base/process.ts"
import { onStore, print, type StoreLine, type TaskLine, unknown } from "./tasks.ts"

/** An export has the values of a task, or their shapes. */
export interface ExportLine extends TaskLine {
  readonly redact: boolean
}

/** `skein tasks export`. */
export const exportTask = ({ redact, ...line }: ExportLine): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*({ exportTask }) {
    const exported = yield* exportTask(line.id, { redact })
    if (exported === undefined) return yield* unknown(line.id)
    const { console: { print } } = yield* Process
    yield* print(JSON.stringify(exported, undefined, 2))
  })

/** The value of a JSON file. */
const readJson = (file: string): Effect.Effect<unknown, CommandFailed> =>
  Effect.flatMap(
    Effect.mapError(readText(file), ({ problem }) => failed(2, `${quoteName(file)} cannot be read: ${problem}`)),
    (text) =>
      Effect.try({
        try: () => JSON.parse(text) as unknown,
        catch: () => failed(2, `${quoteName(file)} is not a JSON file`)
      })
  )

/** `skein tasks import`. */
export const importTask = (
  line: StoreLine & { readonly file: string; readonly start: boolean }
): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*({ importTask }) {
    const { start } = line
    const { id } = yield* importTask(yield* readJson(line.file), { start, by: operatorName() })
    yield* print(
      line,
      { id, started: start },
      () => start ? `The task is ${id}. It goes on.` : `The task is ${id}. It does not go on: rerun starts it again.`
    )
  })

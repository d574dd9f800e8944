/**
 * The log of the long tasks: one line for each completed step.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { WriteStream } from "node:tty"
import { styleText } from "node:util"

/** Logs an event of a task. Does nothing by default. */
export type Log = (taskId: string, event: string) => Effect.Effect<void>

export const KitchenLog = Context.Reference<Log>("tour/KitchenLog", { defaultValue: () => () => Effect.void })

/** Writes the log to a stream, with the first four characters of the task's id in each line. */
export const logKitchenTo = (stream: WriteStream): Layer.Layer<never> =>
  Layer.succeed(KitchenLog, (taskId, event) =>
    Effect.sync(() => {
      const label = styleText("magenta", `kitchen ${taskId.slice(0, 4)}`, { stream })
      stream.write(`  ${label}  ${event}\n`)
    }))

/**
 * The kitchen, where long tasks are at work, and what it says meanwhile.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { WriteStream } from "node:tty"
import { styleText } from "node:util"

/** What says what is done for a task. Nobody listens by default. */
export type Say = (taskId: string, what: string) => Effect.Effect<void>

export const Kitchen = Context.Reference<Say>("tour/Kitchen", { defaultValue: () => () => Effect.void })

/** A kitchen that is heard on a stream: a line for each thing that is done, with the beginning of the task's id. */
export const heard = (stream: WriteStream): Layer.Layer<never> =>
  Layer.succeed(Kitchen, (taskId, what) =>
    Effect.sync(() => {
      const who = styleText("magenta", `kitchen ${taskId.slice(0, 4)}`, { stream })
      stream.write(`  ${who}  ${what}\n`)
    }))

/**
 * The parts of a server that each of its processes has apart, although the processes should share them: counts of a rate
 * limit in memory, tasks in memory. A server of several processes refuses to start with them.
 *
 * @example
 * const layer = Layer.effectDiscard(ProcessLocal.report({
 *   what: "counts in memory (Counts.layer)",
 *   remedy: "use Counts.layerSql"
 * }))
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** A part of a server, and how its processes can share it. */
export interface Part {
  /** Its name, with the function that made it. */
  readonly what: string
  /** An instruction, such as "use PostgresTasks". */
  readonly remedy: string
}

/** Receives the parts while the server is built; undefined for a server of one process. */
export const Receiver = /* @__PURE__ */ Context.Reference<((part: Part) => void) | undefined>(
  "@skein/runtime/ProcessLocal/Receiver",
  { defaultValue: () => undefined }
)

/** Reports a part while it is made. */
export const report = (part: Part): Effect.Effect<void> => Effect.map(Receiver, (receive) => receive?.(part))

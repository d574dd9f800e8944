/**
 * The operations on the output of tasks, which `output.ts` implements for both databases.
 *
 * An output only grows: an item keeps its offset, and offsets have no gaps. A transaction that is rolled back leaves no item,
 * and its offset is that of the next one. A text that is not the id of a task is that of a task without items, also to
 * those who listen.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TaskError } from "../../TaskError.ts"
import type { OutputItem } from "../../TaskState.ts"

/** The output of tasks. */
export interface OutputStore {
  /** A value as JSON text. Fails with `InvalidOutput` for one without a JSON form, and for one that is too large. */
  readonly check: (value: unknown) => Effect.Effect<string, TaskError>
  /**
   * Adds an item, in the transaction of the caller if there is one, and returns its offset. Fails with `TooMuchOutput`
   * without a change. Does nothing for a task that has ended.
   */
  readonly add: (id: string, text: string) => Effect.Effect<number | undefined, TaskError>
  /** A page of the items from an offset on. */
  readonly read: (id: string, from: number) => Effect.Effect<ReadonlyArray<OutputItem>, TaskError>
  /** The number of items. */
  readonly count: (id: string) => Effect.Effect<number, TaskError>
  /** Copies the items before an offset, and up to a time in milliseconds of Unix time, to a new task. */
  readonly copy: (id: string, to: string, before: number, until: number) => Effect.Effect<void, TaskError>
  /** Calls a listener after items were added, in this process or another one, and when notifications may have been lost. */
  readonly listen: (id: string, listener: () => void) => Effect.Effect<void, never, Scope.Scope>
}

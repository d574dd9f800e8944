/**
 * The part of the store of tasks that concerns the children of a task.
 */
import type * as Effect from "effect/Effect"
import type { ChildCounts } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import type { State } from "../../TaskState.ts"

/** The place of a child in its parent. */
export interface ChildLink {
  /** The id of the parent. */
  readonly parent: string
  /** The name of the child, or of its group. */
  readonly name: string
  /** Its position in the group, from 0; a negative number outside of groups. */
  readonly item: number
  /** Whether it continues when its parent ends. */
  readonly isDetached: boolean
}

/** How far the children of a group have come. */
export interface GroupProgress {
  /** The position of the next child. */
  readonly started: number
  /** The number of children that have not ended. */
  readonly live: number
  /** The position of the first child that has failed or was cancelled; `undefined` if there is none. */
  readonly failed: number | undefined
}

/** The operations on the children of a task. */
export interface ChildStore {
  readonly progress: (parent: string, name: string) => Effect.Effect<GroupProgress, TaskError>
  /**
   * The states of the children of a group by their positions, of `limit` positions from one on; `undefined` for a deleted
   * child. A task that has expired has a state until it is deleted.
   */
  readonly states: (
    parent: string,
    name: string,
    from: number,
    limit: number
  ) => Effect.Effect<ReadonlyMap<number, State | undefined>, TaskError>
  /** The names of the children outside of groups that have ended. */
  readonly findEnded: (parent: string) => Effect.Effect<ReadonlySet<string>, TaskError>
  /** The ids of children that have not ended, without detached ones, at most `limit`; of one group, or of all. */
  readonly findLive: (parent: string, name: string | undefined, limit: number) => Effect.Effect<
    ReadonlyArray<string>,
    TaskError
  >
  /** The parent of a task, and the numbers of its children. */
  readonly relatives: (
    id: string
  ) => Effect.Effect<{ readonly parent: string | undefined; readonly children: ChildCounts }, TaskError>
}

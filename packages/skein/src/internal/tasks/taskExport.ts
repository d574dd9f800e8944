/**
 * A task with its log as one JSON value: for bug reports and tests.
 */
import type { JsonObject } from "../base/messages.ts"
import type { StoredCaller, TaskLabels, TaskOutcome, TaskOwner, TaskStatus } from "./taskState.ts"

/** An event of the log of an exported task. */
export interface ExportedEvent {
  /** Its position in the log, from 1. */
  readonly seq: number
  readonly kind:
    | "step"
    | "once"
    | "timer"
    | "fired"
    | "answer"
    | "timeout"
    | "received"
    | "start"
    | "join"
    | "emit"
    | "undo"
    | "giveUp"
    | "continued"
    | "stopped"
    | "settled"
    | "patched"
    | "unpatched"
    | "section"
  readonly name: string
  readonly attempt: number
  /** When a step began, in milliseconds of Unix time. */
  readonly startedAt?: number | undefined
  /** When it happened, or when a timer ends, in milliseconds of Unix time. */
  readonly at: number
  /** The record of a step, or the value of an event, as JSON text. */
  readonly value?: string | undefined
  /** Other parts of the task that were under way when it was recorded. */
  readonly beside?: ReadonlyArray<string> | undefined
}

/** A question of an exported task. `lost`: another part of the task was faster than its answer. */
export interface ExportedQuestion {
  readonly key: string
  readonly method: string
  readonly state: "open" | "answered" | "withdrawn" | "lost"
  readonly params?: JsonObject | undefined
  readonly answer?: JsonObject | undefined
}

/** A task with its log. Its children, and the events that it has not received, are not a part of it. */
export interface ExportedTask {
  readonly format: "skein-task"
  /** The version of the format: it grows when members change their meaning. Members that a reader does not know are ignored. */
  readonly version: 1
  /**
   * `true`: names, times and the structure of the values are those of the task. A text of a value is its length
   * (`<12 characters>`), a number is 0, a `true` is `false`; owner, principal and trace are left out. The texts of members
   * named `_tag`, `type`, `action` and `failure` stay, by which code tells cases apart.
   */
  readonly redacted: boolean
  /** In milliseconds of Unix time. */
  readonly exportedAt: number
  readonly task: {
    readonly id: string
    readonly tool: string
    readonly pool: string
    readonly owner: TaskOwner
    readonly status: TaskStatus
    readonly statusMessage?: string | undefined
    /** Whether it is `completed` with a result that has `isError`. */
    readonly isError: boolean
    /** In milliseconds of Unix time. */
    readonly createdAt: number
    /** In milliseconds of Unix time. */
    readonly updatedAt: number
    /** Milliseconds from its creation until it is cancelled and deleted; `null`: never. */
    readonly ttlMs: number | null
    readonly pollIntervalMs: number
    readonly caller: StoredCaller
    readonly labels: TaskLabels
    readonly args: JsonObject
    /** The outcome of a task that is `completed` or `failed`. */
    readonly outcome?: TaskOutcome | undefined
  }
  readonly questions: ReadonlyArray<ExportedQuestion>
  readonly log: ReadonlyArray<ExportedEvent>
}

/** How the code of a process compares with an exported task. */
export type TaskReplay =
  /**
   * The code reaches all that is recorded, and ends as the task did. `next`: the part that it begins then, in a task that has
   * not ended, or that ended by a cancellation.
   */
  | { readonly _tag: "Matches"; readonly next: string | undefined }
  /** The first difference: `code` is what the code has in the place of `recorded`. */
  | {
    readonly _tag: "Differs"
    /** The position of the recorded event in the log; `undefined`: behind the log. */
    readonly seq: number | undefined
    readonly recorded: string
    readonly code: string
  }

/**
 * The options of `skein tasks` that select tasks of a store.
 */
import type { TaskStatus } from "@skein/protocol/Task"
import type { ListPosition } from "@skein/tasks/TaskState"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { BulkLine } from "../tasks/bulk.ts"
import { choice, invalid, option, text, texts, toggle } from "./commandLine.ts"

/** Milliseconds of the units of an age. */
const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** An option with a time, in milliseconds of Unix time: a date of ISO 8601, or an age. */
export const time = (name: string, description: string) =>
  option(name, "<time>", description, (text) => {
    const [, number, unit = ""] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
    if (number !== undefined) return Effect.map(Clock.currentTimeMillis, (now) => now - Number(number) * units[unit]!)
    // Without an offset, JavaScript reads a date as UTC, and a date with a time as local time.
    const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(/T\d\d:\d\d(:[\d.]+)?$/.test(text) ? `${text}Z` : text) : NaN
    return Number.isNaN(at)
      ? invalid(
        `--${name} must be a date such as 2026-02-28 or 2026-02-28T09:30Z, or an age such as 90m, 12h or 7d: ${
          JSON.stringify(text)
        }`
      )
      : Effect.succeed(at)
  })

const statuses: ReadonlyArray<TaskStatus> = ["working", "input_required", "completed", "failed", "cancelled"]

export const statusFlag = choice(
  "status",
  statuses,
  "<status>",
  `Only tasks with this status: ${statuses.join(", ")}; can be repeated`
).pipe(Flag.atLeast(0))

/** The options of a filter. A server has those of `statusFlag` only. */
export const filterFlags = {
  tool: text("tool", "<name>", "Only tasks of this tool"),
  pool: text("pool", "<name>", "Only tasks of this pool"),
  owner: text("owner", "<owner>", "Only tasks of this owner"),
  worker: text("worker", "<id>", "Only tasks that this worker runs"),
  labels: Flag.map(
    texts("label", "<name=value>", "Only tasks with this label; can be repeated").pipe(
      Flag.mapEffect((words) =>
        Effect.forEach(words, (word) => {
          const at = word.indexOf("=")
          return at > 0
            ? Effect.succeed([word.slice(0, at), word.slice(at + 1)] as const)
            : invalid(`--label must be a name and a value, such as order=42: ${JSON.stringify(word)}`)
        })
      )
    ),
    (entries) => entries.length === 0 ? undefined : Object.fromEntries(entries)
  ),
  after: time("after", "Only tasks that were created then or later: a date in UTC, or an age such as 90m, 12h or 7d"),
  before: time("before", "Only tasks that were created before"),
  endedAfter: time("ended-after", "Only tasks that have ended then or later"),
  endedBefore: time("ended-before", "Only tasks that have ended before")
}

/** The names of these options. */
export const filterNames = [
  "tool",
  "pool",
  "owner",
  "worker",
  "labels",
  "after",
  "before",
  "endedAfter",
  "endedBefore"
] as const

/** The place behind which a page begins, as the page before has printed it. */
export const cursorFlag = option("cursor", "<cursor>", "The cursor of the last page, to go on behind it", (text) => {
  const [, createdAt, id] = /^(\d{1,16})\.([\w-]{1,64})$/.exec(text) ?? []
  return id === undefined
    ? invalid(`--cursor must be one that the command has printed: ${JSON.stringify(text)}`)
    : Effect.succeed<ListPosition>({ createdAt: Number(createdAt), id })
})

const when = (flag: Flag.Flag<boolean>): Flag.Flag<true | undefined> => Flag.map(flag, (value) => value || undefined)

/** The options of a command that changes many tasks. */
export const selectionFlags = {
  ...filterFlags,
  status: statusFlag,
  hasFailed: when(toggle("failed", "Only tasks that have failed")),
  all: toggle("all", "All tasks to which the command applies"),
  yes: toggle("yes", "Change the selected tasks; without it the command only counts them"),
  cursor: cursorFlag
}

/** A command line that may have these options. */
export interface SelectionLine extends Partial<BulkLine> {
  readonly all?: boolean
}

/** Whether a command changes the tasks that options select, as opposed to one task. */
export const selectsMany = (line: SelectionLine): boolean =>
  line.yes !== undefined && (line.all === true || line.hasFailed === true || (line.status ?? []).length > 0 ||
    filterNames.some((name) => line[name] !== undefined))

/** Fails if a command names a task, and selects tasks too. */
export const checkSelection = (hasTask: boolean) =>
  hasTask ? invalid("The id of a task, and options that select tasks, exclude each other") : Effect.void

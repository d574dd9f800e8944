/**
 * What a server says of a task, as a state.
 */
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { DetailedTask, Task } from "@skein/protocol/Task"
import * as Result from "effect/Result"
import type { Progress } from "@skein/runtime/RequestContext"
import type { Described, State } from "../../RemoteTask.ts"

/** A task as one of the two shapes tells it: the extension with what its status brings along, 2025-11-25 without. */
export type TaskStatus = Task | DetailedTask

/** Whether a task is over. */
export const isFinal = ({ status }: Pick<TaskStatus, "status">): boolean =>
  status !== "working" && status !== "input_required"

// No option: what is longer fits no header (`Mcp-Name`), and most servers' ids are of 20 to 64 characters.
const maxTaskId = 4_096

/** Whether a task can be asked for by what the server calls it. */
export const isTaskId = (id: string): boolean => id.length > 0 && id.length <= maxTaskId

/** What any task says of itself: other members have not been read, and may be anything. */
export const bare = (task: Task): Task => {
  const { createdAt, lastUpdatedAt, pollIntervalMs, status, statusMessage, taskId, ttlMs } = task
  return {
    taskId,
    status,
    ...(statusMessage === undefined ? undefined : { statusMessage }),
    createdAt,
    lastUpdatedAt,
    ttlMs,
    ...(pollIntervalMs === undefined ? undefined : { pollIntervalMs })
  }
}

/** Reads a `notifications/tasks/status`; what is malformed says nothing. */
export const readNotice = (params: JsonObject): TaskStatus | undefined => {
  const read = Codec.decodeParams(Method.LegacyTaskStatus, "2025-11-25", params)
  return Result.isSuccess(read) ? bare(read.success) : undefined
}

/** When the server changed it last, in milliseconds of its clock; undefined where it says nothing that is a time. */
const changedAt = ({ lastUpdatedAt }: TaskStatus): number | undefined => {
  const time = Date.parse(lastUpdatedAt)
  return Number.isNaN(time) ? undefined : time
}

/**
 * Whether what is told is older than what is known: it may have been overtaken on its way. What is final is never left,
 * and never too old.
 */
export const isStale = (known: TaskStatus, told: TaskStatus): boolean => {
  if (isFinal(known)) return true
  const [before, now] = [changedAt(known), changedAt(told)]
  return !isFinal(told) && before !== undefined && now !== undefined && now < before
}

/** How old a task was when it was told of, as far as the server's own clock says: it may have been older. */
export const ageOf = (told: TaskStatus): number => {
  const age = (changedAt(told) ?? 0) - Date.parse(told.createdAt)
  return age > 0 ? age : 0
}

/** What all states have. */
const described = (told: TaskStatus, progress: Progress | undefined): Described => {
  const { createdAt, lastUpdatedAt, pollIntervalMs, statusMessage, taskId, ttlMs } = told
  return {
    taskId,
    ...(statusMessage === undefined ? undefined : { statusMessage }),
    createdAt,
    lastUpdatedAt,
    ttlMs,
    ...(pollIntervalMs === undefined ? undefined : { pollIntervalMs }),
    ...(progress === undefined ? undefined : { progress })
  }
}

/** The state of a task that is not over. What is over without its result yet is shown as at work. */
export const stateOf = (told: TaskStatus, progress: Progress | undefined): State => {
  const common = described(told, progress)
  if (told.status !== "input_required") return { ...common, status: "working" }
  return { ...common, status: "input_required", inputRequests: "inputRequests" in told ? told.inputRequests : {} }
}

/** The state that a task has ended in. */
export const endOf = (
  told: TaskStatus,
  progress: Progress | undefined,
  end:
    | Pick<Extract<State, { status: "completed" }>, "status" | "result">
    | Pick<
      Extract<State, { status: "failed" }>,
      "status" | "error"
    >
    | Pick<Extract<State, { status: "cancelled" }>, "status">
): State => ({ ...described(told, progress), ...end })

/** Whether two tellings would be the same state. */
export const isSame = (a: TaskStatus, b: TaskStatus): boolean =>
  a.status === b.status && a.statusMessage === b.statusMessage && a.lastUpdatedAt === b.lastUpdatedAt &&
  a.ttlMs === b.ttlMs && a.pollIntervalMs === b.pollIntervalMs &&
  ("inputRequests" in a ? Object.keys(a.inputRequests).join("\n") : "") ===
    ("inputRequests" in b ? Object.keys(b.inputRequests).join("\n") : "")

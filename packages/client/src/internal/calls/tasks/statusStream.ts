/**
 * Converts the status that a server sends to the state of a task.
 */
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { DetailedTask, Task } from "@skein/protocol/Task"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import type { Progress } from "@skein/runtime/RequestContext"
import type { Cancelled, Completed, Described, Failed, State } from "../../../RemoteTask.ts"

/**
 * The status of a task in one of the two forms: the extension sends the result or the input requests with it,
 * 2025-11-25 does not.
 */
export type TaskStatus = Task | DetailedTask

/** Whether a status is final. */
export const isFinal = ({ status }: Pick<TaskStatus, "status">): boolean =>
  status !== "working" && status !== "input_required"

// Not an option: a longer id does not fit into a header (`Mcp-Name`), and the ids of most servers have 20 to 64
// characters.
const maxTaskId = 4_096

/** Whether the id of a task can be used in requests. */
export const isTaskId = (id: string): boolean => id.length > 0 && id.length <= maxTaskId

/** The members of any task. Other members were not decoded, and may be anything. */
export const bare = (task: Task): Task =>
  Struct.pick(task, ["taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"])

/** Decodes a `notifications/tasks/status`; undefined if it is malformed. */
export const readNotice = (params: JsonObject): TaskStatus | undefined => {
  const read = Codec.decodeParams(Method.LegacyTaskStatus, "2025-11-25", params, [])
  return Result.isSuccess(read) ? bare(read.success) : undefined
}

/** When the task changed last, in milliseconds of the server's clock; undefined if that is not a time. */
const changedAt = ({ lastUpdatedAt }: TaskStatus): number | undefined => {
  const time = Date.parse(lastUpdatedAt)
  return Number.isNaN(time) ? undefined : time
}

/**
 * Whether a received status is older than the known one: it may have been overtaken on its way. A final status never
 * changes, and is never too old.
 */
export const isStale = (known: TaskStatus, received: TaskStatus): boolean => {
  if (isFinal(known)) return true
  const [before, now] = [changedAt(known), changedAt(received)]
  return !isFinal(received) && before !== undefined && now !== undefined && now < before
}

/** The age of a task when its status was sent, by the server's own clock: at least this much. */
export const ageOf = (received: TaskStatus): number => {
  const age = (changedAt(received) ?? 0) - Date.parse(received.createdAt)
  return age > 0 ? age : 0
}

/** The members of all states. */
const described = (received: TaskStatus, progress: Progress | undefined): Described => {
  const { status: _, ...members } = bare(received)
  return progress === undefined ? members : { ...members, progress }
}

/**
 * The state of a task that has not ended. A task that has ended, but whose result was not fetched yet, is shown as
 * working.
 */
export const stateOf = (received: TaskStatus, progress: Progress | undefined): State => {
  const common = described(received, progress)
  if (received.status !== "input_required") return { ...common, status: "working" }
  return {
    ...common,
    status: "input_required",
    inputRequests: "inputRequests" in received ? received.inputRequests : {}
  }
}

/** The state that a task has ended in. */
export const endOf = (
  received: TaskStatus,
  progress: Progress | undefined,
  end: Omit<Completed, keyof Described> | Omit<Failed, keyof Described> | Omit<Cancelled, keyof Described>
): State => ({ ...described(received, progress), ...end })

/** Whether two statuses result in the same state. */
export const isSame = (a: TaskStatus, b: TaskStatus): boolean =>
  a.status === b.status && a.statusMessage === b.statusMessage && a.lastUpdatedAt === b.lastUpdatedAt &&
  a.ttlMs === b.ttlMs && a.pollIntervalMs === b.pollIntervalMs &&
  ("inputRequests" in a ? Object.keys(a.inputRequests).join("\n") : "") ===
    ("inputRequests" in b ? Object.keys(b.inputRequests).join("\n") : "")

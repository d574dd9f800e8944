/**
 * The receiver of alerts. Without `TaskAlerts` there is none, and each report costs one comparison.
 */
import * as Context from "effect/Context"
import type { QueueCount } from "./taskMetrics.ts"

/** The task that an alert is about. Its id may be enough to read it: keep it from those who may not. */
export interface AlertedTask {
  readonly id: string
  readonly tool: string
  readonly pool: string
}

/** An event that an operator should know of. `message` may hold what callers have sent. */
export type TaskAlert =
  /** `failed`: a JSON-RPC error, or a defect. `tool_error`: an error in the words of the tool, which its user reads. */
  | {
    readonly _tag: "Failed"
    readonly task: AlertedTask
    readonly outcome: "failed" | "tool_error"
    readonly message: string | undefined
  }
  /** Its workers have ended while they ran it, `maxAttempts` times in a row. */
  | { readonly _tag: "GivenUp"; readonly task: AlertedTask; readonly message: string | undefined }
  /** Its code has changed. `message` names both sides. */
  | { readonly _tag: "NeedsAttention"; readonly task: AlertedTask; readonly message: string }
  /** `ready`: the number of tasks that are ready. `oldestMs`: how long the oldest one has been, in milliseconds. */
  | {
    readonly _tag: "QueueOld"
    readonly pool: string
    readonly tool: string
    readonly ready: number
    readonly oldestMs: number
  }

/** Receives alerts. `report` returns at once, and does not throw. */
export interface AlertSink {
  readonly report: (alert: TaskAlert) => void
  /** Milliseconds after which a ready task is reported; `undefined`: the queue is not read. */
  readonly queueOlderThan: number | undefined
}

/** The alerts of the engines that are built with them. */
export const CurrentTaskAlerts = /* @__PURE__ */ Context.Reference<AlertSink | undefined>(
  "@skein/tasks/TaskAlerts",
  { defaultValue: () => undefined }
)

/** Milliseconds after which an old queue is reported again. */
const repeatMs = 3_600_000

/** Returns a function that reports the queues that are old, from the counts of the queue at a time in milliseconds. */
export const makeQueueAlerts = ({ report }: AlertSink, olderThan: number) => {
  const reportedAt = new Map<string, number>()
  return (counts: ReadonlyArray<QueueCount>, now: number): void => {
    const old = new Set<string>()
    for (const { count, oldestMs, pool, state, tool } of counts) {
      if (state !== "ready" || oldestMs === undefined || oldestMs <= olderThan) continue
      const key = JSON.stringify([pool, tool])
      old.add(key)
      const last = reportedAt.get(key)
      if (last !== undefined && now - last < repeatMs) continue
      reportedAt.set(key, now)
      report({ _tag: "QueueOld", pool, tool, ready: count, oldestMs })
    }
    for (const key of reportedAt.keys()) if (!old.has(key)) reportedAt.delete(key)
  }
}

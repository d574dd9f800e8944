/**
 * The tasks that a client follows, and what is heard of them on its lines.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Task } from "@skein/protocol/Task"
import type { Progress } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import type * as Effect from "effect/Effect"
import type { ClientError } from "../../ClientError.ts"
import type { Options } from "../../RemoteTask.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { CallToolOptions } from "../calls/options.ts"
import type { Listening } from "./taskSubscription.ts"
import { resolve, type Resolved } from "./settings.ts"

/**
 * The progress of one call, also of the task that it becomes: "the `progressToken` provided in the initial request
 * remains valid throughout the task lifetime" (2025-11-25, tasks).
 */
export class TaskProgress {
  readonly #onProgress: (progress: Progress) => void
  /** What the server knows it by. */
  token: number | undefined = undefined
  /** The last one. */
  latest: Progress | undefined = undefined
  /** Who follows the task. */
  onReport: (() => void) | undefined = undefined

  constructor(onProgress: (progress: Progress) => void) {
    this.#onProgress = onProgress
  }

  /** Takes a report, if it is more than the last one. */
  readonly report = (progress: Progress): void => {
    if (this.latest !== undefined && progress.progress <= this.latest.progress) return
    this.latest = progress
    this.onReport?.()
    this.#onProgress(progress)
  }
}

/** A call that was answered with a task. */
export interface CreatedTask {
  readonly seed: Task
  readonly connection: NegotiatedConnection
  readonly tool: string
  readonly options: CallToolOptions
  /**
   * When the whole of it has to be over, in milliseconds of the keeper's clock; `Infinity` where the call did not say.
   */
  readonly deadline: number
  readonly reports: TaskProgress | undefined
}

/** What becomes of it. */
export type TaskHandler<R> = (created: CreatedTask) => Effect.Effect<R, ClientError>

// No option: tasks that were started and are followed by nobody are of no end, and progress is no more than a courtesy.
const maxReports = 1_000

interface Waiting {
  readonly peer: Peer
  readonly reports: TaskProgress
}

/** See the module's text. */
export class TaskRegistry {
  readonly settings: Resolved
  /** Whether the extension is declared, and calls are augmented. */
  readonly enabled: boolean
  readonly #warn: (...message: ReadonlyArray<unknown>) => void
  /** What the server tells of them, in the request era. */
  listening: Listening | undefined = undefined
  #followed: Map<string, Set<(task: JsonRpc.JsonObject) => void>> | undefined = undefined
  #waiting: Map<unknown, Waiting> | undefined = undefined

  constructor(settings: Options | boolean | undefined, warn: (...message: ReadonlyArray<unknown>) => void) {
    this.settings = resolve(typeof settings === "object" ? settings : {})
    this.enabled = settings !== false
    this.#warn = warn
  }

  /** Hears of the changes of a task; gives what ends that. */
  follow(taskId: string, listener: (task: JsonRpc.JsonObject) => void): () => void {
    const followed = this.#followed ??= new Map()
    const listeners = followed.get(taskId) ?? new Set()
    followed.set(taskId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) followed.delete(taskId)
    }
  }

  /** Hears a notification of the server. */
  onNotification({ method, params }: JsonRpc.Notification): void {
    if (method !== Method.LegacyTaskStatus.name || params === undefined) return
    for (const listener of this.#followed?.get(params["taskId"] as string) ?? []) listener(params)
  }

  /** Hears the progress of a call by its token, also after the call was answered; until it is dismissed. */
  expect(peer: Peer, token: number, reports: TaskProgress): void {
    this.dismiss(reports)
    const waiting = this.#waiting ??= new Map()
    // Tokens begin anew with each connection, and what was known by one before is not any more.
    waiting.delete(token)
    waiting.set(token, { peer, reports })
    reports.token = token
    if (waiting.size > maxReports) waiting.delete(waiting.keys().next().value)
  }

  dismiss(reports: TaskProgress | undefined): void {
    if (reports?.token === undefined) return
    if (this.#waiting?.get(reports.token)?.reports === reports) this.#waiting.delete(reports.token)
  }

  /** Hears of progress that belongs to no call that waits. */
  onUnmatchedProgress(peer: Peer, token: unknown, progress: Progress): void {
    const waiting = this.#waiting?.get(token)
    if (waiting?.peer !== peer) return
    try {
      waiting.reports.report(progress)
    } catch (defect) {
      this.#warn("The progress of a task was not handled", defect)
    }
  }
}

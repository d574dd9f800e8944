/**
 * The tasks that a client follows, and the notifications about them.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Task } from "@skein/protocol/Task"
import * as Options from "@skein/runtime/Options"
import type { Progress } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import type * as Effect from "effect/Effect"
import type { ClientError } from "../../ClientError.ts"
import type { Options as RemoteTaskOptions } from "../../RemoteTask.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { Configured } from "../connection/clientOptions.ts"
import type { CallToolOptions } from "../base/callOptions.ts"
import type { FixedBounds } from "../base/fixedBounds.ts"

/**
 * The progress of one call and of the task that it becomes: "the `progressToken` provided in the initial request
 * remains valid throughout the task lifetime" (2025-11-25, tasks).
 */
export class TaskProgress {
  readonly #onProgress: (progress: Progress) => void
  /** The progress token that the server received. */
  token: number | undefined = undefined
  /** The last progress. */
  latest: Progress | undefined = undefined
  /** Called for each report while the task is followed. */
  onReport: (() => void) | undefined = undefined

  constructor(onProgress: (progress: Progress) => void) {
    this.#onProgress = onProgress
  }

  /** Receives a report, and ignores it unless the progress has increased. */
  readonly report = (progress: Progress): void => {
    if (this.latest !== undefined && progress.progress <= this.latest.progress) return
    this.latest = progress
    this.onReport?.()
    this.#onProgress(progress)
  }
}

/** How a client follows tasks. Times are in milliseconds. */
export type TaskSettings = Options.Resolved<RemoteTaskOptions> & FixedBounds

/** A call that was answered with a task. */
export interface CreatedTask {
  readonly seed: Task
  readonly connection: NegotiatedConnection
  readonly tool: string
  readonly options: CallToolOptions
  /** When the whole call must be over, in milliseconds of the monotonic clock; `Infinity` without `maxTimeout`. */
  readonly deadline: number
  readonly reports: TaskProgress | undefined
}

/** Handles the task of a call. */
export type TaskHandler<R> = (created: CreatedTask) => Effect.Effect<R, ClientError>

// Not an option: tasks that were started but are not followed may be unlimited in number, and progress is optional.
const maxReports = 1_000

/** The tasks that a client follows. */
export class TaskRegistry {
  readonly #client: Configured
  #settings: TaskSettings | undefined = undefined
  #followed: Map<string, Set<(task: JsonRpc.JsonObject) => void>> | undefined = undefined
  #waiting: Map<unknown, { readonly peer: Peer; readonly reports: TaskProgress }> | undefined = undefined

  constructor(client: Configured) {
    this.#client = client
  }

  /** Whether the extension is declared, and calls are sent as tasks. */
  get enabled(): boolean {
    return this.#client.options.tasks !== false
  }

  get settings(): TaskSettings {
    const { tasks } = this.#client.options
    return this.#settings ??= {
      ...this.#client.bounds,
      ...Options.resolve<RemoteTaskOptions>(typeof tasks === "object" ? tasks : {}, { maxFailures: 10 }, {
        pollInterval: "1 second"
      })
    }
  }

  /** Calls a listener for each status notification of a task. Returns a function that removes the listener. */
  follow(taskId: string, listener: (task: JsonRpc.JsonObject) => void): () => void {
    const followed = this.#followed ??= new Map()
    const listeners = followed.get(taskId) ?? new Set()
    followed.set(taskId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) followed.delete(taskId)
    }
  }

  /** Receives a notification of the server. */
  onNotification({ method, params }: JsonRpc.Notification): void {
    if (method !== Method.LegacyTaskStatus.name || params === undefined) return
    for (const listener of this.#followed?.get(params["taskId"] as string) ?? []) listener(params)
  }

  /** Registers the progress of a call by its token until it is dismissed, also after the response to the call. */
  expect(peer: Peer, token: number, reports: TaskProgress): void {
    this.dismiss(reports)
    const waiting = this.#waiting ??= new Map()
    // Tokens start again with each connection, and the tokens of the previous one are invalid.
    waiting.delete(token)
    waiting.set(token, { peer, reports })
    reports.token = token
    if (waiting.size > maxReports) waiting.delete(waiting.keys().next().value)
  }

  dismiss(reports: TaskProgress | undefined): void {
    if (reports?.token === undefined) return
    if (this.#waiting?.get(reports.token)?.reports === reports) this.#waiting.delete(reports.token)
  }

  /** Receives progress that belongs to no pending request. */
  onUnmatchedProgress(peer: Peer, token: unknown, progress: Progress): void {
    const waiting = this.#waiting?.get(token)
    if (waiting?.peer !== peer) return
    try {
      waiting.reports.report(progress)
    } catch (defect) {
      this.#client.warn("The progress of a task was not handled", defect)
    }
  }
}

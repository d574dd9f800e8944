/**
 * One input request that is answered as a task: its status, its result, and the requests that wait for the result.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { withRelated } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import type { TaskStatus } from "@skein/protocol/Task"
import * as RandomId from "@skein/runtime/RandomId"
import type { Answer } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"

/** The response to `tasks/result`. */
export type Settled = Effect.Effect<Answer, McpError.McpError>

/** One input request that is answered as a task. */
export class Task {
  /** "If context-binding is unavailable, receivers MUST generate cryptographically secure task IDs with enough entropy." */
  readonly id: string = RandomId.make(32)
  /** Increases from task to task. */
  readonly number: number
  /** The method of the input request. */
  readonly method: string
  /** Milliseconds since 1970, as are the other times. */
  readonly createdAt: number
  readonly expiresAt: number
  status: TaskStatus = "working"
  /** The fiber that runs the handler, and the one that waits for the time to live. */
  work: Fiber.Fiber<unknown> | undefined = undefined
  life: Fiber.Fiber<unknown> | undefined = undefined
  readonly #ttl: number
  readonly #pollInterval: number
  #message: string | undefined = undefined
  #updatedAt: number
  readonly #settled = Deferred.makeUnsafe<Answer, McpError.McpError>()
  #fetched = false
  #waiting = 0

  constructor(number: number, method: string, now: number, ttl: number, pollInterval: number) {
    this.number = number
    this.method = method
    this.createdAt = now
    this.expiresAt = now + ttl
    this.#updatedAt = now
    this.#ttl = ttl
    this.#pollInterval = pollInterval
  }

  /** Whether its status is final. */
  get over(): boolean {
    return Deferred.isDoneUnsafe(this.#settled)
  }

  /** Whether it may be deleted: the server has fetched the result or cancelled the task. */
  get settled(): boolean {
    return this.#fetched || this.status === "cancelled"
  }

  /** The task as the server receives it. */
  get state(): JsonObject {
    return {
      taskId: this.id,
      status: this.status,
      ...(this.#message === undefined ? undefined : { statusMessage: this.#message }),
      createdAt: new Date(this.createdAt).toISOString(),
      lastUpdatedAt: new Date(this.#updatedAt).toISOString(),
      ttl: this.#ttl === Infinity ? null : this.#ttl,
      pollInterval: this.#pollInterval
    }
  }

  /**
   * Waits for the result: "receivers MUST return from `tasks/result` exactly what the underlying request would have
   * returned, whether that is a successful result or a JSON-RPC error."
   */
  get result(): Settled {
    return Effect.suspend(() => {
      this.#fetched = this.over
      this.#waiting++
      return Effect.ensuring(Deferred.await(this.#settled), Effect.sync(() => void this.#waiting--))
    })
  }

  /** Stores the result of the handler. Returns an effect that logs a defect. */
  end(exit: Exit.Exit<JsonObject, McpError.McpError>, now: number): Effect.Effect<void> {
    if (Exit.isSuccess(exit)) {
      // "The `tasks/result` operation MUST include this metadata in its response."
      this.#become("completed", undefined, now, Effect.succeed(withRelated(exit.value, this.id)))
      return Effect.logDebug(`The task of ${this.method} has completed`)
    }
    const { reasons } = exit.cause
    const failed = reasons.some(Cause.isDieReason) ? undefined : reasons.find(Cause.isFailReason)
    if (failed !== undefined) {
      this.#become("failed", failed.error.message, now, Effect.fail(failed.error))
      return Effect.logDebug(`The task of ${this.method} has failed: ${failed.error.message}`)
    }
    // The server receives the same error for a handler that dies as it does without a task.
    const reference = globalThis.crypto.randomUUID()
    const error = McpError.internal(reference)
    this.#become("failed", error.message, now, Effect.fail(error))
    return Effect.logError(`${this.method} failed, reference ${reference}`, exit.cause)
  }

  /** Cancels it, at the request of the server. */
  cancel(now: number): void {
    const message = "The task was cancelled by request."
    const error = new McpError.McpError({ reason: "InternalError", message })
    this.work?.interruptUnsafe()
    this.#become("cancelled", message, now, Effect.fail(error))
  }

  /** Ends it. Requests about it fail from now on. */
  drop(settled: Settled): void {
    this.work?.interruptUnsafe()
    this.#settle(settled)
  }

  #become(status: TaskStatus, message: string | undefined, now: number, settled: Settled): void {
    this.status = status
    this.#message = message
    this.#updatedAt = now
    this.#settle(settled)
  }

  #settle(settled: Settled): void {
    this.work = undefined
    if (this.#waiting > 0) this.#fetched = true
    Deferred.doneUnsafe(this.#settled, settled)
  }
}

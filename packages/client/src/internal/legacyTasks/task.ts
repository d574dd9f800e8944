/**
 * One question that is answered as a task: where it stands, and who waits for what becomes of it.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { withRelated } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import type { TaskStatus } from "@skein/protocol/Task"
import type { Answer } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"

/** What `tasks/result` is answered with. */
export type Settled = Effect.Effect<Answer, McpError.McpError>

/**
 * "If context-binding is unavailable, receivers MUST generate cryptographically secure task IDs with enough entropy."
 */
const makeId = (): string => Base64Url.encode(globalThis.crypto.getRandomValues(new Uint8Array(24)))

/** See the module's text. */
export class Task {
  readonly id: string = makeId()
  /** Grows from task to task. */
  readonly number: number
  /** The method of the question. */
  readonly method: string
  /** Milliseconds since 1970, as are the other times. */
  readonly createdAt: number
  readonly expiresAt: number
  status: TaskStatus = "working"
  /** What asks the host, and what waits for the end of the task's time. */
  work: Fiber.Fiber<unknown> | undefined = undefined
  life: Fiber.Fiber<unknown> | undefined = undefined
  readonly #ttl: number
  readonly #pollInterval: number
  #message: string | undefined = undefined
  #updatedAt: number
  #settled: Settled | undefined = undefined
  #fetched = false
  #waiting: Set<(settled: Settled) => void> | undefined = undefined

  constructor(number: number, method: string, now: number, ttl: number, pollInterval: number) {
    this.number = number
    this.method = method
    this.createdAt = now
    this.expiresAt = now + ttl
    this.#updatedAt = now
    this.#ttl = ttl
    this.#pollInterval = pollInterval
  }

  /** Whether it is in a status that it does not leave. */
  get over(): boolean {
    return this.#settled !== undefined
  }

  /** Whether nobody misses it: the server has heard what became of it. */
  get settled(): boolean {
    return this.#fetched || this.status === "cancelled"
  }

  /** The task as it is told. */
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
   * Waits for what becomes of it: "receivers MUST return from `tasks/result` exactly what the underlying request would
   * have returned, whether that is a successful result or a JSON-RPC error."
   */
  get result(): Settled {
    return Effect.suspend(() => {
      if (this.#settled === undefined) return this.#wait
      this.#fetched = true
      return this.#settled
    })
  }

  get #wait(): Settled {
    return Effect.callback((resume) => {
      const waiting = this.#waiting ??= new Set()
      waiting.add(resume)
      return Effect.sync(() => void waiting.delete(resume))
    })
  }

  /** The handler has ended. Gives what the log has to be told. */
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
    // What the server is told of a handler that dies is what it is told where there is no task.
    const reference = globalThis.crypto.randomUUID()
    const error = McpError.internal(reference)
    this.#become("failed", error.message, now, Effect.fail(error))
    return Effect.logError(`${this.method} failed, reference ${reference}`, exit.cause)
  }

  /** The server does not want it any more. */
  cancel(now: number): void {
    const message = "The task was cancelled by request."
    const error = new McpError.McpError({ reason: "InternalError", message })
    this.work?.interruptUnsafe()
    this.#become("cancelled", message, now, Effect.fail(error))
  }

  /** It ends, and nobody can ask after it any more. */
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
    this.#settled = settled
    this.work = undefined
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined && waiting.size > 0) this.#fetched = true
    for (const resume of waiting ?? []) resume(settled)
  }
}

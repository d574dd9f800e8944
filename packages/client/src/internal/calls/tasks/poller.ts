/**
 * Follows a task to its end: it polls the status, receives status notifications, and answers input requests.
 */
import { endOf, retryAfter } from "../../base/errors.ts"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { ClientError } from "../../../ClientError.ts"
import { mayPollAgain, taskNotFound, taskTimedOut } from "./failures.ts"
import { type Listener, Listening } from "./taskSubscription.ts"
import { makeQuestions, Memory, type Questions } from "./questions.ts"
import * as Requests from "./requests.ts"
import { ageOf, isFinal, isSame, isStale, readNotice, type TaskStatus } from "./statusStream.ts"
import * as Backoff from "@skein/runtime/Backoff"
import type { TaskSettings } from "../taskRegistry.ts"

/** How a task has ended: with its result, with a protocol error of the server, or cancelled. */
export type End =
  | { readonly _tag: "Result"; readonly raw: JsonObject }
  | { readonly _tag: "Fault"; readonly error: McpError.McpError }
  | { readonly _tag: "Cancelled" }

/** A task that is being followed. */
export interface Followed {
  readonly id: string
  readonly terms: Requests.TaskContext
  /** The last status that the server sent. */
  readonly latest: TaskStatus
  /** Receives a status of the server. */
  readonly receive: (received: TaskStatus) => void
  /** Called when progress was reported. */
  readonly reported: () => void
}

/**
 * Whether the server sends status notifications of the task: it does, it does not, or it failed to send one and is no
 * longer relied on.
 */
type StatusNotifications = "active" | "none" | "unreliable"

/**
 * The delay in milliseconds before the first poll after subscribing. Many servers send the present status first. Then
 * no poll is needed, and none is interrupted by that notification, which would close its HTTP connection.
 */
const firstPollDelay = 20

// A task whose changes are sent as notifications is polled so many times less often.
const backstopFactor = 10

// The delays after failed polls are at least the poll interval, however long it is.
const maxDelay = 30_000

/** The delay after failed polls, in milliseconds. */
const delayOf = (interval: number, failures: number): number =>
  Backoff.delay({ maxDelay, initialDelay: interval }, failures, 0, interval)

/** Follows a task to its end. */
export class TaskPoller implements Listener {
  readonly #task: Followed
  /** Opened when there is something to do. */
  readonly #signal = Latch.makeUnsafe()
  // Input requests are remembered from one run to the next.
  readonly #memory = new Memory()
  readonly #createdAt: number
  #notifications: StatusNotifications = "none"
  // Whether the status was polled since subscribing: the server does not notify of changes before that.
  #caughtUp = false
  #failures = 0
  // When to poll next, in milliseconds of the monotonic clock.
  #due = 0
  // Whether an answer may not have reached the server, so that open input requests may be answered already.
  #unsure = false
  #problem: ClientError | undefined = undefined
  #payload: JsonObject | undefined = undefined
  #blocked: Fiber.Fiber<unknown> | undefined = undefined
  /** Whether the server does not have the task, or its time to live is over. */
  isGone = false

  constructor(task: Followed) {
    this.#task = task
    this.#createdAt = this.#now - ageOf(task.latest)
  }

  get id(): string {
    return this.#task.id
  }

  /** Receives a status of the task, from any source. */
  push(received: TaskStatus): void {
    if (isStale(this.#task.latest, received)) return
    this.#unsure = false
    this.#accept(received)
    this.#signal.openUnsafe()
  }

  /** Schedules the next poll after a status that is not stale, and passes the status on if it differs. */
  #accept(received: TaskStatus): void {
    this.#schedule(received)
    if (!isSame(this.#task.latest, received)) this.#task.receive(received)
  }

  /** Polls as soon as possible. */
  pollNow(): void {
    this.#due = this.#now
    this.#signal.openUnsafe()
  }

  /** Follows the task to its end. It may be run again after it was interrupted. */
  get run(): Effect.Effect<End, ClientError> {
    return Effect.scoped(Effect.gen({ self: this }, function*() {
      const scope = yield* Effect.scope
      const { reports } = this.#terms
      this.#notifications = "none"
      this.#blocked = undefined
      this.#payload = undefined
      this.#failures = 0
      this.#schedule(this.#task.latest)
      if (this.#terms.unseen && this.#task.latest.status === "working") this.#due = this.#now
      const onNotification = (params: JsonObject) => {
        const received = readNotice(params)
        if (received !== undefined) this.push(received)
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => this.#client.tasks.follow(this.#task.id, onNotification)),
        (leave) => Effect.sync(leave)
      )
      if (reports !== undefined) reports.onReport = () => this.#task.reported()
      const questions = this.#questions(scope)
      if (!isFinal(this.#task.latest)) {
        // Subscribes to status notifications if the server sends them. Otherwise the task is only polled.
        yield* Listening.of(this.#client, this.#settings.maxSubscriptions).join(this)
      }
      while (true) {
        if (this.#problem !== undefined) return yield* this.#problem
        if (this.#arrived !== undefined) return this.#arrived
        const { latest } = this.#task
        if (isFinal(latest)) return yield* this.#ended(latest)
        if (this.#unsure) {
          // The next poll finds out which input requests are open.
        } else if (latest.status === "input_required") {
          if ("inputRequests" in latest) yield* questions.take(latest.inputRequests)
          else yield* this.#block(scope)
        } else yield* questions.take({})
        yield* this.#wait
      }
    }))
  }

  // ---- polling

  /** Waits until there is something to do: a signal was sent, or the next poll is due. */
  get #wait(): Effect.Effect<unknown, ClientError> {
    return Effect.suspend(() => {
      const now = this.#now
      if (now >= this.#terms.deadline) return Effect.fail(taskTimedOut(this.#task.id))
      const until = Math.min(this.#due, this.#terms.deadline)
      if (until > now) return Effect.raceFirst(this.#signalled, Effect.sleep(until - now))
      // A notification that arrives during a poll is as good as its response.
      return Effect.raceFirst(this.#look, this.#signalled)
    })
  }

  /** Waits for the signal, and resets it. */
  get #signalled(): Effect.Effect<unknown> {
    return Effect.andThen(this.#signal.await, this.#signal.close)
  }

  get #look(): Effect.Effect<void, ClientError> {
    return Effect.matchEffect(Requests.look(this.#terms, this.#left), {
      onSuccess: (received) => this.#seen(received),
      onFailure: (error) => this.#missed(error)
    })
  }

  #seen(received: TaskStatus): Effect.Effect<void, ClientError> {
    this.#failures = 0
    this.#unsure = false
    const { status } = this.#task.latest
    // If the server had sent a notification of this change, the status would be known already.
    if (this.#notifications === "active" && received.status !== status && this.#caughtUp) {
      this.#notifications = "unreliable"
    }
    this.#caughtUp = true
    if (isStale(this.#task.latest, received)) this.#schedule(this.#task.latest)
    else this.#accept(received)
    if (!this.#isPast(received)) return Effect.void
    return Effect.fail(taskNotFound(this.#task.id, "its time to live is over"))
  }

  #missed(error: ClientError): Effect.Effect<void, ClientError> {
    const { client: { supervisor } } = this.#terms
    if (error.reason._tag === "TaskNotFound") {
      this.isGone = true
      return Effect.fail(error)
    }
    if (this.#now >= this.#terms.deadline) return Effect.fail(taskTimedOut(this.#task.id))
    // The next server may have another lifecycle.
    if (!mayPollAgain(error) && error.reason._tag !== "Unsupported") return Effect.fail(error)
    this.#failures++
    if (this.#failures >= this.#settings.maxFailures) return Effect.fail(error)
    const asked = Math.min(retryAfter(error) ?? 0, Backoff.maxRetryAfter)
    this.#due = this.#now +
      Math.max(delayOf(this.#interval(this.#task.latest), this.#failures), asked)
    // If no connection follows, there is nothing to wait for.
    return endOf(error) === undefined ? Effect.void : Effect.asVoid(supervisor.connection)
  }

  /**
   * "If the task has a non-null `ttlMs`, clients MAY treat the TTL as a backstop": the first poll after it is the last.
   */
  #isPast({ status, ttlMs }: TaskStatus): boolean {
    return ttlMs !== null && !isFinal({ status }) && this.#now - this.#createdAt > ttlMs
  }

  /** The poll interval, given the suggestion of the server. */
  #interval({ pollIntervalMs }: TaskStatus): number {
    const { maxPollInterval, minPollInterval, pollInterval } = this.#settings
    const suggested = Math.max(pollIntervalMs ?? pollInterval, minPollInterval)
    return Math.min(suggested, Math.max(minPollInterval, maxPollInterval))
  }

  #schedule(received: TaskStatus): void {
    const interval = this.#interval(received)
    const wait = this.#notifications === "active"
      ? Math.max(interval, Math.min(interval * backstopFactor, this.#settings.maxPollInterval))
      : interval
    const past = received.ttlMs === null ? Infinity : this.#createdAt + received.ttlMs + interval
    this.#due = Math.min(this.#now + wait, Math.max(past, this.#now + interval))
  }

  // ---- the end

  #ended(received: TaskStatus): Effect.Effect<End, ClientError> {
    if (received.status === "cancelled") return Effect.succeed({ _tag: "Cancelled" })
    if ("result" in received) return Effect.succeed({ _tag: "Result", raw: received.result as JsonObject })
    if ("error" in received) {
      const error = McpError.fromErrorObject(received.error, this.#client.supervisor.last.revision)
      return Effect.succeed({ _tag: "Fault", error })
    }
    return Effect.gen({ self: this }, function*() {
      const blocked = this.#blocked
      // The request for the result is on its way, if it was sent.
      if (blocked !== undefined) {
        const { callClock, timeouts } = this.#client.supervisor
        yield* callClock.timeoutOption(Fiber.await(blocked), timeouts.timeout)
      }
      return this.#arrived ?? (yield* this.#fetched)
    })
  }

  /** The result, if it arrived while the task was followed. */
  get #arrived(): End | undefined {
    return this.#payload === undefined ? undefined : { _tag: "Result", raw: this.#payload }
  }

  /** "`tasks/result` returns exactly what the underlying request would have returned", including an error. */
  get #fetched(): Effect.Effect<End, ClientError> {
    return Effect.gen({ self: this }, function*() {
      for (let failures = 1;; failures++) {
        const { deadline } = this.#terms
        if (this.#now >= deadline) return yield* taskTimedOut(this.#task.id)
        const left = this.#left
        const fetched = yield* Effect.result(Requests.payload(this.#terms, left))
        if (Result.isSuccess(fetched)) return { _tag: "Result", raw: fetched.success } as const
        const { failure } = fetched
        if (failure.reason._tag === "ProtocolError") return { _tag: "Fault", error: failure.reason.error } as const
        if (failure.reason._tag === "Unsupported" && this.#client.supervisor.last.isStateless) {
          // The server was replaced by one of the stateless revision, whose status contains the result.
          const seen = yield* Requests.look(this.#terms, left)
          if (isFinal(seen) && ("result" in seen || "error" in seen)) return yield* this.#ended(seen)
        }
        if (!mayPollAgain(failure) || failures >= this.#settings.maxFailures) return yield* failure
        if (endOf(failure) !== undefined) yield* this.#client.supervisor.connection
        const wait = delayOf(this.#interval(this.#task.latest), failures)
        yield* Effect.sleep(Math.min(wait, deadline - this.#now))
      }
    })
  }

  // ---- notifications and input requests

  /** The server sends status notifications of the task from now on. */
  subscribed(): void {
    if (this.#notifications !== "none") return
    this.#notifications = "active"
    this.#caughtUp = false
    this.#due = Math.min(this.#due, this.#now + firstPollDelay)
    this.#signal.openUnsafe()
  }

  /** The server no longer sends notifications of the task, or some may have been missed. */
  subscriptionLost(): void {
    if (this.#notifications !== "active") return
    this.#notifications = "none"
    this.pollNow()
  }

  #questions(scope: Scope.Scope): Questions {
    const failed = (error: ClientError) => {
      this.#problem ??= error
      this.#signal.openUnsafe()
    }
    const unsure = () => {
      this.#unsure = true
      this.#due = this.#now + this.#interval(this.#task.latest)
      this.#signal.openUnsafe()
    }
    return makeQuestions({ terms: this.#terms, failed, unsure }, scope, this.#memory)
  }

  /** Requests the result in the background, so that the server has a stream for its input requests (2025-11-25). */
  #block(scope: Scope.Scope): Effect.Effect<void> {
    return Effect.suspend(() => {
      const connection = this.#client.supervisor.current
      if (this.#blocked !== undefined || connection === undefined) return Effect.void
      const waiting = Effect.matchEffect(Requests.blockedPayload(this.#terms, connection), {
        onSuccess: (raw) =>
          Effect.sync(() => {
            this.#payload = raw
            this.#signal.openUnsafe()
          }),
        // The next poll finds out the status.
        onFailure: () =>
          Effect.sync(() => {
            this.#blocked = undefined
          })
      })
      return Effect.map(Effect.forkIn(waiting, scope), (fiber) => {
        if (fiber.pollUnsafe() === undefined) this.#blocked = fiber
      })
    })
  }

  // ---- members of the task

  get #terms(): Followed["terms"] {
    return this.#task.terms
  }

  get #client(): Followed["terms"]["client"] {
    return this.#task.terms.client
  }

  get #settings(): TaskSettings {
    return this.#client.tasks.settings
  }

  /** The time until the deadline in milliseconds, if there is one. */
  get #left(): number | undefined {
    const { deadline } = this.#terms
    return deadline === Infinity ? undefined : Math.max(deadline - this.#now, 1)
  }

  get #now(): number {
    return this.#client.supervisor.now()
  }
}

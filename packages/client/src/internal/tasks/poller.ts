/**
 * How a task is followed to its end: it is looked at, its changes are heard of, and what it asks is answered.
 */
import { endOf } from "../errors.ts"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { ClientError } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import { mayLookAgain, taskNotFound, taskTimedOut } from "./failures.ts"
import { type Listener, Listening } from "./taskSubscription.ts"
import { Memory, Questions } from "./questions.ts"
import * as Requests from "./requests.ts"
import { backstopOf, delayOf, intervalOf } from "./settings.ts"
import { Signal } from "./signal.ts"
import { ageOf, isFinal, isSame, isStale, readNotice, type TaskStatus } from "./statusStream.ts"
import type { End, Followed } from "./policy.ts"

/**
 * Whether its changes are told: they are, they are not; or one was kept from this side, and what is told is not
 * trusted.
 */
type Telling = "in force" | "none" | "mistrusted"

/**
 * Milliseconds after which a task is looked at whose changes are told from now on. Many servers begin with how it
 * stands; then there is no look, and none that is cut off when that comes, together with its connection.
 */
const greeting = 20

/** See the module's text. */
export class TaskPoller implements Listener {
  readonly #task: Followed
  readonly #signal = new Signal()
  // What was asked is remembered from one course to the next.
  readonly #asked = new Memory()
  readonly #born: number
  #telling: Telling = "none"
  // Whether it was looked at since it was subscribed to: what has changed before nobody had to tell.
  #caughtUp = false
  #failures = 0
  // When to look next, in milliseconds of the keeper's clock.
  #due = 0
  // Whether an answer was not taken, so that what is open may be answered already.
  #unsure = false
  #problem: ClientError | undefined = undefined
  #payload: JsonObject | undefined = undefined
  #blocked: Fiber.Fiber<unknown> | undefined = undefined
  /** Whether it has turned out that the server does not know the task, or that its time is over. */
  isGone = false

  constructor(task: Followed) {
    this.#task = task
    this.#born = this.#now - ageOf(task.told)
  }

  get id(): string {
    return this.#task.id
  }

  /** Follows the task to its end. It may be run again when it was interrupted. */
  get run(): Effect.Effect<End, ClientError> {
    return Effect.scoped(Effect.flatMap(Effect.scope, (scope) => this.#follow(scope)))
  }

  /** Hears how the task stands, from wherever. */
  push(told: TaskStatus): void {
    if (isStale(this.#task.told, told)) return
    this.#unsure = false
    this.#schedule(told)
    if (!isSame(this.#task.told, told)) this.#task.tell(told)
    this.#signal.tell()
  }

  /** Looks as soon as it can. */
  pollNow(): void {
    this.#due = this.#now
    this.#signal.tell()
  }

  #follow(scope: Scope.Scope): Effect.Effect<End, ClientError> {
    const follow = Effect.gen({ self: this }, function*() {
      const { reports } = this.#terms
      this.#telling = "none"
      this.#blocked = undefined
      this.#payload = undefined
      this.#failures = 0
      this.#schedule(this.#task.told)
      if (this.#terms.unseen && this.#task.told.status === "working") this.#due = this.#now
      const heard = (params: JsonObject) => {
        const told = readNotice(params)
        if (told !== undefined) this.push(told)
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => this.#client.tasks.follow(this.#task.id, heard)),
        (leave) => Effect.sync(leave)
      )
      if (reports !== undefined) reports.onReport = () => this.#task.reported()
      const questions = this.#questions(scope)
      if (!isFinal(this.#task.told)) yield* this.#listen
      while (true) {
        if (this.#problem !== undefined) return yield* this.#problem
        if (this.#arrived !== undefined) return this.#arrived
        const { told } = this.#task
        if (isFinal(told)) return yield* this.#ended(told)
        if (this.#unsure) {
          // What is open is known after the next look.
        } else if (told.status === "input_required") {
          if ("inputRequests" in told) yield* questions.take(told.inputRequests)
          else yield* this.#block(scope)
        } else yield* questions.take({})
        yield* this.#wait
      }
    })
    return Scope.provide(follow, scope)
  }

  // ---- looking

  /** Waits until there is something to do: it was told, or it is time to look. */
  get #wait(): Effect.Effect<void, ClientError> {
    return Effect.suspend(() => {
      const now = this.#now
      if (now >= this.#terms.deadline) return Effect.fail(taskTimedOut(this.#task.id))
      const until = Math.min(this.#due, this.#terms.deadline)
      if (until > now) return Effect.raceFirst(this.#signal.wait, Effect.sleep(until - now))
      // What is told meanwhile is as good as what the look would find.
      return Effect.raceFirst(this.#look, this.#signal.wait)
    })
  }

  get #look(): Effect.Effect<void, ClientError> {
    return Effect.suspend(() => {
      const { deadline } = this.#terms
      const left = deadline === Infinity ? undefined : Math.max(deadline - this.#now, 1)
      return Effect.matchEffect(Requests.look(this.#terms, left), {
        onSuccess: (told) => this.#seen(told),
        onFailure: (error) => this.#missed(error)
      })
    })
  }

  #seen(told: TaskStatus): Effect.Effect<void, ClientError> {
    return Effect.suspend(() => {
      this.#failures = 0
      this.#unsure = false
      const { status } = this.#task.told
      // Had the server told of it, it would be known already.
      if (this.#telling === "in force" && told.status !== status && this.#caughtUp) this.#telling = "mistrusted"
      this.#caughtUp = true
      if (isStale(this.#task.told, told)) this.#schedule(this.#task.told)
      else {
        this.#schedule(told)
        if (!isSame(this.#task.told, told)) this.#task.tell(told)
      }
      return this.#isPast(told) ? this.#lost("its time to live is over") : Effect.void
    })
  }

  #missed(error: ClientError): Effect.Effect<void, ClientError> {
    const { client: { supervisor } } = this.#terms
    if (error.reason._tag === "TaskNotFound") {
      this.isGone = true
      return Effect.fail(error)
    }
    if (this.#now >= this.#terms.deadline) return Effect.fail(taskTimedOut(this.#task.id))
    // The next server may be of the other era.
    if (!mayLookAgain(error) && error.reason._tag !== "Unsupported") return Effect.fail(error)
    this.#failures++
    if (this.#failures >= this.#settings.maxFailures) return Effect.fail(error)
    const asked = Math.min(Reconnect.retryAfter(error) ?? 0, supervisor.timeouts.backoff.maxRetryAfter)
    this.#due = this.#now +
      Math.max(delayOf(this.#interval(this.#task.told), this.#failures), asked)
    // Where no connection follows any more there is nothing to wait for.
    return endOf(error) === undefined ? Effect.void : Effect.asVoid(supervisor.connection)
  }

  #lost(why: string): Effect.Effect<never, ClientError> {
    return Effect.fail(taskNotFound(this.#task.id, why))
  }

  /**
   * "If the task has a non-null `ttlMs`, clients MAY treat the TTL as a backstop": a look after it has been the last.
   */
  #isPast({ status, ttlMs }: TaskStatus): boolean {
    return ttlMs !== null && !isFinal({ status }) && this.#now - this.#born > ttlMs
  }

  #interval({ pollIntervalMs }: TaskStatus): number {
    return intervalOf(this.#settings, pollIntervalMs)
  }

  #schedule(told: TaskStatus): void {
    const interval = this.#interval(told)
    const wait = this.#telling === "in force" ? backstopOf(this.#settings, interval) : interval
    const past = told.ttlMs === null ? Infinity : this.#born + told.ttlMs + interval
    this.#due = Math.min(this.#now + wait, Math.max(past, this.#now + interval))
  }

  // ---- the end

  #ended(told: TaskStatus): Effect.Effect<End, ClientError> {
    if (told.status === "cancelled") return Effect.succeed({ _tag: "Cancelled" })
    if ("result" in told) return Effect.succeed({ _tag: "Result", raw: told.result as JsonObject })
    if ("error" in told) {
      const error = McpError.fromErrorObject(told.error, this.#client.supervisor.last.revision)
      return Effect.succeed({ _tag: "Fault", error })
    }
    return Effect.gen({ self: this }, function*() {
      const blocked = this.#blocked
      // It is on its way, if it was asked for.
      if (blocked !== undefined) {
        yield* Effect.timeoutOption(Fiber.await(blocked), this.#client.supervisor.timeouts.timeout)
      }
      return this.#arrived ?? (yield* this.#fetched)
    })
  }

  /** What has come as the result, while it was waited for. */
  get #arrived(): End | undefined {
    return this.#payload === undefined ? undefined : { _tag: "Result", raw: this.#payload }
  }

  /** "`tasks/result` returns exactly what the underlying request would have returned", an error too. */
  get #fetched(): Effect.Effect<End, ClientError> {
    return Effect.gen({ self: this }, function*() {
      for (let failures = 1;; failures++) {
        const { deadline } = this.#terms
        if (this.#now >= deadline) return yield* taskTimedOut(this.#task.id)
        const left = deadline === Infinity ? undefined : deadline - this.#now
        const fetched = yield* Effect.result(Requests.payload(this.#terms, left))
        if (Result.isSuccess(fetched)) return { _tag: "Result", raw: fetched.success } as const
        const { failure } = fetched
        if (failure.reason._tag === "ProtocolError") return { _tag: "Fault", error: failure.reason.error } as const
        if (!mayLookAgain(failure) || failures >= this.#settings.maxFailures) return yield* failure
        if (endOf(failure) !== undefined) yield* this.#client.supervisor.connection
        const wait = delayOf(this.#interval(this.#task.told), failures)
        yield* Effect.sleep(Math.min(wait, deadline - this.#now))
      }
    })
  }

  // ---- what is told, and asked

  /** Has the server tell of the changes, where it does: otherwise the task is looked at. */
  get #listen(): Effect.Effect<void, never, Scope.Scope> {
    const { tasks } = this.#client
    return (tasks.listening ??= new Listening(this.#client, this.#settings.maxSubscriptions)).join(this)
  }

  /** Hears that its changes are told from now on. */
  subscribed(): void {
    if (this.#telling !== "none") return
    this.#telling = "in force"
    this.#caughtUp = false
    this.#due = Math.min(this.#due, this.#now + greeting)
    this.#signal.tell()
  }

  /** Hears that they are not, or that some may have been missed. */
  subscriptionLost(): void {
    if (this.#telling !== "in force") return
    this.#telling = "none"
    this.pollNow()
  }

  #questions(scope: Scope.Scope): Questions {
    const { maxInputRequests, inputRequestConcurrency } = this.#client.answers.bounds
    const { maxTaskInputRequests } = this.#settings
    return new Questions(
      { maxInputRequests, inputRequestConcurrency, maxTaskInputRequests },
      {
        ready: (questions, count) =>
          this.#client.answers.ready(this.#client.supervisor.last, "tools/call", questions, count),
        reply: (answers) => Requests.update(this.#terms, answers),
        failed: (error) => {
          this.#problem ??= error
          this.#signal.tell()
        },
        unsure: () => {
          this.#unsure = true
          this.#due = this.#now + this.#interval(this.#task.told)
          this.#signal.tell()
        }
      },
      scope,
      this.#asked
    )
  }

  /** Waits for the result meanwhile, so that the server has a stream to ask on: in 2025-11-25. */
  #block(scope: Scope.Scope): Effect.Effect<void> {
    return Effect.suspend(() => {
      const connection = this.#client.supervisor.current
      if (this.#blocked !== undefined || connection === undefined) return Effect.void
      const waiting = Effect.matchEffect(Requests.blockedPayload(this.#terms, connection), {
        onSuccess: (raw) =>
          Effect.sync(() => {
            this.#payload = raw
            this.#signal.tell()
          }),
        // How the task stands is what the next look says.
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

  // ---- what it is made of

  get #terms(): Followed["terms"] {
    return this.#task.terms
  }

  get #client(): Followed["terms"]["client"] {
    return this.#task.terms.client
  }

  get #settings(): Followed["settings"] {
    return this.#task.settings
  }

  get #now(): number {
    return this.#client.supervisor.now()
  }
}

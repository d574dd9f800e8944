/**
 * Runs async handlers: functions that return a value or a promise, with a `HandlerContext`.
 *
 * The fiber of the request runs the effects of the context itself, one after the other, so that a task whose handler
 * does one thing at a time is not taken for one with parallel branches. Effects that start while it runs another one get
 * fibers of their own, which end with it.
 */
import type { Implementation } from "@skein/protocol/Implementation"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Scope from "effect/Scope"
import type * as Elicitation from "../../Elicitation.ts"
import type { AsyncHandler, HandlerContext, Log } from "../../HandlerContext.ts"
import type { Progress } from "../../Progress.ts"
import type { HandlerError } from "../../HandlerError.ts"
import type { Principal } from "../../Principal.ts"
import type { AsyncState, State } from "../../State.ts"
import type { StateError } from "../../StateError.ts"
import { attempt, causeOf } from "../base/attempt.ts"

/** Converts an async handler to a handler that returns an effect. */
export const toEffect = <Input, A, R>(
  handler: AsyncHandler<Input, A, R>
): (input: Input) => Effect.Effect<A, HandlerError, R | McpRequest> =>
(input) =>
  Effect.withFiber((fiber) =>
    new RunningHandler(fiber.context as Context.Context<R | McpRequest>).supervise((context) => handler(input, context))
  )

/** The next action of the fiber of a handler: it runs an effect of the context, or ends. */
type Next<A> =
  | { readonly _tag: "Run"; readonly effect: Effect.Effect<void> }
  | { readonly _tag: "End"; readonly exit: Exit.Exit<A, HandlerError> }

/** The context of one call of a handler. All members are its own, and need no `this`: handlers may take them out. */
class RunningHandler<R> implements HandlerContext<R> {
  readonly signal: AbortSignal
  readonly request: RequestContext
  readonly principal: Principal | undefined
  readonly client: Partial<Implementation> | undefined
  readonly #context: Context.Context<R | McpRequest>
  readonly #controller = new AbortController()
  readonly #branches = new Set<Fiber.Fiber<unknown, unknown>>()
  /** Whether the fiber of the request runs no effect of the context, and none waits for it. */
  #isFree = true
  #next: Next<never> | undefined = undefined
  /** Continues the fiber of the request, if it waits. */
  #resume: (() => void) | undefined = undefined
  /** Whether the function has returned or thrown, or its promise is settled: then it does not end early. */
  #isSettled = false
  /** Whether the handler has ended: no effect of the context runs any more. */
  #isOver = false
  /** Closed when the handler ends: releases the values of the session that it uses. */
  #scope: Scope.Closeable | undefined = undefined

  constructor(context: Context.Context<R | McpRequest>) {
    const request = Context.get(context as Context.Context<McpRequest>, McpRequest)
    this.#context = context
    this.signal = this.#controller.signal
    this.request = request
    this.principal = request.caller.principal
    this.client = request.caller.info as Partial<Implementation> | undefined
  }

  readonly header = (name: string): string | undefined => this.request.origin?.header?.(name.toLowerCase())

  /** Calls the handler, and runs the effects of its context until it ends. */
  supervise<A>(
    call: (context: HandlerContext<R>) => A | Promise<A>
  ): Effect.Effect<A, HandlerError, R | McpRequest> {
    const next = Effect.callback<Next<A>>((resume) => {
      this.#resume = () => {
        const next = this.#next!
        this.#next = undefined
        this.#resume = undefined
        resume(Effect.succeed(next))
      }
      if (this.#next !== undefined) this.#resume()
    })
    const loop: Effect.Effect<A, HandlerError> = Effect.flatMap(
      next,
      (next) => next._tag === "End" ? next.exit : Effect.andThen(next.effect, loop)
    )
    /** The handler has ended. An effect that it did not wait for does not run any more. */
    const end = (exit: Exit.Exit<A, HandlerError>) => {
      this.#isSettled = true
      this.#next = { _tag: "End", exit: exit as Exit.Exit<never, HandlerError> }
      this.#resume?.()
    }
    const begun = Effect.suspend(() => {
      try {
        const value = call(this)
        if (!Predicate.isPromiseLike(value)) {
          this.#isSettled = true
          return Effect.succeed(value)
        }
        value.then((value) => end(Exit.succeed(value)), (error: unknown) => end(Exit.failCause(causeOf(error))))
      } catch (error) {
        this.#isSettled = true
        return Effect.failCause(causeOf(error))
      }
      return loop
    })
    return Effect.onExit(begun, () => this.#end)
  }

  /** Interrupts the effects that the handler has left running, and aborts the signal if the handler ends early. */
  readonly #end = Effect.suspend(() => {
    this.#resume = undefined
    this.#isOver = true
    if (!this.#isSettled) this.#controller.abort(endedError())
    for (const fiber of this.#branches) fiber.interruptUnsafe()
    return this.#scope === undefined ? Effect.void : Scope.close(this.#scope, Exit.void)
  })

  readonly run = <A, E>(effect: Effect.Effect<A, E, R | McpRequest>): Promise<A> => {
    if (this.#isOver) return handled(Promise.reject(this.signal.reason ?? endedError()))
    const isOwn = this.#isFree
    return handled(
      new Promise<A>((resolve, reject) => {
        const settled = Effect.onExit(effect, (exit) =>
          Effect.sync(() => {
            // The handler continues after this, and its next effect must find the fiber free.
            if (isOwn) this.#isFree = true
            if (Exit.isSuccess(exit)) return resolve(exit.value)
            // The interruption of the request arrives here before its signal aborts.
            reject(Cause.hasInterruptsOnly(exit.cause) ? endedError() : Cause.squash(exit.cause))
          }))
        // A failure belongs to the promise. The interruption of the request is not caught by this.
        const isolated = Effect.catchCause(Effect.asVoid(settled), () => Effect.void)
        const provided = Effect.provideContext(isolated, this.#context)
        if (isOwn) {
          this.#isFree = false
          this.#next = { _tag: "Run", effect: provided }
          this.#resume?.()
        } else this.#fork(provided)
      })
    )
  }

  #fork(effect: Effect.Effect<void>): void {
    const fiber = Effect.runForkWith(this.#context)(effect)
    this.#branches.add(fiber)
    fiber.addObserver(() => this.#branches.delete(fiber))
  }

  /** Runs a function of a module, which is loaded when a handler needs it. */
  #using<M, A, E>(load: () => Promise<M>, use: (module: M) => Effect.Effect<A, E, R | McpRequest>): Promise<A> {
    return this.run(Effect.flatMap(Effect.promise(load), use))
  }

  readonly elicit: HandlerContext<R>["elicit"] = (message, form, options) =>
    this.#using(elicitation, (module) => module.form(message, form, options))

  readonly elicitUrl: HandlerContext<R>["elicitUrl"] = (message, url, options) =>
    this.#using(elicitation, (module) =>
      Effect.map(
        module.url(message, url, options),
        ({ action }: Elicitation.Answer<unknown>) => ({ action })
      ))

  readonly sample: HandlerContext<R>["sample"] = (request, options) =>
    this.#using(() => import("../../Sampling.ts"), ({ createMessage }) => createMessage(request, options))

  readonly roots: HandlerContext<R>["roots"] = (options) =>
    this.#using(() => import("../../Roots.ts"), ({ list }) => list(options))

  readonly progress: HandlerContext<R>["progress"] = (progress: Progress | string) => {
    // At once, since a handler need not await the promise.
    if (!Predicate.isObject(progress)) throw new TypeError("Pass one object: progress({ progress: 1, total: 2 })")
    return this.run(this.request.progress(progress as Progress))
  }

  readonly disconnect: HandlerContext<R>["disconnect"] = (retry) =>
    this.#using(() => import("../../Polling.ts"), ({ disconnect }) => disconnect(retry))

  readonly once: HandlerContext<R>["once"] = (key, run, options) =>
    this.#using(() => import("../../Once.ts"), ({ onceOfJson }) => onceOfJson(key, attempt(run), options))

  // Every request has the services of an operation: itself, and the catalog of its server.
  readonly state = <A>(state: State<A>): AsyncState<A> => ({
    get: () => this.run(state.get as Effect.Effect<A, StateError, McpRequest>),
    set: (value) => this.run(state.set(value) as Effect.Effect<void, StateError, McpRequest>),
    update: (change) => this.run(state.update(change) as Effect.Effect<A, StateError, McpRequest>),
    modify: (change) =>
      this.run(state.modify(change) as Effect.Effect<ReturnType<typeof change>[0], StateError, McpRequest>),
    remove: () => this.run(state.remove as Effect.Effect<void, StateError, McpRequest>)
  })

  readonly use: HandlerContext<R>["use"] = (value) => {
    this.#scope ??= Scope.makeUnsafe("parallel")
    // Every request has the catalog of its server.
    return this.run(Scope.provide(value.get, this.#scope) as Effect.Effect<never, unknown, R | McpRequest>)
  }

  readonly log: Log = {
    debug: (...message) => this.#log(Effect.logDebug(...message)),
    info: (...message) => this.#log(Effect.logInfo(...message)),
    warn: (...message) => this.#log(Effect.logWarning(...message)),
    error: (...message) => this.#log(Effect.logError(...message))
  }

  #log(effect: Effect.Effect<void>): void {
    Effect.runForkWith(this.#context)(effect)
  }
}

const elicitation = () => import("../../Elicitation.ts")

const endedError = (): DOMException => new DOMException("The handler has ended", "AbortError")

/** A promise that a handler may ignore: an unhandled rejection would end the process. */
const handled = <A>(promise: Promise<A>): Promise<A> => {
  promise.catch(() => {})
  return promise
}

/**
 * The services of an engine with promises in the place of effects, and the runner of these.
 */
import type { Catalog } from "@skein/server/Catalog"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TaskAdmin } from "../../TaskAdmin.ts"
import type { TaskEngine } from "../../TaskEngine.ts"
import { TaskSchedules } from "../../TaskSchedules.ts"

/**
 * The methods of a service, with promises. A member that is an effect becomes a method without arguments, and a stream
 * becomes a loop.
 */
export type Promised<Service> = {
  readonly [Name in keyof Service]: Service[Name] extends (
    ...args: infer Args
  ) => Effect.Effect<infer A, infer _E, infer _R> ? (...args: Args) => Promise<A>
    : Service[Name] extends (...args: infer Args) => Stream.Stream<infer A, infer _E, infer _R>
      ? (...args: Args) => AsyncIterable<A>
    : Service[Name] extends Effect.Effect<infer A, infer _E, infer _R> ? () => Promise<A>
    : never
}

/** The services of an engine that runs, and of the server around it. */
export type Services = Catalog | TaskEngine | TaskAdmin | TaskSchedules

/** Runs effects with the services of an engine until that ends. */
export interface Runner<R> {
  readonly run: <A, E>(effect: Effect.Effect<A, E, R>, signal?: AbortSignal) => Promise<A>
  /** Loops over the stream end without an error when the engine ends. */
  readonly iterate: <A, E>(stream: Stream.Stream<A, E, R>, signal?: AbortSignal) => AsyncIterable<A>
}

/** The error of a call whose engine has ended. */
const closed = (): Error => new Error("the store of the tasks is closed")

/** Makes a runner with the current services. Its calls reject when the scope closes. */
export const makeRunner = <R>(): Effect.Effect<Runner<R>, never, R | Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<R>()
    const ended = Deferred.makeUnsafe<void>()
    let isOver = false
    yield* Effect.addFinalizer(() => {
      isOver = true
      return Deferred.succeed(ended, undefined)
    })
    const run: Runner<R>["run"] = async (effect, signal) => {
      signal?.throwIfAborted()
      if (isOver) throw closed()
      const end = Effect.flatMap(Deferred.await(ended), () => Effect.die(closed()))
      const exit = await Effect.runPromiseExitWith(context)(Effect.raceFirst(effect, end), { signal })
      if (Exit.isSuccess(exit)) return exit.value
      signal?.throwIfAborted()
      throw Cause.squash(exit.cause)
    }
    const iterate: Runner<R>["iterate"] = (stream, signal) => {
      const end = Deferred.await(ended)
      const stopping = signal === undefined ? end : Effect.raceFirst(end, aborted(signal))
      return Stream.toAsyncIterableWith(Stream.interruptWhen(stream, stopping), context)
    }
    return { run, iterate }
  })

/** Fails with the reason of a signal when it aborts. */
const aborted = (signal: AbortSignal): Effect.Effect<never, unknown> =>
  Effect.callback((resume) => {
    const abort = () => resume(Effect.fail(signal.reason))
    if (signal.aborted) return abort()
    signal.addEventListener("abort", abort, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", abort))
  })

/** The service with promises. `methods` names each of its members, and the streams among them. */
const promised = <I, S extends object>(
  key: Context.Key<I, S>,
  methods: { readonly [Name in keyof S]: true | "stream" },
  { iterate, run }: Runner<I>
): Promised<S> =>
  Object.fromEntries(
    Object.entries(methods).map(([name, kind]) => [name, (...args: ReadonlyArray<unknown>) => {
      const called = Effect.contextWith((context: Context.Context<I>) => {
        const member = Context.get(context, key)[name as keyof S] as unknown
        return Effect.succeed(
          typeof member === "function" ? (member as (...args: ReadonlyArray<unknown>) => unknown)(...args) : member
        )
      })
      return kind === "stream"
        ? iterate(Stream.unwrap(called as Effect.Effect<Stream.Stream<unknown>, never, I>))
        : run(Effect.flatten(called as Effect.Effect<Effect.Effect<unknown>, never, I>))
    }])
  ) as Promised<S>

/** The service of an operator. */
export const promisedAdmin = (runner: Runner<TaskAdmin>): Promised<TaskAdmin["Service"]> =>
  promised(TaskAdmin, {
    list: true,
    inspect: true,
    readOutput: true,
    followOutput: "stream",
    cancel: true,
    wake: true,
    settle: true,
    rerun: true,
    count: true,
    changeMany: true,
    pause: true,
    resume: true,
    tools: true,
    check: true,
    exportTask: true,
    importTask: true,
    replay: true,
    statistics: true,
    workers: true
  }, runner)

/** The schedules of a store. */
export const promisedSchedules = (runner: Runner<TaskSchedules>): Promised<TaskSchedules["Service"]> =>
  promised(TaskSchedules, {
    set: true,
    remove: true,
    get: true,
    list: true,
    pause: true,
    resume: true,
    trigger: true,
    backfill: true
  }, runner)

/**
 * Steps: what is run once and remembered.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type { StepOptions } from "../../CurrentTask.ts"
import { fingerprint, patiently, shortPause } from "./engineContext.ts"
import { misplaced, take } from "./places.ts"
import { InStep, type Restore, type Run } from "./run.ts"
import { clockName, sleepUntil } from "./sleep.ts"

/** How a try of a step ended, as it is remembered. */
type Remembered =
  | { readonly v: unknown }
  /** A failure, and when it was, in milliseconds of Unix time. */
  | { readonly e: unknown; readonly at: number }
  /** The message of a defect. */
  | { readonly d: string }

/** The same, to its step. */
type Ended<A, E> =
  | { readonly _tag: "Value"; readonly value: A }
  | { readonly _tag: "Failure"; readonly error: E; readonly at: number }

interface Codec<A, E> {
  readonly encode: (exit: Exit.Exit<A, E>) => Effect.Effect<Remembered>
  readonly decode: (remembered: Remembered) => Effect.Effect<Ended<A, E>>
}

const describe = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

const codecOf = <A, E>(name: string, { error, success }: StepOptions<A, E>): Codec<A, E> => {
  const values = success && Schema.toCodecJson(success)
  const errors = error && Schema.toCodecJson(error)
  const write = <T>(codec: Schema.ConstraintCodec<T, unknown> | undefined, value: T, what: string) => {
    if (codec === undefined) return Result.succeed<unknown>(null)
    const written = Schema.encodeUnknownResult(codec)(value)
    return Result.mapError(
      written,
      (issue) => `Step "${name}" ends with a ${what} that its schema does not write: ${issue}`
    )
  }
  const read = <T>(codec: Schema.ConstraintCodec<T, unknown> | undefined, json: unknown): Effect.Effect<T> => {
    if (codec === undefined) return Effect.succeed(undefined as T)
    const value = Schema.decodeUnknownResult(codec)(json)
    if (Result.isSuccess(value)) return Effect.succeed(value.success)
    return Effect.die(new Error(`Step "${name}" has run, but left what its schema does not read: ${value.failure}`))
  }
  return {
    encode: (exit) =>
      Effect.map(Clock.currentTimeMillis, (at): Remembered => {
        if (Exit.isSuccess(exit)) {
          const v = write(values, exit.value, "value")
          return Result.isSuccess(v) ? { v: v.success } : { d: v.failure }
        }
        if (Cause.hasInterruptsOnly(exit.cause)) return { d: `Step "${name}" has interrupted itself` }
        const failure = exit.cause.reasons.find(Cause.isFailReason)
        if (failure === undefined || Cause.hasDies(exit.cause)) return { d: describe(exit.cause) }
        if (errors === undefined) {
          return { d: `Step "${name}" fails, and has no schema for it: ${describe(exit.cause)}` }
        }
        const e = write(errors, failure.error, "failure")
        return Result.isSuccess(e) ? { e: e.success, at } : { d: e.failure }
      }),
    decode: (remembered): Effect.Effect<Ended<A, E>> => {
      if ("v" in remembered) return Effect.map(read(values, remembered.v), (value) => ({ _tag: "Value", value }))
      if ("d" in remembered) return Effect.die(new Error(remembered.d))
      return Effect.map(read(errors, remembered.e), (error) => ({ _tag: "Failure", error, at: remembered.at }))
    }
  }
}

/** See `Step.run`. */
export const step = <A, E, R>(
  run: Run,
  name: string,
  options: StepOptions<A, E>,
  execute: (key: string) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const problem = misplaced(fiber, `Step "${name}"`) ?? take(run, "step", name)
    if (problem !== undefined) return problem
    const codec = codecOf(name, options)
    const attempt = (number: number) => tryOnce(run, name, number, options, codec, execute)
    return options.retry === undefined
      ? Effect.flatMap(attempt(1), settle)
      : retried(run, name, options.retry, attempt)
  })

const settle = <A, E>(ended: Ended<A, E>): Effect.Effect<A, E> =>
  ended._tag === "Value" ? Effect.succeed(ended.value) : Effect.fail(ended.error)

const tryOnce = <A, E, R>(
  run: Run,
  name: string,
  number: number,
  options: StepOptions<A, E>,
  codec: Codec<A, E>,
  execute: (key: string) => Effect.Effect<A, E, R>
): Effect.Effect<Ended<A, E>, never, R> => {
  const { host, work } = run
  const { transactional = false } = options
  const about = `${work.id}/step/${number}/${name}`
  /** Why it died, where it died just now. */
  let died: Cause.Cause<never> | undefined
  const acted = Effect.flatMap(fingerprint(host, `${work.id}/${name}`), (key) => {
    const named = Effect.provideService(Effect.suspend(() => execute(key)), InStep, name)
    // What it wrote is undone when it fails, while the memory of its failure is committed.
    return transactional ? host.sql.withTransaction(named) as Effect.Effect<A, E, R> : named
  })
  const executed = (restore: Restore) =>
    Effect.flatMap(exitOf(run, acted, restore), (exit) => {
      if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) died = exit.cause as Cause.Cause<never>
      return Effect.flatMap(codec.encode(exit), (json) => patiently(host.store.seal(JSON.stringify(json), about)))
    })
  const open = (text: string) =>
    Effect.flatMap(patiently(host.store.open(text, about)), (text) => {
      const remembered = JSON.parse(text) as Remembered
      // What it died of may not have been remembered: its database was gone. Then it has run again, here or elsewhere.
      return died !== undefined && "d" in remembered ? Effect.failCause(died) : codec.decode(remembered)
    })
  return run.remember(
    { name: `step/${name}`, attempt: number, transactional, open },
    (restore) => transactional ? wholly(run, executed(restore), restore) : executed(restore)
  )
}

/**
 * Takes back what was written where that will not be remembered: the engine does not remember what it has cut off, also when it came
 * to its end, and commits what is written nevertheless.
 */
const wholly = <A, E, R>(
  { host: { sql } }: Run,
  effect: Effect.Effect<A, E, R>,
  restore: Restore
): Effect.Effect<A, E, R> => {
  const say = (statement: string) => Effect.orDie(Effect.withTracerEnabled(sql.unsafe(statement), false))
  // Fails where it is interrupted meanwhile, and takes no time: nothing can come in between.
  const unlessInterrupted = restore(Effect.void)
  return Effect.andThen(
    say("SAVEPOINT skein_step"),
    Effect.catchCause(
      Effect.tap(effect, () => unlessInterrupted),
      (cause) => Effect.andThen(say("ROLLBACK TO SAVEPOINT skein_step"), Effect.failCause(cause))
    )
  )
}

/** How an effect ends, unless it is interrupted from outside; one that comes to its end all the same has ended. */
const exitOf = <A, E, R>(
  run: Run,
  effect: Effect.Effect<A, E, R>,
  restore: Restore
): Effect.Effect<Exit.Exit<A, E>, never, R> =>
  Effect.flatMap(Effect.forkChild(restore(effect), { startImmediately: true }), (fiber) => {
    run.executing.add(fiber)
    fiber.addObserver(() => run.executing.delete(fiber))
    return Effect.catchCause(
      restore(Fiber.await(fiber)),
      (cause) =>
        Effect.flatMap(
          Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber)),
          (exit) =>
            Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? Effect.failCause(cause) : Effect.succeed(exit)
        )
    )
  })

/** The schedule is told when each failure was, not when it is told of it again: so it goes on where it was. */
const retried = <A, E, R>(
  run: Run,
  name: string,
  schedule: Schedule.Schedule<unknown, E>,
  attempt: (number: number) => Effect.Effect<Ended<A, E>, never, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Schedule.toStep(schedule), (next) => {
    const from = (number: number): Effect.Effect<A, E, R> =>
      Effect.flatMap(attempt(number), (ended) => {
        if (ended._tag === "Value") return Effect.succeed(ended.value)
        return Effect.matchCauseEffect(next(ended.at, ended.error), {
          onFailure: () => Effect.fail(ended.error),
          onSuccess: ([, pause]) => {
            const at = ended.at + Math.ceil(Duration.toMillis(pause))
            return Effect.andThen(pauseUntil(run, `retry/${name}/${number}/${at}`, at), from(number + 1))
          }
        })
      })
    return from(1)
  })

const pauseUntil = (run: Run, name: string, at: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const left = at - now
    if (left <= 0) return Effect.sync(() => run.history.pass([clockName(name)]))
    return left <= shortPause || run.undoing !== undefined
      ? run.hold(Effect.sleep(left))
      : sleepUntil(run, name, left)
  })

/**
 * See `once` of `@skein/server/Once`: what the effect gives is JSON. A failure is not remembered: then the try has left nothing,
 * and who asks again is the next one.
 */
export const once = <E, R>(run: Run, key: string, effect: Effect.Effect<unknown, E, R>): Effect.Effect<unknown, E, R> =>
  Effect.withFiber((fiber) => {
    const problem = misplaced(fiber, `once(${JSON.stringify(key)})`)
    if (problem !== undefined) return problem
    const { host, work } = run
    const about = `${work.id}/once/${key}`
    const from: Effect.Effect<unknown, E, R> = Effect.suspend(() => {
      const number = (run.times.get(`once/${key}`) ?? 0) + 1
      let failed: Cause.Cause<E> | undefined
      const named = Effect.provideService(effect, InStep, `once(${JSON.stringify(key)})`)
      const executed = (restore: Restore) =>
        Effect.flatMap(exitOf(run, named, restore), (exit) => {
          if (Exit.isFailure(exit)) failed = exit.cause
          const json = Exit.isSuccess(exit) ? { v: exit.value ?? null } : {}
          return patiently(host.store.seal(JSON.stringify(json), about))
        })
      const open = (text: string) =>
        Effect.map(patiently(host.store.open(text, about)), (text) => JSON.parse(text) as { readonly v?: unknown })
      return Effect.flatMap(run.remember({ name: `once/${key}`, attempt: number, open }, executed), (remembered) => {
        if ("v" in remembered) return Effect.succeed(remembered.v)
        run.times.set(`once/${key}`, number)
        return failed === undefined ? from : Effect.failCause(failed)
      })
    })
    // Of two that run at the same time, the second one waits, and finds what the first one left.
    return run.lock(key)(from)
  })

/**
 * Steps: effects that run once per task and are recorded. `Step.run` and `Once.once` use them.
 */
import * as JsonForm from "@skein/protocol/JsonForm"
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import * as Tracer from "effect/Tracer"
import type { StepOptions } from "../../CurrentTask.ts"
import { StepTimeout } from "../../TaskError.ts"
import { excerptOf } from "../base/excerpt.ts"
import { messageOf } from "../base/text.ts"
import { awaitStore, fingerprint } from "./engineContext.ts"
import type { LogEntry } from "../store/store.ts"
import { claimName, CurrentStep, misplacedInStep } from "./placement.ts"
import { type AttemptResult, retriesOf, withRetries } from "./retries.ts"
import { type Executed, type Restore, type Run } from "./run.ts"
import { awaitEnd, limitsOf, timeoutOf, withLimits } from "./stepLimits.ts"

/** The end of an attempt, as it is recorded. */
type RecordedExit =
  /** A value. */
  | { readonly v: unknown }
  /** A failure, and its time in milliseconds of Unix time. `f`: it is not retried. */
  | { readonly e: unknown; readonly at: number; readonly f?: true | undefined }
  /** A limit that was exceeded, with the same. Earlier versions read it as a defect. */
  | {
    readonly d: string
    readonly t: readonly [option: StepTimeout["option"], limitMs: number]
    readonly at: number
    readonly f?: true | undefined
  }
  /**
   * The message of a defect. `r` is an excerpt of the value of a step that has had its effect and whose value could not be
   * recorded, for its compensation.
   */
  | { readonly d: string; readonly r?: unknown }

type Codec<A, E> = ReturnType<typeof codecOf<A, E>>

/** A step has had its effect, and its value has no form in which it can be recorded. */
export class UnrecordedValue extends Error {
  readonly value: unknown

  constructor(message: string, value: unknown) {
    super(message)
    this.value = value
  }
}

/** The value of a step that has had its effect, whether it is recorded or not. */
interface Happened {
  value?: { readonly of: unknown } | undefined
}

const codecOf = <A, E>(
  now: Effect.Effect<number>,
  name: string,
  { error, success }: Pick<StepOptions<A, E>, "error" | "success">,
  isRetried: (error: E | StepTimeout) => boolean
) => {
  const values = success && Schema.toCodecJson(success)
  const errors = error && Schema.toCodecJson(error)
  const write = <T>(codec: Schema.ConstraintCodec<T, unknown> | undefined, value: T, kind: string) => {
    if (codec === undefined) return Result.succeed<unknown>(null)
    const written = JsonForm.encodeWith(Schema.encodeUnknownResult(codec))(value)
    return Result.mapError(written, (issue) => `step "${name}": its schema cannot encode the ${kind}: ${issue}`)
  }
  const read = <T>(codec: Schema.ConstraintCodec<T, unknown> | undefined, json: unknown): Effect.Effect<T> => {
    if (codec === undefined) return Effect.succeed(undefined as T)
    const value = Schema.decodeUnknownResult(codec)(json)
    if (Result.isSuccess(value)) return Effect.succeed(value.success)
    return Effect.die(new Error(`step "${name}": its schema cannot decode the recorded result: ${value.failure}`))
  }
  /** Decides whether a failure is retried, and records that. */
  const decided = (error: E | StepTimeout, recorded: Extract<RecordedExit, { readonly at: number }>): RecordedExit => {
    try {
      return isRetried(error) ? recorded : { ...recorded, f: true }
    } catch (thrown) {
      return { d: `step "${name}": \`while\` of its \`retry\` has failed: ${messageOf(thrown)}` }
    }
  }
  return {
    encode: (exit: Exit.Exit<A, E | StepTimeout>) =>
      Effect.map(now, (at): RecordedExit => {
        if (Exit.isSuccess(exit)) {
          const v = write(values, exit.value, "value")
          return Result.isSuccess(v) ? { v: v.success } : { d: v.failure, r: excerptOf(exit.value) }
        }
        const unrecorded = unrecordedOf(exit.cause)
        if (unrecorded !== undefined) return { d: unrecorded.message, r: excerptOf(unrecorded.value) }
        if (Cause.hasInterruptsOnly(exit.cause)) return { d: `step "${name}" interrupted itself` }
        const failure = exit.cause.reasons.find(Cause.isFailReason)
        if (failure === undefined || Cause.hasDies(exit.cause)) return { d: messageOf(Cause.squash(exit.cause)) }
        if (failure.error instanceof StepTimeout && failure.error.step === name) {
          const { limitMs, message, option } = failure.error
          return decided(failure.error, { d: message, t: [option, limitMs], at })
        }
        if (errors === undefined) {
          return { d: `step "${name}" failed, and has no \`error\` schema: ${messageOf(Cause.squash(exit.cause))}` }
        }
        const error = failure.error as E
        const e = write(errors, error, "failure")
        return Result.isSuccess(e) ? decided(error, { e: e.success, at }) : { d: e.failure }
      }),
    decode: (recorded: RecordedExit): Effect.Effect<AttemptResult<A, E | StepTimeout>> => {
      if ("v" in recorded) return Effect.map(read(values, recorded.v), (value) => ({ _tag: "Value", value }))
      if ("t" in recorded) return Effect.succeed(failed(timeoutOf(name, ...recorded.t), recorded))
      if ("d" in recorded) return Effect.die(new Error(recorded.d))
      return Effect.map(read(errors, recorded.e), (error) => failed(error, recorded))
    }
  }
}

const failed = <E>(error: E, { at, f }: Extract<RecordedExit, { readonly at: number }>): AttemptResult<never, E> => ({
  _tag: "Failure",
  error,
  at,
  isFinal: f === true
})

const unrecordedOf = ({ reasons }: Cause.Cause<unknown>): UnrecordedValue | undefined => {
  for (const reason of reasons) {
    if (Cause.isDieReason(reason) && reason.defect instanceof UnrecordedValue) return reason.defect
  }
  return undefined
}

/**
 * Implements `Step.run`. `compensate` registers the compensation of the step, with its value. It runs when the effect of
 * the step has happened, also if its value could not be recorded or the fiber is interrupted.
 */
export const step = <A, E, R, R2 = never>(
  run: Run,
  name: string,
  options: StepOptions<A, E, E | StepTimeout>,
  execute: (key: string) => Effect.Effect<A, E, R>,
  compensate?: (value: A) => Effect.Effect<void, never, R2>
): Effect.Effect<A, E | StepTimeout, R | R2> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, `step "${name}"`) ?? claimName(run, "step", name, fiber)
    if (problem !== undefined) return problem
    const checked = Result.all([limitsOf(name, options), retriesOf(name, options.retry)])
    if (Result.isFailure(checked)) return Effect.die(checked.failure)
    const [limits, { isRetried, schedule }] = checked.success
    const codec = codecOf(run.now, name, options, isRetried)
    const limited = limits === undefined
      ? execute
      : (key: string) => withLimits(name, limits, run.heartbeats, execute(key))
    const happened: Happened = {}
    // A step without a value, which nothing undoes: see `Run.startNew`.
    const isNeeded = options.success !== undefined || compensate !== undefined
    const attempt = (number: number) =>
      attemptStep(run, name, number, options, codec, limited, happened, isNeeded || number > 1 ? undefined : noValue)
    const executed = schedule === undefined
      ? Effect.flatMap(attempt(1), toEffect)
      : withRetries(
        run,
        name,
        schedule,
        (number) =>
          Effect.tap(attempt(number), ({ _tag }) => _tag === "Failure" ? run.heartbeats.flush(name) : Effect.void)
      )
    const result = Effect.onExit(executed, (exit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
        ? run.heartbeats.flush(name)
        : run.heartbeats.remove(name))
    if (compensate === undefined) return result
    return Effect.uninterruptibleMask((restore) =>
      Effect.onExit(restore(result), (exit): Effect.Effect<void, never, R2> => {
        if (Exit.isSuccess(exit)) return compensate(exit.value)
        return happened.value === undefined ? Effect.void : compensate(happened.value.of as A)
      })
    )
  })

const noValue = /* @__PURE__ */ Effect.succeed({ _tag: "Value" as const, value: undefined as never })

const toEffect = <A, E>(result: AttemptResult<A, E>): Effect.Effect<A, E> =>
  result._tag === "Value" ? Effect.succeed(result.value) : Effect.fail(result.error)

/** The associated data of the record of an attempt. */
const associatedDataOf = (id: string, { attempt, name }: Pick<LogEntry, "attempt" | "name">): string =>
  `${id}/step/${attempt}/${name}`

/** Whether an event records that a step has had its effect, as opposed to an attempt that has failed. */
export const hasActed = ({ engine: { store }, task: { id } }: Run, entry: LogEntry): Effect.Effect<boolean> =>
  entry.kind !== "step" ? Effect.succeed(false) : Effect.map(
    awaitStore(store.decrypt(entry.value ?? "", associatedDataOf(id, entry))),
    (text) => {
      const recorded = JSON.parse(text) as RecordedExit
      return "v" in recorded || "r" in recorded
    }
  )

const attemptStep = <A, E, R>(
  run: Run,
  name: string,
  attempt: number,
  { transactional = false }: Pick<StepOptions<A, E>, "transactional">,
  codec: Codec<A, E>,
  execute: (key: string) => Effect.Effect<A, E | StepTimeout, R>,
  happened: Happened,
  passed?: Effect.Effect<AttemptResult<A, E | StepTimeout>>
): Effect.Effect<AttemptResult<A, E | StepTimeout>, never, R> => {
  const { engine: { store }, task } = run
  const associatedData = associatedDataOf(task.id, { attempt, name })
  /** The cause of a defect in this process. */
  let defect: Cause.Cause<never> | undefined
  const executed = Effect.flatMap(
    // After `Task.continueWith` the steps have other keys. No task id has a `#`.
    fingerprint(run.engine, `${task.id}${run.log.continuation === 0 ? "" : `#${run.log.continuation}`}/${name}`),
    (key) => Effect.provideService(Effect.suspend(() => execute(key)), CurrentStep, name)
  )
  const { observer } = run.engine
  let parent: Tracer.AnySpan | undefined
  const observed = observer === undefined
    ? executed
    : Effect.suspend(() => observer.attempt({ tool: task.tool, step: name, attempt, parent }, executed))
  const recorded = (restore: Restore): Effect.Effect<Executed, never, R> =>
    Effect.flatMap(exitOf(run, name, attempt, observed, restore), (exit) => {
      if (transactional && Exit.isFailure(exit) && hasLostTransaction(exit.cause)) {
        return Effect.die(Cause.squash(exit.cause))
      }
      if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) defect = exit.cause as Cause.Cause<never>
      // The effect of a transactional step happens when its record is committed, and is rolled back otherwise.
      if (!transactional) {
        const value = Exit.isSuccess(exit) ? { of: exit.value } : unrecordedOf(exit.cause)
        if (value !== undefined) happened.value = "of" in value ? value : { of: value.value }
      }
      return Effect.flatMap(
        codec.encode(exit),
        (json) =>
          Effect.map(
            awaitStore(store.encrypt(recordText(name, json, happened), associatedData)),
            (text) => ({ text, failed: !("v" in json) })
          )
      )
    })
  const decode = (text: string) =>
    Effect.flatMap(awaitStore(store.decrypt(text, associatedData)), (text) => {
      const recorded = JSON.parse(text) as RecordedExit
      if (happened.value === undefined) {
        if ("v" in recorded) happened.value = { of: recorded.v }
        else if ("r" in recorded) happened.value = { of: recorded.r }
      }
      // The record may be of another execution of the step: the defect is not recorded if the database was unavailable,
      // and then the step ran again, here or elsewhere.
      return defect !== undefined && "d" in recorded ? Effect.failCause(defect) : codec.decode(recorded)
    })
  const encodeDefect = (message: string) =>
    awaitStore(store.encrypt(JSON.stringify(defectRecord(message, happened)), associatedData))
  const ended = run.record({ kind: "step", name, attempt, transactional, decode, encodeDefect, passed }, recorded)
  return observer === undefined ? ended : Effect.withFiber((fiber) => {
    parent = Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
    return ended
  })
}

const defectRecord = (message: string, { value }: Happened): RecordedExit =>
  value === undefined ? { d: message } : { d: message, r: excerptOf(value.of) }

/** The text of a record. A value whose text would be too long for a string is a defect. */
const recordText = (name: string, recorded: RecordedExit, happened: Happened): string => {
  try {
    return JSON.stringify(recorded)
  } catch (error) {
    return JSON.stringify(defectRecord(`step "${name}": its result cannot be written: ${messageOf(error)}`, happened))
  }
}

/**
 * Whether the database has ended the transaction of a step, which then runs again: the connection is lost, or another
 * transaction goes first. Two workers that run the same step for a moment after a takeover can deadlock.
 */
const hasLostTransaction = ({ reasons }: Cause.Cause<unknown>): boolean =>
  reasons.some((reason) => {
    const error = Cause.isDieReason(reason) ? reason.defect : Cause.isFailReason(reason) ? reason.error : undefined
    return isSqlError(error) && isLostTransaction(error)
  })

/** Whether the database has ended a transaction with this error. */
export const isLostTransaction = ({ reason }: SqlError): boolean =>
  ["ConnectionError", "DeadlockError", "SerializationError"].includes(reason._tag)

/** The exit of an effect. An interruption from outside interrupts, unless the effect comes to its end nevertheless. */
const exitOf = <A, E, R>(
  run: Run,
  name: string,
  attempt: number,
  effect: Effect.Effect<A, E, R>,
  restore: Restore
): Effect.Effect<Exit.Exit<A, E>, never, R> =>
  Effect.flatMap(Effect.forkChild(restore(effect), { startImmediately: true }), (fiber) => {
    const startedAt = monotonicMillis(fiber.getRef(Clock.Clock))
    run.executingSteps.set(fiber, { name, attempt, startedAt, fiber })
    fiber.addObserver(() => {
      run.executingSteps.delete(fiber)
      run.engine.noteStepEnd(run.task.tool, name)
    })
    return awaitEnd(fiber, restore)
  })

/**
 * Implements `Once.once` of `@skein/server`. The result of the effect is recorded as JSON. A failure is not: the next
 * call of `once` tries again.
 */
export const once = <E, R>(run: Run, key: string, effect: Effect.Effect<unknown, E, R>): Effect.Effect<unknown, E, R> =>
  Effect.withFiber((fiber) => {
    const name = `once(${JSON.stringify(key)})`
    const problem = misplacedInStep(fiber, name)
    if (problem !== undefined) return problem
    const { engine: { store }, task } = run
    const associatedData = `${task.id}/once/${key}`
    const inStep = Effect.provideService(effect, CurrentStep, name)
    const recorded = (restore: Restore) =>
      Effect.flatMap(exitOf(run, name, 1, inStep, restore), (exit): Effect.Effect<Executed, E> =>
        Exit.isFailure(exit)
          ? Effect.failCause(exit.cause)
          : Effect.map(
            awaitStore(store.encrypt(JSON.stringify({ v: exit.value ?? null }), associatedData)),
            (text) => ({ text, failed: false })
          ))
    const decode = (text: string) =>
      Effect.flatMap(awaitStore(store.decrypt(text, associatedData)), (text) => {
        const recorded = JSON.parse(text) as { readonly v: unknown } | { readonly d: string }
        return "d" in recorded ? Effect.die(new Error(recorded.d)) : Effect.succeed(recorded.v)
      })
    const encodeDefect = (message: string) => awaitStore(store.encrypt(JSON.stringify({ d: message }), associatedData))
    // A concurrent call with the same key waits, and returns the recorded result of the first.
    return run.lock(key)(run.record({ kind: "once", name: key, attempt: 1, decode, encodeDefect }, recorded))
  })

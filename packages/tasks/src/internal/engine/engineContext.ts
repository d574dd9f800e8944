/**
 * The services that all runs of a process share, and their retries of store errors.
 */
import * as Backoff from "@skein/runtime/Backoff"
import * as Context from "effect/Context"
import type { Digest } from "effect/crypto/Digest"
import { sha256 } from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import { constUndefined } from "effect/Function"
import * as Latch from "effect/Latch"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { TaskError } from "../../TaskError.ts"
import type { NewTask } from "../../TaskState.ts"
import type { ChildLink } from "../store/childStore.ts"
import type { TaskStore } from "../store/store.ts"
import { escape, isPermanent } from "../store/storedText.ts"
import type { CodeChanges } from "./codeChanges.ts"
import type { AlertSink } from "../telemetry/alertSink.ts"
import type { TaskObserver } from "../telemetry/taskObserver.ts"
import type { HandlerRegistry } from "./handlerRegistry.ts"

/** The services that all runs of a process share. */
export interface EngineContext {
  readonly store: TaskStore["Service"]
  readonly sql: SqlClient.SqlClient
  readonly digest: Digest["Service"]
  readonly handlers: HandlerRegistry
  /** Starts a child: see `TaskStore.insertChild`. */
  readonly startChild: (link: ChildLink, task: NewTask) => Effect.Effect<string | undefined, TaskError>
  /** Whether the lease of this worker is valid: otherwise other workers may continue its tasks. */
  readonly holdsLease: () => boolean
  /** Renews the lease. Ends the runs of this worker if it has lost them. */
  readonly renewLease: Effect.Effect<void>
  /** Records that a step has ended: it may be one that has blocked the event loop. */
  readonly noteStepEnd: (tool: string, step: string) => void
  /** Receives what happens, for telemetry. */
  readonly observer: TaskObserver | undefined
  readonly alerts: AlertSink | undefined
  /** Milliseconds between two writes of progress. */
  readonly progressInterval: number
  /** Milliseconds between two writes of the details of steps. */
  readonly heartbeatInterval: number
  /** The tasks whose code has changed. */
  readonly codeChanges: CodeChanges
  /**
   * The deployment that pinned tasks stay with; `null`: this worker has none, and others may. `undefined`: all processes of the
   * store run one program, and no task is pinned.
   */
  readonly deployment: string | null | undefined
  /**
   * After how many workers that die while they run a task, without a new event in its log, it is given up. The attempts
   * of a step are those of its option `retry`.
   */
  readonly maxAttempts: number
}

/** Milliseconds up to which a sleep or a pause is made in memory. */
export const maxMemoryPauseMs = 5000

const utf8Encoder = new TextEncoder()

/** A fingerprint that identifies a text without revealing it: 128 bits as hexadecimal digits. */
export const fingerprint = (engine: EngineContext, text: string): Effect.Effect<string> =>
  // UTF-8 replaces lone surrogates. Escaping keeps different texts different.
  Effect.map(engine.digest.digestHex(sha256, utf8Encoder.encode(escape(text))), (hex) => hex.slice(0, 32))

/** Opens when the engine of a fiber has stopped: nothing is retried any more. */
export const EngineStopped = Context.Reference<Latch.Latch>("@skein/tasks/EngineStopped", {
  defaultValue: () => Latch.makeUnsafe()
})

/** The id of the task whose run a fiber belongs to, for the clock of tests. */
export const CurrentRun = Context.Reference<string | undefined>("@skein/tasks/CurrentRun", {
  defaultValue: constUndefined
})

/** The pauses before the retries of a store operation. */
const retryPauses: Backoff.Backoff = { initialDelay: 200, factor: 1.5, maxDelay: 10_000 }

/** Whether an encryption key is missing. */
export const isKeyError = ({ reason }: TaskError): boolean => reason._tag === "KeyError"

/** Whether an operation may succeed later: the store cannot be reached, or an encryption key is missing. */
export const isTemporary = (error: TaskError): boolean =>
  isKeyError(error) || (error.reason._tag === "StoreError" && !isPermanent(error))

/** The failures of a statement that pass: the connection is lost, or another transaction goes first. */
const temporaryReasons = new Set(["ConnectionError", "DeadlockError", "LockTimeoutError", "SerializationError"])

/**
 * Whether a failure of the database may pass. A full disk is one too: PostgreSQL reports it in the classes 53 and 58 of
 * SQLSTATE, and SQLite as SQLITE_IOERR (10) and SQLITE_FULL (13).
 */
export const isTemporaryFailure = ({ reason }: SqlError): boolean => {
  if (temporaryReasons.has(reason._tag)) return true
  const { code, errcode } = (reason.cause ?? {}) as { readonly code?: unknown; readonly errcode?: unknown }
  return (typeof code === "string" && /^5[38]...$/.test(code)) ||
    (typeof errcode === "number" && [10, 13].includes(errcode & 0xff))
}

/** Pauses before a retry, counted from 1, also where the fiber is uninterruptible. Interrupts when the engine has stopped. */
export const pauseForRetry = (attempt: number): Effect.Effect<void> =>
  Effect.flatMap(EngineStopped, (stopped) =>
    Effect.flatMap(
      Effect.raceFirst(
        Effect.as(Effect.sleep(Backoff.delay(retryPauses, attempt)), false),
        Effect.as(stopped.await, true)
      ),
      (hasStopped) => hasStopped ? Effect.interrupt : Effect.void
    ))

/**
 * Retries while the store cannot be reached, and while an encryption key is missing: another worker may have it, or
 * this one after its next configuration. Any other error is a defect, for instance a value that cannot be stored.
 */
export const awaitStore = <A, R>(effect: Effect.Effect<A, TaskError, R>): Effect.Effect<A, never, R> =>
  Effect.catch(effect, (error) => retryLater(effect, error, 1))

const retryLater = <A, R>(
  effect: Effect.Effect<A, TaskError, R>,
  error: TaskError,
  attempt: number
): Effect.Effect<A, never, R> => {
  if (!isTemporary(error)) return Effect.die(error)
  const log = attempt === 1 && isKeyError(error)
    ? Effect.logError("waiting for the encryption key of a task", error)
    : Effect.void
  return Effect.andThen(
    Effect.andThen(log, pauseForRetry(attempt)),
    Effect.catch(effect, (error) => retryLater(effect, error, attempt + 1))
  )
}

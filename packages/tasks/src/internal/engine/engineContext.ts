/**
 * The services that all runs of a process share, and their retries of store errors.
 */
import type { Digest } from "effect/crypto/Digest"
import { sha256 } from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import type { TaskError } from "../../TaskError.ts"
import type { TaskStore } from "../store/store.ts"
import { escape, isPermanent } from "../store/storedText.ts"
import { type ExecuteActivity, retrySchedule } from "./activities.ts"
import type { ReadHistory } from "./history.ts"
import type { Pools } from "./pools.ts"
import type { UnrecordedSteps } from "./unrecordedSteps.ts"
import type { Workers } from "./workers.ts"

/** The services that all runs of a process share. */
export interface EngineContext {
  readonly store: TaskStore["Service"]
  readonly workflowEngine: WorkflowEngine["Service"]
  readonly executeActivity: ExecuteActivity
  readonly sql: SqlClient.SqlClient
  readonly digest: Digest["Service"]
  readonly workers: Workers
  readonly unrecordedSteps: UnrecordedSteps
  readonly pools: Pools
  /** Marks the execution of a task as ended, soon and together with others. */
  readonly settleSoon: (id: string) => void
  /** Abandons a run when the process shuts down, so that a wait for a handler does not delay the shutdown. */
  readonly closing: Effect.Effect<never>
  /** Whether this process still owns an execution: the cluster gives some to a worker that joins. */
  readonly ownsExecution: (executionId: string) => boolean
  readonly readHistory: ReadHistory
  /** The position of a deferred among the events of an execution; `lastRank` if it is not done. */
  readonly rank: (executionId: string, deferred: string) => Effect.Effect<bigint>
  /** Milliseconds between two writes of progress. */
  readonly progressInterval: number
  /** Milliseconds between two checks for the events that a run waits for while other parts of it execute. */
  readonly pollInterval: number
}

/** Milliseconds between two checks for runs that other processes must continue: the cluster does not announce them. */
export const moveCheckMs = 200

/** Milliseconds up to which a sleep or a pause is made in memory. */
export const maxMemoryPauseMs = 5000

const utf8Encoder = new TextEncoder()

/** A fingerprint that identifies a text without revealing it: 128 bits as hexadecimal digits. */
export const fingerprint = (engine: EngineContext, text: string): Effect.Effect<string> =>
  // UTF-8 replaces lone surrogates. Escaping keeps different texts different.
  Effect.map(engine.digest.digestHex(sha256, utf8Encoder.encode(escape(text))), (hex) => hex.slice(0, 32))

const firstRetryMs = 200

const isKeyError = ({ reason }: TaskError): boolean => reason._tag === "KeyError"
const isTemporaryStoreError = (error: TaskError): boolean => error.reason._tag === "StoreError" && !isPermanent(error)
const isTemporary = (error: TaskError): boolean => isTemporaryStoreError(error) || isKeyError(error)

/**
 * Retries while the store cannot be reached, and while an encryption key is missing: another worker may have it, or
 * this one after its next configuration. Any other error is a defect, for instance a value that cannot be stored.
 */
export const awaitStore = <A, R>(effect: Effect.Effect<A, TaskError, R>): Effect.Effect<A, never, R> =>
  // A schedule costs more than most of these effects, so it is created only after an error.
  Effect.catch(effect, (error) => isTemporary(error) ? retryLater(effect, error) : Effect.die(error))

const retryLater = <A, R>(effect: Effect.Effect<A, TaskError, R>, error: TaskError): Effect.Effect<A, never, R> => {
  const retry = (isRetried: (error: TaskError) => boolean) =>
    Effect.delay(Effect.retry(effect, { schedule: retrySchedule, while: isRetried }), firstRetryMs)
  return isKeyError(error)
    ? Effect.andThen(
      Effect.logError("waiting for the encryption key of a task", error),
      Effect.orDie(retry(isTemporary))
    )
    : Effect.catch(
      retry(isTemporaryStoreError),
      (error) => isKeyError(error) ? retryLater(effect, error) : Effect.die(error)
    )
}

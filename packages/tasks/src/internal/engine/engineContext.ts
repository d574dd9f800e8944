/**
 * What the runs of a process have in common: the store, the engine, and who runs what.
 */
import type { Digest } from "effect/crypto/Digest"
import { sha256 } from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import type { TaskError } from "../../TaskError.ts"
import type { Acted } from "./pendingCompensations.ts"
import { type Execute, schedule } from "./activities.ts"
import type { Past } from "./history.ts"
import type { Pools } from "./pools.ts"
import type { TaskStore } from "../store/store.ts"
import { escape, isUnfit } from "../store/stored.ts"
import type { Workers } from "./workers.ts"

/** See the module's text. */
export interface Host {
  readonly store: TaskStore["Service"]
  readonly engine: WorkflowEngine["Service"]
  readonly execute: Execute
  readonly sql: SqlClient.SqlClient
  readonly digest: Digest["Service"]
  readonly workers: Workers
  readonly acted: Acted
  readonly pools: Pools
  /** Says that the execution of a task is over: soon, and together with others. */
  readonly settle: (id: string) => void
  /** Ends a run, to go on elsewhere or later, once this process goes: who waits for its help in vain must not hold it up. */
  readonly closing: Effect.Effect<never>
  /** Whether an execution is this process's still: the cluster gives some to a worker that joins. */
  readonly holds: (executionId: string) => boolean
  readonly past: Past
  /** Which of the deferreds of an execution was told before which other one: the smaller one. The last, what was not told. */
  readonly rank: (executionId: string, deferred: string) => Effect.Effect<bigint>
  /** Milliseconds between two writes of progress. */
  readonly progressInterval: number
  /** Milliseconds between two looks at what a run waits for while other parts of it are busy. */
  readonly pollInterval: number
}

/** Milliseconds between two looks for runs that others are to go on with: the cluster tells nobody what it gives to others. */
export const moving = 200

/** Milliseconds up to which a pause is made in memory. */
export const shortPause = 5000

const encoder = new TextEncoder()

/** What stands for a text and tells nothing of it: 128 bits as hexadecimal digits. */
export const fingerprint = (host: Host, text: string): Effect.Effect<string> =>
  // Bytes know no lone surrogates: escaped, different texts stay different.
  Effect.map(host.digest.digestHex(sha256, encoder.encode(escape(text))), (hex) => hex.slice(0, 32))

const first = 200

const isKey = ({ reason }: TaskError): boolean => reason === "Key"
const isStore = (error: TaskError): boolean => error.reason === "Store" && !isUnfit(error)
const waits = (error: TaskError): boolean => isStore(error) || isKey(error)

/**
 * A run has time: it waits while the store cannot be reached, and while it lacks a key, for that comes with the next configuration of
 * its worker, or another worker has it. What else is wrong with it is a defect; what cannot be kept at all, for instance.
 */
export const patiently = <A, R>(effect: Effect.Effect<A, TaskError, R>): Effect.Effect<A, never, R> =>
  // A schedule costs more than most of what is done: it is begun where there is something to wait for, which is hardly ever.
  Effect.catch(effect, (error) => waits(error) ? later(effect, error) : Effect.die(error))

const later = <A, R>(effect: Effect.Effect<A, TaskError, R>, error: TaskError): Effect.Effect<A, never, R> => {
  const again = (awaited: (error: TaskError) => boolean) =>
    Effect.delay(Effect.retry(effect, { schedule, while: awaited }), first)
  return isKey(error)
    ? Effect.andThen(
      Effect.logError("A task waits for the key that it was sealed with", error),
      Effect.orDie(again(waits))
    )
    : Effect.catch(again(isStore), (error) => isKey(error) ? later(effect, error) : Effect.die(error))
}

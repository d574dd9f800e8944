/**
 * Runs the jobs that change the tokens of one server: one at a time in this process, and in the lock of the store, which
 * excludes the other processes.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { storeFailed } from "../protocol/errors.ts"
import type { OAuthError } from "../protocol/OAuthError.ts"
import type { TokenStoreError } from "../stores/TokenStoreError.ts"
import type { Environment } from "./environment.ts"
import { isAsked } from "./signInMark.ts"
import { isLockLost } from "./storedTokens.ts"

/** The kind of a sign-in that the program has requested, and not a refusal. */
export const signInNow = "sign-in now"

/** The tokens that the jobs change. */
export interface JobOwner {
  /** Whether the token of a request was replaced since. */
  readonly isReplaced: (used: string) => boolean
  /** Drops the tokens in memory: another process took the lock over, and has stored newer ones. */
  readonly lockLost: () => void
  /** Reports a failure. */
  readonly failed: (error: OAuthError) => Effect.Effect<void>
}

/** A job, and its outcome. */
interface Running {
  readonly kind: string
  readonly done: Deferred.Deferred<boolean, OAuthError>
}

/** The jobs of one server. `key` is the key of its tokens and of their lock. */
export const makeJobs = (environment: Environment, key: string, owner: JobOwner) => {
  let running: Running | undefined

  /**
   * Runs one job at a time. A request whose token was replaced meanwhile is sent again. Requests that wait for the same
   * kind of job share its outcome; if it was interrupted, the next one runs it. `used` is the token of the request.
   */
  const run = (
    kind: string,
    used: string | undefined,
    job: Effect.Effect<boolean, OAuthError>
  ): Effect.Effect<boolean, OAuthError> =>
    // Not interrupted between the start of a job and its finalizer: the next requests would wait for it without end.
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        if (running !== undefined) {
          const other = running
          return restore(Effect.flatMap(
            Effect.exit(Deferred.await(other.done)),
            (exit) =>
              other.kind !== kind || (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause))
                ? run(kind, used, job)
                : exit
          ))
        }
        if (used !== undefined && owner.isReplaced(used)) return Effect.succeed(true)
        const own: Running = { kind, done: Deferred.makeUnsafe() }
        running = own
        return restore(retried(kind, job)).pipe(
          Effect.tapError(owner.failed),
          Effect.onExit((exit) => {
            running = undefined
            return Deferred.done(own.done, exit)
          })
        )
      })
    )

  /**
   * Runs an effect alone among all that share the store. It waits while a person is being asked by another process. The
   * wait for a lock may also end when that process has just stored its tokens and removed its mark: then `again` allows
   * one more attempt.
   */
  const locked = <A>(effect: Effect.Effect<A, OAuthError>, again = true): Effect.Effect<A, OAuthError> => {
    const failed = Effect.fnUntraced(function*(error: TokenStoreError) {
      const { _tag } = error.reason
      if (_tag === "LockLost") owner.lockLost()
      else {
        if (yield* isAsked(environment, key)) return yield* Effect.delay(locked(effect), "1 second")
        if (_tag === "LockTimeout" && again) return yield* locked(effect, false)
      }
      return yield* Effect.fail(storeFailed(error))
    })
    return Effect.catchTag(environment.store.withLock(key, effect), "TokenStoreError", failed)
  }

  /**
   * Runs a job in the lock, and once more if the lock was lost: the process was stopped for so long that another one took
   * the lock over and has stored newer tokens. A person who requested a sign-in is not asked twice.
   */
  const retried = (kind: string, job: Effect.Effect<boolean, OAuthError>): Effect.Effect<boolean, OAuthError> =>
    Effect.catch(
      locked(job),
      (error) => isLockLost(error) && kind !== signInNow ? locked(job) : Effect.fail(error)
    )

  return { run, locked }
}

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

/** The jobs of one server. */
export class Jobs {
  readonly #environment: Environment
  readonly #key: string
  readonly #owner: JobOwner
  #running: Running | undefined = undefined

  /** `key` is the key of the tokens and of their lock. */
  constructor(environment: Environment, key: string, owner: JobOwner) {
    this.#environment = environment
    this.#key = key
    this.#owner = owner
  }

  /**
   * Runs one job at a time. A request whose token was replaced meanwhile is sent again. Requests that wait for the same
   * kind of job share its outcome; if it was interrupted, the next one runs it. `used` is the token of the request.
   */
  run(
    kind: string,
    used: string | undefined,
    job: Effect.Effect<boolean, OAuthError>
  ): Effect.Effect<boolean, OAuthError> {
    // Not interrupted between the start of a job and its finalizer: the next requests would wait for it without end.
    return Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const running = this.#running
        if (running !== undefined) {
          return restore(Effect.flatMap(
            Effect.exit(Deferred.await(running.done)),
            (exit) =>
              running.kind !== kind || (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause))
                ? this.run(kind, used, job)
                : exit
          ))
        }
        if (used !== undefined && this.#owner.isReplaced(used)) return Effect.succeed(true)
        const own: Running = { kind, done: Deferred.makeUnsafe() }
        this.#running = own
        return restore(this.#retried(kind, job)).pipe(
          Effect.tapError(this.#owner.failed),
          Effect.onExit((exit) => {
            this.#running = undefined
            return Deferred.done(own.done, exit)
          })
        )
      })
    )
  }

  /**
   * Runs an effect alone among all that share the store. It waits while a person is being asked by another process. The
   * wait for a lock may also end when that process has just stored its tokens and removed its mark: then `again` allows
   * one more attempt.
   */
  locked<A>(effect: Effect.Effect<A, OAuthError>, again = true): Effect.Effect<A, OAuthError> {
    const failed = Effect.fnUntraced({ self: this }, function*(error: TokenStoreError) {
      const { _tag } = error.reason
      if (_tag === "LockLost") this.#owner.lockLost()
      else {
        if (yield* isAsked(this.#environment, this.#key)) return yield* Effect.delay(this.locked(effect), "1 second")
        if (_tag === "LockTimeout" && again) return yield* this.locked(effect, false)
      }
      return yield* Effect.fail(storeFailed(error))
    })
    return Effect.catchTag(this.#environment.store.withLock(this.#key, effect), "TokenStoreError", failed)
  }

  /**
   * Runs a job in the lock, and once more if the lock was lost: the process was stopped for so long that another one took
   * the lock over and has stored newer tokens. A person who requested a sign-in is not asked twice.
   */
  #retried(kind: string, job: Effect.Effect<boolean, OAuthError>): Effect.Effect<boolean, OAuthError> {
    return Effect.catch(
      this.locked(job),
      (error) => isLockLost(error) && kind !== signInNow ? this.locked(job) : Effect.fail(error)
    )
  }
}

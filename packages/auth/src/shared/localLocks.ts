/**
 * Locks by key among the fibers of this process, in the order of arrival. The stores that several processes share have
 * them in front of their own lock, so that each process waits for that one only once.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** How to wait for a lock. */
export interface LockOptions {
  /**
   * The longest wait for the lock; that of the store by default. Set it if another holder of the lock asks a person, who
   * may take minutes.
   */
  readonly lockTimeout?: Duration.Input | undefined
}

/** A fiber that waits for a lock or holds it. The first of a key holds it. */
interface Waiter {
  resume: (() => void) | undefined
}

/** The other part of a lock, which is shared with other processes. */
export interface SharedLock<LockError> {
  /** Waits for the lock. It is interrupted after `lockTimeout`. */
  readonly acquire: Effect.Effect<void, LockError>
  /** Lets other processes have the lock, before this one waits for it again. */
  readonly giveWay?: Effect.Effect<void>
  /** Releases the lock, whether it was obtained, is waited for, or neither. It cannot fail. */
  readonly release: Effect.Effect<void>
  /** Runs the effect while the lock is held. */
  readonly hold?: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LockError, R>
}

/** After so many fibers of one process, a lock that is shared with other processes is left to them for a moment. */
const maxHandedOver = 16

/** How long to wait for a lock, and how to fail then. */
export interface Waiting<LockError> {
  readonly lockTimeout: Duration.Duration
  readonly timedOut: (lockTimeout: Duration.Duration) => LockError
}

/**
 * Makes the `withLock` of a store. `shared` makes the lock that is shared with other processes.
 */
export const makeLocks = <LockError>(
  bounds: Waiting<LockError>,
  shared?: (key: string) => SharedLock<LockError>
): <A, E, R>(
  key: string,
  effect: Effect.Effect<A, E, R>,
  options?: LockOptions
) => Effect.Effect<A, E | LockError, R> => {
  const queues = new Map<string, Array<Waiter>>()
  /** How many fibers of this process have had the lock of a key directly one after another. */
  const turns = new Map<string, number>()

  const enter = (key: string, waiter: Waiter): Effect.Effect<void> =>
    Effect.callback((resume) => {
      const queue = queues.get(key)
      if (queue === undefined) {
        queues.set(key, [waiter])
        resume(Effect.void)
      } else {
        queue.push(waiter)
        waiter.resume = () => resume(Effect.void)
      }
    })

  /** Also gives the lock back that a fiber got while it was interrupted or its time ran out. */
  const leave = (key: string, waiter: Waiter): void => {
    const queue = queues.get(key) ?? []
    const place = queue.indexOf(waiter)
    if (place < 0) return
    queue.splice(place, 1)
    if (queue.length === 0) {
      queues.delete(key)
      turns.delete(key)
    } else if (place === 0) {
      turns.set(key, (turns.get(key) ?? 0) + 1)
      queue[0]!.resume?.()
    }
  }

  return (key, effect, options) =>
    Effect.suspend(() => {
      const waiter: Waiter = { resume: undefined }
      const lockTimeout = options?.lockTimeout === undefined
        ? bounds.lockTimeout
        : Duration.fromInputUnsafe(options.lockTimeout)
      const waiting = (acquire: Effect.Effect<void, LockError>) =>
        Effect.timeoutOrElse(acquire, {
          duration: lockTimeout,
          orElse: () => Effect.fail(bounds.timedOut(lockTimeout))
        })
      const left = Effect.sync(() => leave(key, waiter))
      if (shared === undefined) return Effect.ensuring(Effect.andThen(waiting(enter(key, waiter)), effect), left)
      let lock: SharedLock<LockError> | undefined
      const acquired = Effect.andThen(
        enter(key, waiter),
        Effect.suspend(() => {
          lock = shared(key)
          const { acquire, giveWay = Effect.void } = lock
          const turn = turns.get(key) ?? 0
          return turn > 0 && turn % maxHandedOver === 0 ? Effect.andThen(giveWay, acquire) : acquire
        })
      )
      return Effect.andThen(
        waiting(acquired),
        Effect.suspend(() => lock?.hold === undefined ? effect : lock.hold(effect))
      )
        .pipe(
          Effect.ensuring(Effect.suspend(() => lock?.release ?? Effect.void)),
          Effect.ensuring(left)
        )
    })
}

/**
 * One client's access to a store of responses. It never fails and never takes long. Invalidation is immediate for this
 * client, even before the store has been informed.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import type { Entry, Key, Stale, Store } from "../../../ResponseCache.ts"

/** The settings of one client. */
export interface Settings {
  readonly store: Store
  readonly server: string
  /** The partition of `private` responses. Without it they are not stored. */
  readonly partition: string | undefined
  /** How long the store may take, in milliseconds; `undefined` for a store in memory, which is synchronous. */
  readonly timeout: number | undefined
  readonly clock: Clock.Clock
  /** Runs in the scope of the client. */
  readonly fork: (effect: Effect.Effect<void>) => void
}

/** An entry that is valid and newer than the last invalidation. The store is not trusted. */
const validEntry = (entry: Entry | undefined, since: number): Entry | undefined =>
  typeof entry?.text === "string" && Number.isFinite(entry.receivedAt) && entry.receivedAt > since &&
    typeof entry.ttlMs === "number" && entry.ttlMs > 0
    ? entry
    : undefined

// At the bound all responses of the method are invalidated. There is no option, since the only cost is a few more
// requests while the store is slow or unavailable.
const maxWaiting = 1_000

/** The key of invalidations of a whole server. */
const everything = "*"

/** A store with timeouts and local invalidation. */
export class CacheStore {
  readonly #settings: Settings
  /** Orders writes, so that an entry that becomes stale while it is written is removed afterwards. */
  readonly #order = Semaphore.makeUnsafe(1)
  /** The invalidations that the store has not received yet; then, by method, the times of the last ones. */
  readonly #waiting = new Map<string, Stale>()
  readonly #since = new Map<string, number>()
  readonly #changes = new Map<string, number>()
  #isInvalidating = false
  #pausedUntil = 0
  #isUsed = false

  constructor(settings: Settings) {
    this.#settings = settings
    this.#isUsed = settings.timeout !== undefined
  }

  get now(): number {
    return this.#settings.clock.currentTimeMillisUnsafe()
  }

  /**
   * How often responses of a method were invalidated. A response that was requested before the last time must not be
   * stored.
   */
  changes(method: string): number {
    return (this.#changes.get(method) ?? 0) + (this.#changes.get(everything) ?? 0)
  }

  /**
   * The newest stored response, `public` or of the partition, fresh or not. The caller compares `changes` before and
   * after.
   */
  get(method: string, params: string): Effect.Effect<Entry | undefined> {
    const { partition, store } = this.#settings
    if (!this.#isUsed) return Effect.succeed(undefined)
    this.#invalidateWaiting()
    const at = (partition: string | undefined) => this.#guarded(() => store.get(this.#key(method, params, partition)))
    // Read now: the store may find an entry that is invalidated before it is returned.
    const since = this.#staleSince(method)
    const shared = Effect.map(at(undefined), (entry) => validEntry(entry, since))
    if (partition === undefined) return shared
    return Effect.zipWith(shared, at(partition), (one, other) => {
      const own = validEntry(other, since)
      return one === undefined || (own !== undefined && own.receivedAt >= one.receivedAt) ? own : one
    }, { concurrent: this.#settings.timeout !== undefined })
  }

  /** Stores a response, unless its method was invalidated since `changes`. */
  set(method: string, params: string, entry: Entry, isPublic: boolean, changes: number): Effect.Effect<void> {
    const { partition, store } = this.#settings
    if (!isPublic && partition === undefined) return Effect.void
    this.#isUsed = true
    const key = this.#key(method, params, isPublic ? undefined : partition)
    return Effect.asVoid(
      this.#inOrder(() => this.changes(method) === changes ? store.set(key, entry) : Effect.void)
    )
  }

  /** Invalidates all responses of the server, those of a method, or those of a method with these params. */
  stale(method?: string, params?: ReadonlyArray<string>): void {
    const name = method ?? everything
    this.#changes.set(name, (this.#changes.get(name) ?? 0) + 1)
    if (!this.#isUsed) return
    this.#since.set(name, this.now)
    this.#note({ server: this.#settings.server, method, params })
    this.#invalidateWaiting()
  }

  #note(stale: Stale): void {
    const name = stale.method ?? everything
    this.#waiting.set(`${name} ${stale.params?.[0] ?? ""}`, stale)
    if (this.#waiting.size <= maxWaiting) return
    for (const [id, { method }] of this.#waiting) if (method === stale.method) this.#waiting.delete(id)
    this.#waiting.set(`${name} `, { server: stale.server, method: stale.method })
  }

  #key(method: string, params: string, partition: string | undefined): Key {
    return { server: this.#settings.server, method, params, partition }
  }

  /** Responses that were received before this time are stale. */
  #staleSince(method: string): number {
    return Math.max(this.#since.get(method) ?? -1, this.#since.get(everything) ?? -1)
  }

  /** Sends the invalidations to the store one by one. A failed one is sent again later. */
  #invalidateWaiting(): void {
    if (this.#isInvalidating || this.#waiting.size === 0 || this.#isPaused) return
    this.#isInvalidating = true
    this.#settings.fork(Effect.ensuring(this.#invalidateAll(), Effect.sync(() => void (this.#isInvalidating = false))))
  }

  #invalidateAll(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const [next] = this.#waiting
      if (next === undefined) {
        this.#since.clear()
        return Effect.void
      }
      const [id, stale] = next
      this.#waiting.delete(id)
      return Effect.flatMap(this.#inOrder(() => this.#settings.store.invalidate(stale)), (isDone) => {
        if (isDone) return this.#invalidateAll()
        this.#note(stale)
        return Effect.void
      })
    })
  }

  get #isPaused(): boolean {
    return this.#pausedUntil > 0 && this.now < this.#pausedUntil
  }

  /** Runs a write in order. Returns whether it succeeded. */
  #inOrder(ask: () => Effect.Effect<void, unknown>): Effect.Effect<boolean> {
    const done = Effect.map(this.#guarded(() => Effect.as(ask(), true)), (done) => done === true)
    return this.#settings.timeout === undefined ? done : this.#order.withPermit(done)
  }

  /** Runs an operation of the store with its timeout. A store that fails or is slow is not used for ten timeouts. */
  #guarded<A>(ask: () => Effect.Effect<A, unknown>): Effect.Effect<A | undefined> {
    const { timeout } = this.#settings
    if (timeout === undefined) return Effect.orDie(Effect.suspend(ask))
    return Effect.suspend(() => {
      if (this.#isPaused) return Effect.succeed(undefined)
      return Effect.suspend(ask).pipe(
        Effect.timeoutOption(timeout),
        Effect.flatMap((given) =>
          Option.isSome(given)
            ? Effect.succeed(given.value)
            : this.#pause(timeout, `an operation did not end within ${timeout} ms`)
        ),
        Effect.catchCause((cause) => this.#pause(timeout, Cause.pretty(cause)))
      )
    })
  }

  #pause(timeout: number, why: string): Effect.Effect<undefined> {
    this.#pausedUntil = this.now + 10 * timeout
    return Effect.as(
      Effect.logWarning(`response cache store disabled for ${10 * timeout} ms: ${why}`),
      undefined
    )
  }
}

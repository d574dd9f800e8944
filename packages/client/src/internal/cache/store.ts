/**
 * A store of responses as one client uses it: it never fails and never takes long, and what became stale is stale at once, even
 * where the store has not heard of it yet.
 */
import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import type { Entry, Key, Stale, Store } from "../../ResponseCache.ts"

/** What one client knows of its store. */
export interface Settings {
  readonly store: Store
  readonly server: string
  /** Whose `private` responses are kept; nobody's without it. */
  readonly partition: string | undefined
  /** How long the store may take, in milliseconds; `undefined` for one that is sure to answer at once. */
  readonly timeout: number | undefined
  readonly clock: Clock.Clock
  /** Runs in the scope of the client. */
  readonly fork: (effect: Effect.Effect<void>) => void
}

/** An entry as it should be, and newer than what made it stale; the store may be anybody's. */
const validEntry = (entry: Entry | undefined, since: number): Entry | undefined =>
  typeof entry?.text === "string" && Number.isFinite(entry.receivedAt) && entry.receivedAt > since &&
    typeof entry.ttlMs === "number" && entry.ttlMs > 0
    ? entry
    : undefined

// At the bound all responses of the method are told to be stale. No option: nothing is lost there but a few answers that are asked for
// once more, and only while the store is slow or away.
const maxWaiting = 1_000

/** Compares to what is noted of a whole server. */
const everything = "*"

/** See the module's text. */
export class CacheStore {
  readonly #settings: Settings
  /** So that an entry that became stale while it was written is removed after it was. */
  readonly #order = Semaphore.makeUnsafe(1)
  /** What the store has yet to hear of, and since when nothing older than that is given, by the method. */
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

  /** How often responses of a method became stale: an answer that was asked for before the last time is not to be kept. */
  changes(method: string): number {
    return (this.#changes.get(method) ?? 0) + (this.#changes.get(everything) ?? 0)
  }

  /**
   * The newest response that is kept, everybody's or one's own; it need not be fresh. Whoever asks compares `changes` before and
   * after.
   */
  get(method: string, params: string): Effect.Effect<Entry | undefined> {
    const { partition, store } = this.#settings
    if (!this.#isUsed) return Effect.succeed(undefined)
    this.#invalidateWaiting()
    const at = (partition: string | undefined) => this.#guarded(() => store.get(this.#key(method, params, partition)))
    // As it is now: the store may find an entry, and be told that it is stale before this side hears of it.
    const since = this.#staleSince(method)
    const shared = Effect.map(at(undefined), (entry) => validEntry(entry, since))
    if (partition === undefined) return shared
    return Effect.zipWith(shared, at(partition), (one, other) => {
      const own = validEntry(other, since)
      return one === undefined || (own !== undefined && own.receivedAt >= one.receivedAt) ? own : one
    }, { concurrent: this.#settings.timeout !== undefined })
  }

  /** Keeps a response that is fresh, unless it became stale since `changes` was what it was. */
  set(method: string, params: string, entry: Entry, isPublic: boolean, changes: number): Effect.Effect<void> {
    const { partition, store } = this.#settings
    if (!isPublic && partition === undefined) return Effect.void
    this.#isUsed = true
    const key = this.#key(method, params, isPublic ? undefined : partition)
    return Effect.asVoid(
      this.#inOrder(() => this.changes(method) === changes ? store.set(key, entry) : Effect.void)
    )
  }

  /** Responses are stale from now on: all of the server's, or those of a method, or those of these params. */
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

  /** What was received by then is stale, whatever the store has heard. */
  #staleSince(method: string): number {
    return Math.max(this.#since.get(method) ?? -1, this.#since.get(everything) ?? -1)
  }

  /** Tells the store what is stale, one after the other. What it does not take it is told again, the next time. */
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
      return Effect.flatMap(this.#inOrder(() => this.#settings.store.invalidate(stale)), (told) => {
        if (told) return this.#invalidateAll()
        this.#note(stale)
        return Effect.void
      })
    })
  }

  get #isPaused(): boolean {
    return this.#pausedUntil > 0 && this.now < this.#pausedUntil
  }

  /** Whether it was done. */
  #inOrder(ask: () => Effect.Effect<void, unknown>): Effect.Effect<boolean> {
    const done = Effect.map(this.#guarded(() => Effect.as(ask(), true)), (done) => done === true)
    return this.#settings.timeout === undefined ? done : this.#order.withPermit(done)
  }

  /** Asks the store, within its time; a store that fails or takes longer gives nothing, and is left alone for a while. */
  #guarded<A>(ask: () => Effect.Effect<A, unknown>): Effect.Effect<A | undefined> {
    const { timeout } = this.#settings
    if (timeout === undefined) return Effect.orDie(Effect.suspend(ask))
    return Effect.suspend(() => {
      if (this.#isPaused) return Effect.succeed(undefined)
      return Effect.suspend(ask).pipe(
        Effect.timeoutOption(timeout),
        Effect.flatMap((given) =>
          Option.isSome(given) ? Effect.succeed(given.value) : this.#pause(timeout, "it took too long")
        ),
        Effect.catchCause((cause) => this.#pause(timeout, Cause.pretty(cause)))
      )
    })
  }

  #pause(timeout: number, why: string): Effect.Effect<undefined> {
    this.#pausedUntil = this.now + 10 * timeout
    return Effect.as(
      Effect.logWarning(`The store of responses is not asked for ${10 * timeout} ms: ${why}`),
      undefined
    )
  }
}

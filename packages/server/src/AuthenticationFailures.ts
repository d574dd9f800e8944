/**
 * Counts failed authentications by the network address of their sender, so that a secret cannot be guessed. `Protect` and
 * `RequestVerifier` of `@skein/auth` and `Console.password` of `@skein/console` use it. Use it in a protection of your own.
 *
 * @example
 * const failures = yield* AuthenticationFailures.make({ maxFailures: 5 })
 * const seconds = failures.retryAfter(request.address)
 * if (seconds !== undefined) return AuthenticationFailures.tooManyFailures(seconds)
 */
import * as Options from "@skein/runtime/Options"
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import { networkOf } from "@skein/runtime/ClientKey"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { Refusal } from "./internal/http/access/protection.ts"

/** Bounds of failed authentications. */
export interface FailureOptions {
  /**
   * Failures of one network address in 10 seconds: 20 by default. At the bound its requests are answered with 429 and
   * `Retry-After` until the window is over, without a verification of their tokens. A token that is known by an earlier
   * verification is accepted all the same, since other users may have the same address. A client that disconnects while
   * its token is being verified counts as a failure. As many tokens of one address are verified at the same time, and
   * others wait for them. 0 turns this off. Raise it where many users share one address.
   */
  readonly maxFailures?: number | undefined
}

/** Bounds of failed authentications that no deployment has a reason to change. */
export interface FailureBounds {
  /** The time in which failures are counted, in milliseconds. It begins with the first of them. */
  readonly failureInterval: number
  /** The addresses whose failures are counted at the same time. At the bound the oldest address is forgotten. */
  readonly maxFailureAddresses: number
}

/** The bounds of the protections that an effect makes. Tests change them. */
export const FailureBounds: Context.Reference<FailureBounds> = Context.Reference("@skein/server/FailureBounds", {
  defaultValue: () => ({ failureInterval: 10_000, maxFailureAddresses: 10_000 })
})

interface Count {
  failures: number
  /** When the window ends, in milliseconds since 1970. */
  readonly until: number
}

/**
 * The failures of each address. An IPv6 address counts by its first 64 bits. A sender without an address is not counted:
 * all of them would be refused for the failures of one.
 */
export class Failures {
  readonly #clock: Clock.Clock
  readonly #max: number
  readonly #bounds: FailureBounds
  // In the order of the ends of their windows, since all windows are equally long.
  readonly #counts = new Map<string, Count>()
  // One iterator goes on from where it was. A new one would pass the places of all deleted entries each time, which took
  // most of the time of a refusal.
  #ages = this.#counts.entries()
  #oldest: readonly [string, Count] | undefined
  /** The verifications of each address that are in progress or wait. */
  readonly #verifications = new Map<string, { readonly semaphore: Semaphore.Semaphore; callers: number }>()

  constructor(clock: Clock.Clock, maxFailures: number, bounds: FailureBounds) {
    this.#clock = clock
    this.#max = maxFailures
    this.#bounds = bounds
  }

  /** In how many seconds the address may try again. Undefined if it may try now. */
  retryAfter(address: string | undefined, key?: string): number | undefined {
    if (address === undefined || this.#counts.size === 0) return undefined
    const count = this.#counts.get(nameOf(address, key))
    if (count === undefined || count.failures < this.#max) return undefined
    const left = count.until - this.#clock.currentTimeMillisUnsafe()
    return left > 0 ? Math.ceil(left / 1000) : undefined
  }

  /** Counts a failure. */
  add(address: string | undefined, key?: string): void {
    if (address === undefined || this.#max === 0) return
    const now = this.#clock.currentTimeMillisUnsafe()
    const network = nameOf(address, key)
    const count = this.#counts.get(network)
    if (count !== undefined && count.until > now) {
      count.failures++
      return
    }
    this.#counts.delete(network)
    this.#counts.set(network, { failures: 1, until: now + this.#bounds.failureInterval })
    for (let oldest = this.#findOldest(); oldest !== undefined; oldest = this.#findOldest()) {
      if (oldest[1].until > now && this.#counts.size <= this.#bounds.maxFailureAddresses) return
      this.#counts.delete(oldest[0])
    }
  }

  /**
   * Runs a verification. An address has `maxFailures` of them in progress, and others wait until one has ended: all
   * requests of a burst would be verified otherwise, since none has failed before the first ends. The verification must
   * ask `retryAfter` again when it starts.
   */
  limit<A, E, R>(address: string | undefined, verification: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    if (address === undefined || this.#max === 0) return verification
    const network = networkOf(address)
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        const known = this.#verifications.get(network)
        const entry = known ?? { semaphore: Semaphore.makeUnsafe(this.#max), callers: 0 }
        if (known === undefined) this.#verifications.set(network, entry)
        entry.callers++
        return entry
      }),
      ({ semaphore }) => semaphore.withPermit(verification),
      (entry) =>
        Effect.sync(() => {
          if (--entry.callers === 0) this.#verifications.delete(network)
        })
    )
  }

  #findOldest(): readonly [string, Count] | undefined {
    const known = this.#oldest
    if (known !== undefined && this.#counts.get(known[0]) === known[1]) return known
    const { done, value } = this.#ages.next()
    this.#oldest = value
    // An iterator that has ended does not see later entries.
    if (done === true) this.#ages = this.#counts.entries()
    return value
  }
}

/**
 * Refuses a request, which the client may repeat after some seconds.
 *
 * @example
 * return AuthenticationFailures.withRetry(503, "Service Unavailable: the keys are not available", 5)
 */
export const withRetry = (status: number, message: string, seconds: number): Effect.Effect<never, Refusal> =>
  Effect.fail(new Refusal({ status, message, headers: { "retry-after": String(seconds) } }))

/**
 * Refuses a request of an address with too many failures: 429 with `Retry-After`.
 *
 * @example
 * return AuthenticationFailures.tooManyFailures(seconds)
 */
export const tooManyFailures = (seconds: number): Effect.Effect<never, Refusal> =>
  withRetry(429, "Too Many Requests: too many failed authentications (maxFailures)", seconds)

/** The name of a count: of an address, or of the proofs for one key from an address. */
const nameOf = (address: string, key: string | undefined): string =>
  key === undefined ? networkOf(address) : `${networkOf(address)} ${key}`

/**
 * Makes the counts, with the clock of the program.
 *
 * @example
 * const failures = yield* AuthenticationFailures.make({})
 */
export const make = (options: FailureOptions): Effect.Effect<Failures> =>
  Effect.flatMap(FailureBounds, (bounds) => {
    const { maxFailures } = Options.resolve<FailureOptions>(options, { maxFailures: 20 }, {})
    const made = Effect.clockWith((clock) => Effect.sync(() => new Failures(clock, maxFailures, bounds)))
    return maxFailures === 0 ? made : Effect.andThen(ProcessLocal.report(inMemory), made)
  })

const inMemory = {
  what: "the counts of failed authentications (maxFailures)",
  remedy: "accept a count of its own for each worker, with workers: { count, allowLocal: true }"
}

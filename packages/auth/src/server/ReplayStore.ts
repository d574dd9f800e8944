/**
 * The DPoP proofs that were used: each of them is accepted once (RFC 9449, 11.1).
 *
 * `layerMemory` is for one process, and `Protect` uses it if no store is provided. If several instances serve a
 * resource, a proof that was used at one of them can be replayed at another: provide a store that they share, as
 * `SqlReplayStore`.
 *
 * @example
 * const protection = Protect.make({ resource, verify, dpop: "accept" }).pipe(Effect.provide(ReplayStore.layerMemory()))
 */
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import * as Options from "@skein/runtime/Options"
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * The store could not record a use: it is full, or its database is unavailable. The proof is not accepted, and the
 * request is answered with 503.
 */
export class ReplayStoreError extends PrintableError.tagged("ReplayStoreError")<{
  readonly cause?: unknown
}> {}

/** The use of a proof. */
export interface Use {
  /** Identifies the proof: a hash of its key and its `jti`. */
  readonly id: string
  /** The sender, whose uses share a bound. */
  readonly owner: string
  /** The current time, in milliseconds since 1970. */
  readonly now: number
  /** Until when the proof could be used again, in milliseconds since 1970. Later the entry may be deleted. */
  readonly expiresAt: number
}

/** Records the use of proofs. */
export class ReplayStore extends Context.Service<ReplayStore, {
  /** Records a use. Returns whether it is the first one of its `id`. */
  readonly add: (use: Use) => Effect.Effect<boolean, ReplayStoreError>
}>()("@skein/auth/ReplayStore") {}

/** Bounds of the store in memory, and of each instance with a `SqlReplayStore`. */
export interface MemoryOptions {
  /**
   * Proofs that are stored: 250,000 by default, which is 3,500 requests per second; a tenth of them for one user of one
   * issuer. At the bound the next is refused. Raise it for more requests, or for a user that is a busy program.
   */
  readonly maxProofs?: number | undefined
}

interface Entry {
  readonly owner: string
  readonly expiresAt: number
}

/**
 * Makes a store in memory. A process that starts again has forgotten the proofs: use `SqlReplayStore`, or nonces.
 *
 * @example
 * const store = ReplayStore.makeMemory({ maxProofs: 10_000 })
 */
export const makeMemory = (options: MemoryOptions = {}): ReplayStore["Service"] => {
  const { maxProofs } = Options.resolve(options, { maxProofs: 250_000 }, {})
  const maxProofsPerPrincipal = Math.ceil(maxProofs / 10)
  // In the order of their expiry, if all of them are accepted for the same time.
  const uses = new Map<string, Entry>()
  const counts = new KeyedCounter()
  const sweep = (now: number): void => {
    for (const [id, { expiresAt, owner }] of uses) {
      if (expiresAt > now) return
      uses.delete(id)
      counts.add(owner, -1)
    }
  }
  return {
    add: ({ expiresAt, id, now, owner }) =>
      Effect.suspend(() => {
        sweep(now)
        const known = uses.get(id)
        if (known !== undefined && known.expiresAt > now) return Effect.succeed(false)
        // An entry that was dropped early would allow a replay, so a full store refuses.
        const bound = uses.size >= maxProofs ?
          `maxProofs (${maxProofs})` :
          counts.of(owner) >= maxProofsPerPrincipal
          ? `a tenth of maxProofs (${maxProofsPerPrincipal}) is of one user`
          : undefined
        if (bound !== undefined) {
          return Effect.fail(new ReplayStoreError({ message: `the store of DPoP proofs is full: ${bound}` }))
        }
        if (known === undefined) counts.add(owner, 1)
        uses.set(id, { owner, expiresAt })
        return Effect.succeed(true)
      })
  }
}

const inMemory: ProcessLocal.Part = {
  what: "the DPoP proofs in memory (ReplayStore)",
  remedy: "use SqlReplayStore.layer"
}

/**
 * A store in the memory of this process.
 *
 * @example
 * const Store = ReplayStore.layerMemory({ maxProofs: 1_000_000 })
 */
export const layerMemory = (options?: MemoryOptions): Layer.Layer<ReplayStore> =>
  Layer.effect(ReplayStore, Effect.as(ProcessLocal.report(inMemory), makeMemory(options)))

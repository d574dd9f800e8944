/**
 * The DPoP proofs that were used: each of them is accepted once (RFC 9449, 11.1).
 */
import * as Core from "@skein/auth/ReplayStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Opaque, opaque } from "../base/definition.ts"
import type { Awaitable } from "../base/types.ts"

/**
 * A store of used proofs, the option `replayStore` of `protect`. Instances that serve one resource must share it: a proof that
 * was used at one of them can be replayed at another otherwise.
 */
export interface ReplayStore extends Opaque<"ReplayStore"> {}

/** The use of a proof. */
export interface ProofUse {
  /** Identifies the proof: a hash of its key and its `jti`. */
  readonly id: string
  /** The sender, whose uses share a bound. */
  readonly owner: string
  /** The current time, in milliseconds since 1970. */
  readonly now: number
  /** Until when the proof could be used again, in milliseconds since 1970. Later the entry may be deleted. */
  readonly expiresAt: number
}

/** Options of `memoryReplayStore`. */
export interface MemoryReplayOptions {
  /**
   * Proofs that are stored: 250,000 by default, which is 3,500 requests per second; a tenth of them for one user of one issuer.
   * At the bound the next is refused.
   */
  readonly maxProofs?: number | undefined
}

/**
 * A store in the memory of this process, which `protect` uses by default. A process that starts again has forgotten the proofs.
 *
 * @example
 * const protection = protect({ resource, verify, dpop: "accept", replayStore: memoryReplayStore({ maxProofs: 1_000_000 }) })
 */
export const memoryReplayStore = (options?: MemoryReplayOptions): ReplayStore => opaque(Core.layerMemory(options))

/** Options of `replayStore`. */
export interface ReplayStoreOptions {
  /**
   * Records a use, and returns whether it is the first one of its `id`. After an error the proof is not accepted: the request is
   * answered with 503.
   */
  readonly add: (use: ProofUse) => Awaitable<boolean>
}

/**
 * A store of your own, such as one in Redis.
 *
 * @example
 * const store = replayStore({
 *   add: async ({ expiresAt, id }) => await redis.set(id, "", { NX: true, PXAT: expiresAt }) !== null
 * })
 */
export const replayStore = ({ add }: ReplayStoreOptions): ReplayStore =>
  opaque(Layer.succeed(Core.ReplayStore, {
    add: (use) =>
      Effect.tryPromise({
        try: async () => add(use),
        catch: (cause) => new Core.ReplayStoreError({ message: "the store of DPoP proofs is not available", cause })
      })
  }))

/**
 * Stores the tokens and registrations of a client, and its sign-ins in progress. All programs that share a store share its
 * sign-ins, so that a user is asked once and a refresh token is used once.
 *
 * A store holds text by key. Keys and values are those of `OAuth`; a store of your own neither reads nor changes them.
 * Use `layerMemory` for a program that signs in at each start, and `FileTokenStore`, `SqlTokenStore`,
 * `KeyValueTokenStore` or `BrowserTokenStore` for one that stays signed in. `EncryptedTokenStore` encrypts the values of
 * any of them.
 *
 * | store                | shared by                                    | a dead holder frees its lock       |
 * | -------------------- | -------------------------------------------- | ---------------------------------- |
 * | `layerMemory`        | the fibers of one layer                      | with the process                   |
 * | `FileTokenStore`     | processes and threads of one user, one disk  | at once                            |
 * | `SqlTokenStore`      | machines with one database                   | after `leaseTimeout`, 15 s         |
 * | `KeyValueTokenStore` | the programs that use your lock              | as your lock does                  |
 * | `BrowserTokenStore`  | pages and workers of one origin in a browser | at once                            |
 *
 * @example
 * const program = Effect.provide(main, TokenStore.layerMemory)
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import { checkSize, type Options } from "./values.ts"
import { makeTokenLocks, type TokenLock } from "./tokenLocks.ts"
import type { TokenStoreError } from "./TokenStoreError.ts"

export type { Options } from "./values.ts"
export type { LockOptions } from "../../shared/localLocks.ts"
export type { TokenLock } from "./tokenLocks.ts"

/** The store of a program. */
export class TokenStore extends Context.Service<TokenStore, {
  /** Reads the value of a key. */
  readonly get: (key: string) => Effect.Effect<Option.Option<Redacted.Redacted>, TokenStoreError>
  /**
   * Writes the value of a key. When it succeeds, the value survives the end of the process, unless the store is in
   * memory. A reader sees the old value or the new one.
   */
  readonly set: (key: string, value: Redacted.Redacted) => Effect.Effect<void, TokenStoreError>
  /** Removes a key. A key without a value is not an error. */
  readonly remove: (key: string) => Effect.Effect<void, TokenStoreError>
  readonly withLock: TokenLock["withLock"]
}>()("@skein/auth/TokenStore") {}

/**
 * Makes a store in memory.
 *
 * @example
 * const Store = Layer.effect(TokenStore.TokenStore, TokenStore.makeMemory({ lockTimeout: "5 minutes" }))
 */
export const makeMemory = (options: Options = {}): Effect.Effect<TokenStore["Service"]> =>
  Effect.sync(() => {
    const values = new Map<string, Redacted.Redacted>()
    return TokenStore.of({
      get: (key) => Effect.sync(() => Option.fromUndefinedOr(values.get(key))),
      set: (key, value) => Effect.andThen(checkSize(value), Effect.sync(() => void values.set(key, value))),
      remove: (key) => Effect.sync(() => void values.delete(key)),
      withLock: makeTokenLocks(options)
    })
  })

/**
 * A store in the memory of this process. It is gone when its layer is.
 *
 * @example
 * const program = Effect.provide(main, TokenStore.layerMemory)
 */
export const layerMemory: Layer.Layer<TokenStore> = /* @__PURE__ */ Layer.effect(TokenStore, makeMemory())

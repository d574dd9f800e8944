/**
 * A token store in a browser, for the pages and workers of one origin: IndexedDB, with the Web Locks API as the lock
 * (`navigator.locks`). The tabs of a user share one sign-in, and one of them renews its token.
 *
 * The browser releases the locks of a page that is closed or crashes. Without `navigator.locks`, as in a page that is not
 * served over https or from loopback, the layer fails: two tabs would send the same refresh token.
 *
 * **Every script of the origin can read the tokens**, so a script that an attacker injects can too. Give a page tokens
 * that it may lose: short-lived, with few scopes, bound to a key (DPoP). A server that keeps the tokens and gives the page
 * a cookie is safer.
 *
 * @example
 * const program = Effect.provide(main, BrowserTokenStore.layer())
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { checkSize, invalidEntry, unavailable } from "./values.ts"
import type { SharedLock } from "../../shared/localLocks.ts"
import { makeTokenLocks } from "./tokenLocks.ts"
import { makeIndexedDb, makeLocalStorage, type Storage } from "./webStorage.ts"
import * as TokenStore from "./TokenStore.ts"
import type { TokenStoreError } from "./TokenStoreError.ts"

/** The place, and the bounds of the store. */
export interface Options extends TokenStore.Options {
  /**
   * `"indexedDB"`, the default, is for pages and workers. `"localStorage"` is for pages alone. It holds 5 MB per origin,
   * and a crash of the browser may lose its last writes.
   */
  readonly storage?: "indexedDB" | "localStorage" | undefined
  /** The name of the database, and the beginning of the names of locks and entries; `skein-tokens` by default. */
  readonly name?: string | undefined
}

/** The part of the Web Locks API that is used. The types of the DOM are not available here. */
interface Locks {
  readonly request: (
    name: string,
    options: { readonly signal: AbortSignal },
    hold: () => Promise<void>
  ) => Promise<void>
}

const makeWebLock = (locks: Locks, name: string): SharedLock<TokenStoreError> => {
  const waiting = new AbortController()
  const held = Promise.withResolvers<void>()
  return {
    acquire: Effect.callback((resume) => {
      locks.request(name, { signal: waiting.signal }, () => {
        resume(Effect.void)
        return held.promise
      }).catch((cause: unknown) => resume(Effect.fail(unavailable("navigator.locks refused the lock", cause))))
    }),
    release: Effect.sync(() => {
      held.resolve()
      // Without effect on a lock that is held.
      waiting.abort()
    })
  }
}

const open = (options: Options, name: string): Effect.Effect<Storage, TokenStoreError> =>
  options.storage === "localStorage" ? makeLocalStorage(name) : makeIndexedDb(name)

/**
 * Makes a store. Fails with `StoreUnavailable` without `navigator.locks` or the storage.
 *
 * @example
 * const store = yield* BrowserTokenStore.make({ storage: "localStorage" })
 */
export const make = (options: Options = {}): Effect.Effect<TokenStore.TokenStore["Service"], TokenStoreError> =>
  Effect.gen(function*() {
    const { locks } = (globalThis as { readonly navigator?: { readonly locks?: Locks } }).navigator ?? {}
    if (locks === undefined) {
      return yield* Effect.fail(unavailable(
        "navigator.locks is missing, so tabs cannot share a token store: serve the page over https or from loopback"
      ))
    }
    const name = options.name ?? "skein-tokens"
    const storage = yield* open(options, name)
    return TokenStore.TokenStore.of({
      get: (key) =>
        Effect.flatMap(storage.get(key), (value) => {
          if (value === undefined) return Effect.succeedNone
          return typeof value === "string" ? Effect.succeedSome(Redacted.make(value)) : Effect.fail(invalidEntry(
            `an entry of "${name}" in the browser was not written by this store; clear the data of this page`
          ))
        }),
      set: (key, value) =>
        Effect.andThen(checkSize(value), Effect.uninterruptible(storage.set(key, Redacted.value(value)))),
      remove: (key) => Effect.uninterruptible(storage.remove(key)),
      withLock: makeTokenLocks(options, (key) => makeWebLock(locks, `${name} ${JSON.stringify(key)}`))
    })
  })

/**
 * Provides a store in the browser.
 *
 * @example
 * const Store = BrowserTokenStore.layer({ lockTimeout: "1 minute" })
 */
export const layer = (options: Options = {}): Layer.Layer<TokenStore.TokenStore, TokenStoreError> =>
  Layer.effect(TokenStore.TokenStore, make(options))

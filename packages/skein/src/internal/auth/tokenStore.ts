/**
 * Stores of the tokens and registrations of a client, and of its sign-ins in progress. All programs that share a store share its
 * sign-ins, so that a user is asked once and a refresh token is used once.
 */
import * as BrowserTokenStore from "@skein/auth/BrowserTokenStore"
import * as EncryptedTokenStore from "@skein/auth/EncryptedTokenStore"
import * as KeyValueTokenStore from "@skein/auth/KeyValueTokenStore"
import * as Core from "@skein/auth/TokenStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import { layerOf, lazily, type Opaque, opaque } from "../base/definition.ts"
import type { Awaitable, Duration } from "../base/types.ts"

/** A store of tokens: the option `store` of `OAuth.make`. */
export interface TokenStore extends Opaque<"TokenStore"> {}

/** The options that all stores have. */
export interface TokenStoreOptions {
  /**
   * The longest wait for a lock: 30 seconds by default. Then the operation fails with the reason `LockTimeout`. Raise it for an
   * authorization server that answers slowly, since a lock is held while it renews a token.
   */
  readonly lockTimeout?: Duration | undefined
}

/**
 * A store in the memory of this process, which `OAuth.make` uses by default: the program signs in at each start.
 *
 * @example
 * const store = memoryTokenStore({ lockTimeout: "5 minutes" })
 */
export const memoryTokenStore = (options?: TokenStoreOptions): TokenStore =>
  opaque(Layer.succeed(Core.TokenStore, Effect.runSync(Core.makeMemory(options))))

/** Options of `fileTokenStore`: the application, or the folder. */
export type FileTokenStoreOptions =
  & TokenStoreOptions
  & (
    | {
      /** The name of the application: the folder is in its data directory of this user (`~/.local/share/<app>/tokens` on Linux). */
      readonly app: string
      readonly folder?: undefined
    }
    | {
      /** The folder. It is created if it does not exist. */
      readonly folder: string
      readonly app?: undefined
    }
  )

/**
 * A store in files, for the programs of one user on one computer. The folder and the files are readable for their user only. The
 * tokens are not encrypted: wrap the store in `encryptedTokenStore` to change that. The folder must be on a disk of this computer.
 *
 * @example
 * const oauth = await OAuth.make({ grant, signIn: loopback(), store: fileTokenStore({ app: "teahouse" }) })
 */
export const fileTokenStore = (options: FileTokenStoreOptions): TokenStore =>
  opaque(lazily(() => import("@skein/auth/FileTokenStore"), ({ layer }) => layer(options)))

/** Options of `browserTokenStore`. */
export interface BrowserTokenStoreOptions extends TokenStoreOptions {
  /** `"indexedDB"`, the default, is for pages and workers. `"localStorage"` is for pages alone. */
  readonly storage?: "indexedDB" | "localStorage" | undefined
  /** The name of the database, and the beginning of the names of locks and entries; `skein-tokens` by default. */
  readonly name?: string | undefined
}

/**
 * A store in a browser, for the pages and workers of one origin. The tabs of a user share one sign-in. Every script of the origin
 * can read the tokens, so a script that an attacker injects can too: give a page tokens that it may lose.
 *
 * @example
 * const store = browserTokenStore({ lockTimeout: "1 minute" })
 */
export const browserTokenStore = (options?: BrowserTokenStoreOptions): TokenStore =>
  opaque(BrowserTokenStore.layer(options))

/** Options of `keyValueTokenStore`: three functions, and a lock. */
export interface KeyValueTokenStoreOptions extends TokenStoreOptions {
  /** Reads the text of a key. */
  readonly get: (key: string) => Awaitable<string | null | undefined>
  /** Writes the text of a key. A reader must see the old text or the new one, and the new one must survive a crash. */
  readonly set: (key: string, value: string) => Awaitable<unknown>
  /** Removes a key. A key without a text is not an error. */
  readonly remove: (key: string) => Awaitable<unknown>
  /**
   * The lock of all programs that share the texts; `"process"` if only this store uses them. A function acquires the lock of a key
   * and returns a function that releases it. Its signal aborts when the lock is no longer wanted, after `lockTimeout` for example.
   * Or another store, whose lock is used.
   *
   * Without a lock that all of them use, two programs can send the same refresh token; a server that detects this ends the sign-in.
   */
  readonly lock: "process" | ((key: string, signal: AbortSignal) => Awaitable<() => Awaitable<void>>) | TokenStore
  /** The beginning of all keys; `skein-token-` by default. */
  readonly prefix?: string | undefined
}

/**
 * A store of your own, such as one in Redis. Its promises are those of your functions.
 *
 * @example
 * const store = keyValueTokenStore({
 *   get: (key) => redis.get(key),
 *   set: (key, value) => redis.set(key, value),
 *   remove: (key) => redis.del(key),
 *   lock: async (key, signal) => {
 *     const lock = await redlock.acquire([key], 60_000, { signal })
 *     return () => lock.release()
 *   }
 * })
 */
export const keyValueTokenStore = ({ get, lock, remove, set, ...options }: KeyValueTokenStoreOptions): TokenStore => {
  const values = Layer.succeed(
    KeyValueStore.KeyValueStore,
    KeyValueStore.makeStringOnly({
      get: (key) => attempt("get", key, async () => (await get(key)) ?? undefined),
      set: (key, value) => attempt("set", key, async () => void await set(key, value)),
      remove: (key) => attempt("remove", key, async () => void await remove(key)),
      clear: Effect.void,
      keys: Effect.succeed([]),
      size: Effect.succeed(0)
    })
  )
  if (lock === "process" || typeof lock === "function") {
    return opaque(Layer.provide(KeyValueTokenStore.layer({ ...options, lock }), values))
  }
  const withLockOfStore = Layer.unwrap(Effect.map(
    Core.TokenStore,
    (store) => KeyValueTokenStore.layer({ ...options, lock: store })
  ))
  return opaque(Layer.provide(withLockOfStore, [values, layerOf(lock) as Layer.Layer<Core.TokenStore>]))
}

const attempt = <A>(method: string, key: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      new KeyValueStore.KeyValueStoreError({
        method,
        key,
        message: cause instanceof Error ? cause.message : String(cause),
        cause
      })
  })

/** The keys of an encryption: given, or in a variable of the environment. */
export type EncryptionKeys =
  | {
    /** The first key encrypts, and all of them decrypt. Each is a secret of at least 32 bytes (`openssl rand -base64 32`). */
    readonly keys: ReadonlyArray<Uint8Array | string>
    readonly variable?: undefined
  }
  | {
    /** The variable of the environment with the keys, separated by commas. Without it the store fails. */
    readonly variable: string
    readonly keys?: undefined
  }

/** Options of `encryptedTokenStore`. */
export type EncryptedTokenStoreOptions = EncryptionKeys & {
  /**
   * Whether values that were written before the encryption was turned on are read. With it, anyone who can write to the store can
   * insert values. False by default.
   */
  readonly readPlaintext?: boolean | undefined
}

/**
 * Encrypts the values of another store: AES-256-GCM, with keys derived by HKDF-SHA256. A value that none of the keys decrypts fails
 * with the reason `KeyError`, and stays as it is.
 *
 * To rotate keys, add the new key in second place in every process, then move it to the first place. Remove the old key when the
 * last sign-in from before has been renewed or has ended.
 *
 * @example
 * const store = encryptedTokenStore(fileTokenStore({ app: "teahouse" }), { variable: "TOKEN_KEYS" })
 */
export const encryptedTokenStore = (store: TokenStore, options: EncryptedTokenStoreOptions): TokenStore => {
  const layer = options.keys === undefined
    ? EncryptedTokenStore.layerConfig(options.variable, options)
    : EncryptedTokenStore.layer(options)
  return opaque(Layer.provide(layer, layerOf(store) as Layer.Layer<Core.TokenStore>))
}

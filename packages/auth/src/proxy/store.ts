/** The service of `ProxyStore`, and its error. */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"

/** A store could not read or write. The message names the operation and never a value. Nothing was changed. */
export class ProxyStoreError extends PrintableError.tagged("ProxyStoreError")<{
  readonly cause?: unknown
}> {}

/** The value of a key. */
export interface Entry {
  readonly value: string
  /** When `use` was called first for it, in milliseconds since 1970. */
  readonly usedAt: number | undefined
}

/** How long a value is kept, and with which others it is removed. */
export interface SetOptions {
  /** When the value expires, in milliseconds since 1970. Without it the value stays until it is removed. */
  readonly expiresAt?: number | undefined
  /** The group that the value belongs to. `removeGroup` removes all of its values. */
  readonly group?: string | undefined
}

/** The store of a proxy. */
export class ProxyStore extends Context.Service<ProxyStore, {
  /** Reads a value. A value that has expired is not returned. */
  readonly get: (key: string) => Effect.Effect<Option.Option<Entry>, ProxyStoreError>
  /** Writes a value. It replaces the earlier one, and is unused again. */
  readonly set: (key: string, value: string, options?: SetOptions) => Effect.Effect<void, ProxyStoreError>
  /** Marks a value as used. Returns `true` for the first caller among all instances, and `false` for the others. */
  readonly use: (key: string, now: number) => Effect.Effect<boolean, ProxyStoreError>
  /** Reads a value and removes it. One caller among all instances gets it. */
  readonly take: (key: string) => Effect.Effect<Option.Option<string>, ProxyStoreError>
  /** Removes a value. A key without a value is not an error. */
  readonly remove: (key: string) => Effect.Effect<void, ProxyStoreError>
  /** Removes all values of a group. */
  readonly removeGroup: (group: string) => Effect.Effect<void, ProxyStoreError>
  /**
   * Runs an effect while no other instance that shares the store runs one with the same key. The lock is released when
   * the effect ends, or when its process dies. Waiting can be interrupted, and fails after 90 seconds: the effect does
   * not run without the lock. It is not reentrant.
   */
  readonly withLock: <A, E, R>(
    key: string,
    effect: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | ProxyStoreError, R>
}>()("@skein/auth/ProxyStore") {}

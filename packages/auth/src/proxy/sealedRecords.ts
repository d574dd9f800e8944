/** Records in a `ProxyStore`, encrypted, under keys from which no identifier can be read. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type ProxyStore, ProxyStoreError, type SetOptions } from "./store.ts"
import type { Records } from "./adapter.ts"
import { hashOf, type Sealing } from "./sealing.ts"

/** Encrypted records as effects, for the parts of the proxy itself. */
export interface SealedStore {
  readonly get: (
    key: string
  ) => Effect.Effect<{ readonly value: unknown; readonly usedAt: number | undefined } | undefined, ProxyStoreError>
  /** Reads a value that must not be lost. Fails if none of the keys decrypts it. */
  readonly getStrict: (
    key: string
  ) => Effect.Effect<{ readonly value: unknown; readonly isCurrent: boolean } | undefined, ProxyStoreError>
  readonly set: (key: string, value: unknown, options?: SetOptions) => Effect.Effect<void, ProxyStoreError>
  readonly take: (key: string) => Effect.Effect<unknown, ProxyStoreError>
  readonly remove: (key: string) => Effect.Effect<void, ProxyStoreError>
  readonly removeGroup: (group: string) => Effect.Effect<void, ProxyStoreError>
  readonly withLock: ProxyStore["Service"]["withLock"]
  /** The same for the callbacks of the engine. */
  readonly records: Records
}

/** The name of a record in the store: its kind in plain text, and the hash of the rest. */
const nameOf = (key: string): string => {
  const at = key.indexOf(" ")
  return `${key.slice(0, at)} ${hashOf(key.slice(at + 1))}`
}

/**
 * Encrypts the values of a store. A value that no key decrypts counts as absent: after an old key was removed, a person
 * whose sign-in it encrypted signs in again. The signing key, which all instances need, is read with `getStrict`.
 */
export const makeSealedStore = (
  store: ProxyStore["Service"],
  { decrypt, encrypt, isCurrent }: Sealing
): SealedStore => {
  const read = (name: string, encrypted: string): Effect.Effect<unknown> =>
    Effect.map(decrypt(encrypted, name), (text) => text === undefined ? undefined : JSON.parse(text))
  const find = (key: string) => {
    const name = nameOf(key)
    return Effect.flatMap(
      store.get(name),
      (found) =>
        Option.isNone(found)
          ? Effect.undefined
          : Effect.map(read(name, found.value.value), (value) => ({ entry: found.value, value }))
    )
  }
  const get: SealedStore["get"] = (key) =>
    Effect.map(
      find(key),
      (found) => found?.value === undefined ? undefined : { value: found.value, usedAt: found.entry.usedAt }
    )
  const set: SealedStore["set"] = (key, value, { expiresAt, group } = {}) => {
    const name = nameOf(key)
    return Effect.flatMap(
      encrypt(JSON.stringify(value), name),
      (encrypted) => store.set(name, encrypted, { expiresAt, group: group === undefined ? undefined : hashOf(group) })
    )
  }
  const remove: SealedStore["remove"] = (key) => store.remove(nameOf(key))
  const removeGroup: SealedStore["removeGroup"] = (group) => store.removeGroup(hashOf(group))
  const run = Effect.runPromise
  return {
    get,
    getStrict: (key) =>
      Effect.flatMap(find(key), (found) => {
        if (found === undefined) return Effect.undefined
        const { entry, value } = found
        return value === undefined
          ? Effect.fail(new ProxyStoreError({ message: "none of the keys decrypts the store: another proxy wrote it" }))
          : Effect.succeed({ value, isCurrent: isCurrent(entry.value) })
      }),
    set,
    remove,
    removeGroup,
    take: (key) => {
      const name = nameOf(key)
      return Effect.flatMap(
        store.take(name),
        (found) => Option.isNone(found) ? Effect.undefined : read(name, found.value)
      )
    },
    withLock: (key, effect) => store.withLock(nameOf(key), effect),
    records: {
      get: (key) => run(get(key)),
      set: (key, value, options) => run(set(key, value, options)),
      use: (key) => run(store.use(nameOf(key), Date.now())),
      remove: (key) => run(remove(key)),
      removeGroup: (group) => run(removeGroup(group))
    }
  }
}

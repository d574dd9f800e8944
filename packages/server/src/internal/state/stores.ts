/**
 * The store of a state in memory, and the contract of stores. `StateStore` exports them; states need them without its other
 * stores.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { Full, StateError, TooLarge } from "../../StateError.ts"
import { OwnedStore } from "../base/ownedStore.ts"

/** The key of a value: its owner, and the scope and name of the state. Owner and name may be any text. */
export interface Key {
  /** A user, as `principal ` and the id, or a session. */
  readonly owner: string
  readonly scope: "user" | "session"
  readonly name: string
}

/** A value as JSON, and its version: a text that differs after each write. */
export interface Stored {
  readonly json: string
  readonly version: string
}

/** A write. */
export interface Write {
  readonly json: string
  /** The version that the value must still have; `undefined` if it must not exist. */
  readonly expected: string | undefined
  /** How long the value is valid, in milliseconds. `Infinity` for a value that does not expire. */
  readonly ttlMs: number
}

/** Stores values. Fails with `StateError` `Unavailable` if it cannot, and `TooLarge` or `Full` at a bound. */
export interface Store {
  /** Returns a value that exists and has not expired. */
  readonly get: (key: Key) => Effect.Effect<Stored | undefined, StateError>
  /** Writes a value if it still has the expected version, in one step. Returns whether it did. */
  readonly set: (key: Key, write: Write) => Effect.Effect<boolean, StateError>
  /** Removes a value, if it exists. */
  readonly remove: (key: Key) => Effect.Effect<void, StateError>
}

/** A store in memory, which can forget an owner. */
export interface MemoryStore extends Store {
  readonly removeOwner: (owner: string) => void
}

/** The stores of a server. The state of a session that several processes serve is in the store of users. */
export interface Stores {
  readonly users: Store
  readonly sessions: MemoryStore
}

/** The stores of the servers that they are provided to. Set them with one of the layers. */
export const StateStores = /* @__PURE__ */ Context.Reference<Stores | undefined>("@skein/server/StateStores", {
  defaultValue: () => undefined
})

/** The bounds of a store in memory. */
export interface MemoryOptions {
  /** The number of values: 10,000 by default. At the bound, see `maxBytes`. */
  readonly maxEntries?: number | undefined
  /**
   * The size of all values, in bytes of JSON: 64 MiB by default. At the bound the owner with the most loses its least
   * recently used values. A write of that owner itself fails: `StateError` `Full`.
   */
  readonly maxBytes?: number | undefined
  /** The size of the values of one owner, in bytes of JSON: 1 MiB by default. More fails: `StateError` `TooLarge`. */
  readonly maxBytesPerClient?: number | undefined
}

const encoder = new TextEncoder()

const tooLarge = (message: string) => Effect.fail(new StateError({ reason: new TooLarge({ message }) }))

/** Makes a store in memory. */
export const makeMemory = (options: MemoryOptions = {}): MemoryStore => {
  const maxBytesPerClient = options.maxBytesPerClient ?? 1024 * 1024
  const table = new OwnedStore<Stored>({
    maxEntries: options.maxEntries ?? 10_000,
    maxBytes: options.maxBytes ?? 64 * 1024 * 1024
  })
  let writes = 0
  const keyOf = ({ name, scope }: Key) => `${scope} ${name}`
  return {
    get: (key) => Effect.map(Clock.currentTimeMillis, (now) => table.get(key.owner, keyOf(key), now)),
    set: (key, { expected, json, ttlMs }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const { name, owner } = key
        const before = table.get(owner, keyOf(key), now)
        if (before?.version !== expected) return Effect.succeed(false)
        const bytes = encoder.encode(json).byteLength
        const others = table.bytesOf(owner) - (before === undefined ? 0 : encoder.encode(before.json).byteLength)
        if (others + bytes > maxBytesPerClient) {
          return tooLarge(`The state ${name} exceeds maxBytesPerClient (${maxBytesPerClient} bytes)`)
        }
        const value = { json, version: `${++writes}` }
        if (table.set(owner, keyOf(key), { value, bytes, expires: now + ttlMs }, now, true)) return Effect.succeed(true)
        const message = `The state ${name} cannot be stored: the store is full (maxEntries, maxBytes)`
        return Effect.fail(new StateError({ reason: new Full({ message }) }))
      }),
    remove: (key) => Effect.sync(() => table.remove(key.owner, keyOf(key))),
    removeOwner: (owner) => table.removeOwner(owner)
  }
}

/**
 * Where the values of `State` are stored.
 *
 * Without one of these layers, each server has a store in memory with the default bounds. Provide a layer to the layer of
 * the server. The state of sessions is always in memory: it ends with the session, which ends with the process.
 *
 * - `layerMemory` sets the bounds of the memory.
 * - `layerKeyValue` stores the state of users in Effect's `KeyValueStore`: files, Redis, or the storage of a platform. A
 *   write is durable if that of the `KeyValueStore` is. Updates are atomic between the requests of one process.
 * - `SqlStateStore.layer`, in a module of its own, stores the state of users in PostgreSQL or SQLite. Updates are atomic
 *   between the processes that share the database.
 * - `layer` takes a `Store` of yours, with a conditional write.
 *
 * @example
 * const server = McpServer.layer({ name: "shop", version: "1.0.0" }, carts).pipe(
 *   Layer.provide(StateStore.layerKeyValue()),
 *   Layer.provide(KeyValueStore.layerFileSystem("state"))
 * )
 */
import * as Context from "effect/Context"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Hex from "effect/encoding/Hex"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Semaphore from "effect/Semaphore"
import { sha256 } from "./internal/base/digest.ts"
import { OwnedStore } from "./internal/base/ownedStore.ts"
import { Full, StateError, TooLarge, Unavailable } from "./StateError.ts"

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

/** The stores of a server. */
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

/**
 * Provides stores in memory with other bounds.
 *
 * @example
 * const small = StateStore.layerMemory({ maxEntries: 1_000, maxBytesPerClient: 16_384 })
 */
export const layerMemory = (options: MemoryOptions = {}): Layer.Layer<never> =>
  Layer.sync(StateStores, () => {
    const store = makeMemory(options)
    return { users: store, sessions: store }
  })

/**
 * Provides a store of yours for the state of users. `memory` has the bounds of the memory for the state of sessions.
 *
 * @example
 * const stores = StateStore.layer(tableStore(sql))
 */
export const layer = (users: Store, memory: MemoryOptions = {}): Layer.Layer<never> =>
  Layer.sync(StateStores, () => ({ users, sessions: makeMemory(memory) }))

/** The names of keys, and the memory for the state of sessions. */
export interface KeyValueOptions {
  /** The beginning of all keys in the `KeyValueStore`: `skein-state-` by default. Two servers need two. */
  readonly prefix?: string | undefined
  /** The bounds of the memory for the state of sessions. */
  readonly memory?: MemoryOptions | undefined
}

/** A value in a `KeyValueStore`. `expires` is in milliseconds of Unix time. */
interface Row extends Stored {
  readonly expires: number | null
}

/** Requests for one value wait for each other; those for other values seldom do. */
const stripes = 64

const unavailable = (cause: unknown) => {
  // Without the message of the driver, which may quote the value.
  const message = "The state is not available: the KeyValueStore failed"
  return new StateError({ reason: new Unavailable({ message, cause }) })
}

/** Reads a row, which another program may have written. */
const rowOf = (text: string): Row | undefined => {
  try {
    const row: unknown = JSON.parse(text)
    const { expires, json, version } = row as { readonly [K in keyof Row]: unknown }
    const isRow = typeof json === "string" && typeof version === "string" &&
      (expires === null || typeof expires === "number")
    return isRow ? row as Row : undefined
  } catch {
    return undefined
  }
}

/**
 * Makes a store in a `KeyValueStore`. A key is a digest of the owner and the name, so any id of a principal has a valid
 * one. A value that has expired is removed when it is next read.
 */
export const makeKeyValue = (
  { prefix = "skein-state-" }: KeyValueOptions = {}
): Effect.Effect<Store, never, KeyValueStore.KeyValueStore> =>
  Effect.map(KeyValueStore.KeyValueStore, (values) => {
    const locks = Array.from({ length: stripes }, () => Semaphore.makeUnsafe(1))
    const digestOf = ({ name, owner, scope }: Key) => sha256(JSON.stringify([owner, scope, name]))
    const read = (key: string) =>
      Effect.flatMap(Effect.mapError(values.get(key), unavailable), (text) => {
        if (text === undefined) return Effect.undefined
        const row = rowOf(text)
        if (row === undefined) return Effect.fail(unavailable(new Error(`the entry ${key} is damaged`)))
        return Effect.flatMap(
          Clock.currentTimeMillis,
          (now) =>
            row.expires === null || row.expires > now
              ? Effect.succeed<Row | undefined>(row)
              : Effect.as(Effect.mapError(values.remove(key), unavailable), undefined)
        )
      })
    const locked = <A>(key: Key, run: (name: string) => Effect.Effect<A, StateError>) =>
      Effect.suspend(() => {
        const digest = digestOf(key)
        const lock = locks[digest[0]! % stripes]!
        return lock.withPermits(1)(Effect.uninterruptible(run(`${prefix}${Hex.encode(digest)}`)))
      })
    return {
      get: (key) => locked(key, read),
      set: (key, { expected, json, ttlMs }) =>
        locked(key, (name) =>
          Effect.flatMap(Effect.zip(read(name), Clock.currentTimeMillis), ([before, now]) => {
            if (before?.version !== expected) return Effect.succeed(false)
            const row: Row = {
              json,
              version: globalThis.crypto.randomUUID(),
              expires: Number.isFinite(ttlMs) ? now + ttlMs : null
            }
            return Effect.as(Effect.mapError(values.set(name, JSON.stringify(row)), unavailable), true)
          })),
      remove: (key) => locked(key, (name) => Effect.mapError(values.remove(name), unavailable))
    }
  })

/**
 * Provides a store in a `KeyValueStore` for the state of users.
 *
 * @example
 * const stores = StateStore.layerKeyValue({ prefix: "shop:" }).pipe(Layer.provide(KeyValueStore.layerSql()))
 */
export const layerKeyValue = (options: KeyValueOptions = {}): Layer.Layer<never, never, KeyValueStore.KeyValueStore> =>
  Layer.effect(
    StateStores,
    Effect.map(makeKeyValue(options), (users) => ({ users, sessions: makeMemory(options.memory) }))
  )

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
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Hex from "effect/encoding/Hex"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Semaphore from "effect/Semaphore"
import { sha256 } from "./internal/base/digest.ts"
import {
  type Key,
  makeMemory,
  type MemoryOptions,
  StateStores,
  type Store,
  type Stored
} from "./internal/state/stores.ts"
import { StateError, Unavailable } from "./StateError.ts"

export {
  type Key,
  makeMemory,
  type MemoryOptions,
  type MemoryStore,
  StateStores,
  type Store,
  type Stored,
  type Stores,
  type Write
} from "./internal/state/stores.ts"

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

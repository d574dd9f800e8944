/**
 * The cache of a client: lists, resources and server information that the server allows it to store (2026-07-28,
 * caching).
 *
 * Each client has a cache in memory by default. A result with a `ttlMs` above 0 is stored, and is "considered fresh
 * while now < t_received + ttlMs". A notification about a change makes it stale at once. Before 2026-07-28 results have
 * no `ttlMs`, and nothing is stored. A call with `cache: "refresh"` or `"bypass"` always asks the server.
 *
 * **When to use.** The default needs no code. Give a `store` to share responses between clients, processes or machines,
 * or to store them across restarts. Use `cache: false` for no cache.
 *
 * **Gotchas.** A shared store serves `public` results to all users, and `private` results only to the same `partition`:
 * "Caches MUST NOT be shared across authorization contexts". Do not use the name that a server gives itself as
 * `server`, since another server may have the same name. A client counts as one principal: if its `Credentials` change
 * to another principal, run `clearCache` or make a new client.
 *
 * @example
 * const store = ResponseCache.make({ maxEntries: 10_000 })
 * const clientOf = (user: User) =>
 *   Client.make(transportOf(user), { cache: { store, server: "https://example.com/mcp", partition: user.id } })
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** Identifies a response. */
export interface Key {
  /** The server: the value of the option `server`. */
  readonly server: string
  /** The method of the request: `tools/list`. */
  readonly method: string
  /**
   * The relevant params of the request, as JSON with sorted members. Requests with equal text have the same response.
   */
  readonly params: string
  /** The option `partition` for a `private` response, `undefined` for a `public` one. */
  readonly partition: string | undefined
}

/** A stored response. All of it is JSON. */
export interface Entry {
  /** The result as JSON text. */
  readonly text: string
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** For how many milliseconds after `receivedAt` it is fresh. */
  readonly ttlMs: number
}

/**
 * The responses that have become stale, in all partitions: those of a server, of one method, or of one method with
 * these params.
 */
export interface Stale {
  readonly server: string
  readonly method?: string | undefined
  readonly params?: ReadonlyArray<string> | undefined
}

/**
 * Stores entries in memory, in a file or in a database. It does not have to check the content or the age of entries. It
 * may drop any entry at any time, and should drop entries that are older than their `ttlMs`.
 *
 * It may fail or be slow. Then the client asks the server, and logs a warning.
 */
export interface Store {
  readonly get: (key: Key) => Effect.Effect<Entry | undefined, unknown>
  /** Stores an entry, in place of the previous one. */
  readonly set: (key: Key, entry: Entry) => Effect.Effect<void, unknown>
  readonly invalidate: (stale: Stale) => Effect.Effect<void, unknown>
}

/** A store whose functions return promises, or values. */
export interface AsyncStore {
  readonly get: (key: Key) => Entry | undefined | PromiseLike<Entry | undefined>
  /** Stores an entry, in place of the previous one. */
  readonly set: (key: Key, entry: Entry) => unknown
  readonly invalidate: (stale: Stale) => unknown
}

/**
 * Makes a store of async functions.
 *
 * @example
 * const store = ResponseCache.async({
 *   get: async (key) => JSON.parse(await redis.get(JSON.stringify(key)) ?? "null") ?? undefined,
 *   set: (key, entry) => redis.set(JSON.stringify(key), JSON.stringify(entry)),
 *   invalidate: () => redis.flushdb()
 * })
 */
export { asyncStore as async }

const asyncStore = (store: AsyncStore): Store => ({
  get: (key) => Effect.tryPromise(async () => store.get(key)),
  set: (key, entry) => Effect.tryPromise(async () => void await store.set(key, entry)),
  invalidate: (stale) => Effect.tryPromise(async () => void await store.invalidate(stale))
})

/** The bounds of a store in memory. */
export interface MemoryOptions {
  /**
   * How many responses are stored: 1,000 by default. Beyond that the least recently used one is dropped.
   * Raise it for a client that reads more resources again and again.
   */
  readonly maxEntries?: number | undefined
  /**
   * How long all stored responses may be together, in UTF-16 units of JSON: 16 Mi by default. Beyond that the least
   * recently used ones are dropped. A response that alone is longer is not stored. Lower it where memory is
   * scarce, raise it for large resources.
   */
  readonly maxTotalChars?: number | undefined
}

interface Common {
  /**
   * The longest time that a response counts as fresh, even with a longer `ttlMs`: 24 hours by default. Lower it for a
   * server that promises more than it keeps.
   */
  readonly maxTtl?: Duration.Input | undefined
  /**
   * How long after its `ttlMs` a response is still returned when the server cannot be reached or does not respond
   * ("Clients MAY serve stale responses if errors occur during re-fetching"): not at all by default. Invalidated
   * responses are never returned.
   */
  readonly staleIfError?: Duration.Input | undefined
}

/** A cache in memory that belongs to one client. It stores `private` responses as well. */
export interface OwnOptions extends Common, MemoryOptions {
  readonly store?: undefined
}

/** A cache in a store that other clients may use as well. */
export interface SharedOptions extends Common {
  /**
   * The store. If it fails, or takes longer than 1 second, it is not used for 10 seconds, and the server is asked
   * instead.
   */
  readonly store: Store
  /**
   * Identifies the server among all servers of the store: its URL, for example. Not the name that the server gives
   * itself.
   */
  readonly server: string
  /**
   * Identifies the principal or the access token of the client: a unique id that never changes. `private` responses are
   * stored only with a partition, and returned only to clients with the same one.
   */
  readonly partition?: string | undefined
}

/** The options of a cache. */
export type Options = OwnOptions | SharedOptions

const idOf = ({ method, params, partition, server }: Key): string =>
  JSON.stringify([server, method, params, partition ?? null])

const isAffected = (stale: Stale, key: Key): boolean =>
  stale.server === key.server &&
  (stale.method === undefined || stale.method === key.method) &&
  (stale.params === undefined || stale.params.includes(key.params))

interface StoredEntry {
  readonly key: Key
  readonly entry: Entry
  readonly size: number
}

/**
 * Makes a store in memory, for the option `store` of several clients in one process. A client without the option has
 * one of its own. Entries are stored as text, so that a caller that changes a result does not change the stored one.
 *
 * @example
 * const store = ResponseCache.make({ maxEntries: 10_000 })
 * const client = Client.make(transport, { cache: { store, server: "https://example.com/mcp" } })
 */
export const make = (
  { maxEntries = 1_000, maxTotalChars = 16 * 1024 * 1024 }: MemoryOptions = {}
): Store => {
  // In the order of their last use, the least recently used one first.
  const entries = new Map<string, StoredEntry>()
  let size = 0

  const remove = (id: string): void => {
    const kept = entries.get(id)
    if (kept === undefined) return
    entries.delete(id)
    size -= kept.size
  }

  return {
    get: (key) =>
      Effect.sync(() => {
        const id = idOf(key)
        const kept = entries.get(id)
        if (kept === undefined) return undefined
        entries.delete(id)
        entries.set(id, kept)
        return kept.entry
      }),
    set: (key, entry) =>
      Effect.sync(() => {
        const id = idOf(key)
        remove(id)
        const kept = { key, entry, size: id.length + entry.text.length }
        if (kept.size > maxTotalChars) return
        entries.set(id, kept)
        size += kept.size
        for (const oldest of entries.keys()) {
          if (entries.size <= maxEntries && size <= maxTotalChars) return
          remove(oldest)
        }
      }),
    invalidate: (stale) =>
      Effect.sync(() => {
        for (const [id, { key }] of entries) if (isAffected(stale, key)) remove(id)
      })
  }
}

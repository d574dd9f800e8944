/**
 * What a client keeps of what the server lets it keep: lists, resources and what the server says of itself (2026-07-28, caching).
 *
 * A client has one from the start, in memory. A result with a `ttlMs` above 0 is kept, and "considered fresh while
 * now < t_received + ttlMs"; a notice that something has changed makes it stale at once. Before 2026-07-28 results carry no
 * `ttlMs`, and nothing is kept. What is asked for with `cache: "refresh"` or `"bypass"` is always asked of the server.
 *
 * **When to use.** Nothing has to be done to have it. Give a `store` to share what is kept between clients, processes or machines,
 * or to keep it over a restart; give `false` to have none.
 *
 * **Gotchas.** A store that is shared keeps `public` results for everybody, and `private` ones only where `partition` says whose
 * they are: "Caches MUST NOT be shared across authorization contexts". The name of a server is no `server`: another may call itself
 * the same. A client is taken to be one principal's: where its `Credentials` become somebody else's, run `clearCache`, or make
 * another client.
 *
 * @example
 * const store = ResponseCache.memory({ maxEntries: 10_000 })
 * const clientOf = (user: User) =>
 *   Client.make(transportOf(user), { cache: { store, server: "https://example.com/mcp", partition: user.id } })
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** Which response it is. */
export interface Key {
  /** The server, by the name that the option `server` gives it. */
  readonly server: string
  /** The method of the request: `tools/list`. */
  readonly method: string
  /** The params of the request that matter, as JSON with sorted members: two requests are the same if, and only if, these are. */
  readonly params: string
  /** Whose it is; `undefined` for a `public` one, which is everybody's. */
  readonly partition: string | undefined
}

/** What is kept of one response: JSON, all of it. */
export interface Entry {
  /** The result as JSON text. */
  readonly text: string
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** For how many milliseconds from then on it is fresh. */
  readonly ttlMs: number
}

/** Which responses are stale: of all partitions, those of a server, of one method, or of these params. */
export interface Stale {
  readonly server: string
  readonly method?: string | undefined
  readonly params?: ReadonlyArray<string> | undefined
}

/**
 * Keeps entries: in memory, a file, a database. It need not look at what it keeps, nor at how old it is, and may lose any of it at
 * any time; an entry may go once its `ttlMs` is over.
 *
 * It may fail, or take its time: then the server is asked, and the log says so.
 */
export interface Store {
  readonly get: (key: Key) => Effect.Effect<Entry | undefined, unknown>
  /** Keeps an entry in the place of the one before. */
  readonly set: (key: Key, entry: Entry) => Effect.Effect<void, unknown>
  readonly invalidate: (stale: Stale) => Effect.Effect<void, unknown>
}

/** The bounds of a store in memory. */
export interface MemoryOptions {
  /** How many responses are kept: 1,000 by default. Of more, the one that was used least recently goes. */
  readonly maxEntries?: number | undefined
  /**
   * How long they may be together, in UTF-16 units of JSON: 16 Mi by default. Of more, the ones that were used least recently go;
   * one that is longer by itself is not kept.
   */
  readonly maxTotalChars?: number | undefined
}

interface Common {
  /** For how long a response is fresh at most, whatever its `ttlMs` says: 24 hours by default. */
  readonly maxTtl?: Duration.Input | undefined
  /**
   * For how long after its time a response is given all the same when the server cannot be reached, or does not answer ("Clients MAY
   * serve stale responses if errors occur during re-fetching"): not at all by default. What was invalidated is never given.
   */
  readonly staleIfError?: Duration.Input | undefined
}

/** A cache of the client's own, in memory. It is nobody else's, so that `private` responses are kept as well. */
export interface OwnOptions extends Common, MemoryOptions {
  readonly store?: undefined
}

/** A cache in a store that others may use as well. */
export interface SharedOptions extends Common {
  readonly store: Store
  /** Which server it is, among all that the store knows; its URL, for instance. Not what it calls itself. */
  readonly server: string
  /**
   * Who is asking, by an id that is unique and never changes: one for each principal, or access token. Responses that are `private`
   * are kept only where it is given, and given to nobody else.
   */
  readonly partition?: string | undefined
  /**
   * How long the store may take: 1 second by default. One that fails, or takes longer, is left alone for ten times as long, and the
   * server is asked.
   */
  readonly storeTimeout?: Duration.Input | undefined
}

/** How responses are kept. */
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

/** A store in memory. Entries are kept as text, so that nobody who got one can change what the next one gets. */
export const make = (
  { maxEntries = 1_000, maxTotalChars = 16 * 1024 * 1024 }: MemoryOptions = {}
): Store => {
  // By their last use: the one that was used least recently comes first.
  const entries = new Map<string, StoredEntry>()
  let size = 0

  const remove = (id: string): void => {
    const kept = entries.get(id)
    if (kept === undefined) return
    entries.delete(id)
    size -= kept.size
  }
  const put = (id: string, kept: StoredEntry): void => {
    entries.set(id, kept)
    size += kept.size
    for (const oldest of entries.keys()) {
      if (entries.size <= maxEntries && size <= maxTotalChars) return
      remove(oldest)
    }
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
        if (kept.size <= maxTotalChars) put(id, kept)
      }),
    invalidate: (stale) =>
      Effect.sync(() => {
        for (const [id, { key }] of entries) if (isAffected(stale, key)) remove(id)
      })
  }
}

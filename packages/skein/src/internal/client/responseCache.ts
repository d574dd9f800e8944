/**
 * Caches of responses that several clients share.
 */
import * as Core from "@skein/client/ResponseCache"
import type { Awaitable } from "../base/types.ts"
import type { MemoryCacheOptions, ResponseStore } from "./options.ts"

/** Identifies a response. */
export interface ResponseKey {
  /** The option `server` of the cache. */
  readonly server: string
  /** The method of the request: `tools/list`. */
  readonly method: string
  /** The relevant params of the request, as JSON with sorted members. */
  readonly params: string
  /** The option `partition` for a private response, `undefined` for a public one. */
  readonly partition: string | undefined
}

/** A stored response. All of it is JSON. */
export interface StoredResponse {
  /** The result as JSON text. */
  readonly text: string
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** For how many milliseconds after `receivedAt` it is fresh. */
  readonly ttlMs: number
}

/** The responses that have become stale, in all partitions: those of a server, of one method, or with these params. */
export interface StaleResponses {
  readonly server: string
  readonly method?: string | undefined
  readonly params?: ReadonlyArray<string> | undefined
}

/** A store of responses in a file or a database. It may drop any entry at any time, and need not check their age. */
export interface ResponseStoreFunctions {
  readonly get: (key: ResponseKey) => Awaitable<StoredResponse | undefined>
  /** Stores an entry, in place of the previous one. */
  readonly set: (key: ResponseKey, entry: StoredResponse) => unknown
  readonly invalidate: (stale: StaleResponses) => unknown
}

/**
 * Makes a store of responses in memory, for several clients. A client without the option `cache` has one of its own.
 *
 * @example
 * const store = responseCache({ maxEntries: 10_000 })
 * const client = await AsyncClient.connect(url, { cache: { store, server: url, partition: user.id } })
 */
export const responseCache: (options?: MemoryCacheOptions) => ResponseStore = Core.make as never

/**
 * Makes a store of responses of async functions, for clients of several processes. If a function rejects or takes longer than 1
 * second, the server is asked.
 *
 * @example
 * const store = responseStore({
 *   get: async (key) => JSON.parse(await redis.get(JSON.stringify(key)) ?? "null") ?? undefined,
 *   set: (key, entry) => redis.set(JSON.stringify(key), JSON.stringify(entry)),
 *   invalidate: () => redis.flushDb()
 * })
 */
export const responseStore: (functions: ResponseStoreFunctions) => ResponseStore = Core.async as never

/**
 * Stores the registrations of the clients of a `Proxy`, codes, tokens and the tokens of its upstream. A store holds text by
 * key. The proxy encrypts the values and hashes the identifiers in the keys before they reach the store, so a copy of
 * the store is of no use without the keys of the proxy.
 *
 * Use `layerSql` for a server, and one database for all instances of it. `layerMemory` is for tests: with it each
 * restart signs all people out.
 *
 * @example
 * const program = Effect.provide(main, ProxyStore.layerMemory)
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as SqlClient from "effect/sql/SqlClient"
import { makeLocks } from "../shared/localLocks.ts"
import { waiting } from "./locks.ts"
import { makeSqlStore } from "./sqlStore.ts"
import { type Entry, ProxyStore, ProxyStoreError, type SetOptions } from "./store.ts"

export { ProxyStore, ProxyStoreError }
export type { Entry, SetOptions }

interface MemoryEntry extends SetOptions {
  readonly value: string
  usedAt: number | undefined
}

/** How many values a store in memory holds. Above, it removes those that expire first. */
const maxEntries = 10_000

/**
 * A store in the memory of this process, of at most 10,000 values: above, those that expire first are removed.
 *
 * The times are those of `Date.now`, not of Effect's clock, because the authorization server that uses the store has
 * no other clock.
 *
 * @example
 * const Store = Layer.succeed(ProxyStore.ProxyStore, ProxyStore.makeMemory())
 */
export const makeMemory = (): ProxyStore["Service"] => {
  const entries = new Map<string, MemoryEntry>()
  const withLock = makeLocks(waiting)
  const find = (key: string): MemoryEntry | undefined => {
    const entry = entries.get(key)
    if (entry?.expiresAt !== undefined && entry.expiresAt <= Date.now()) {
      entries.delete(key)
      return undefined
    }
    return entry
  }
  // The values that expire first are removed: anybody can begin sign-ins, and they must not displace the tokens of people
  // who have signed in. Several at once, so that a flood does not sort the values each time.
  const makeRoom = () => {
    const endOf = ({ expiresAt = Infinity }: MemoryEntry): number => expiresAt
    const [now, byEnd] = [Date.now(), [...entries].toSorted(([, one], [, other]) => endOf(one) - endOf(other))]
    for (const [index, [key, entry]] of byEnd.entries()) {
      if (index >= maxEntries / 16 && endOf(entry) > now) return
      entries.delete(key)
    }
  }
  return {
    get: (key) => Effect.sync(() => Option.fromUndefinedOr(find(key))),
    set: (key, value, options) =>
      Effect.sync(() => {
        if (entries.size >= maxEntries) makeRoom()
        entries.set(key, { ...options, value, usedAt: undefined })
      }),
    use: (key, now) =>
      Effect.sync(() => {
        const entry = find(key)
        if (entry === undefined || entry.usedAt !== undefined) return false
        entry.usedAt = now
        return true
      }),
    take: (key) =>
      Effect.sync(() => {
        const entry = find(key)
        entries.delete(key)
        return Option.fromUndefinedOr(entry?.value)
      }),
    remove: (key) => Effect.sync(() => void entries.delete(key)),
    removeGroup: (group) =>
      Effect.sync(() => {
        for (const [key, entry] of entries) if (entry.group === group) entries.delete(key)
      }),
    withLock: (key, effect) => withLock(key, effect)
  }
}

/**
 * A store in the memory of this process. It is gone when its layer is: clients register again, and their users sign in
 * again. See {@link makeMemory}.
 *
 * @example
 * const proxy = Proxy.make(options).pipe(Effect.provide(ProxyStore.layerMemory))
 */
export const layerMemory: Layer.Layer<ProxyStore> = /* @__PURE__ */ Layer.sync(ProxyStore, () => makeMemory())

/**
 * A store in PostgreSQL or SQLite, in the tables `skein_proxy` and `skein_proxy_locks`, which it creates. All instances
 * of a server use one database. Expired rows are removed once a minute. Values are written outside of a transaction of
 * the caller, whose rollback would lose a renewed token; on SQLite, which has one connection, do not use
 * `UpstreamToken` inside a transaction of the same client.
 *
 * @example
 * const Store = ProxyStore.layerSql.pipe(Layer.provide(PgClient.layer({ url: process.env.DATABASE_URL })))
 */
export const layerSql: Layer.Layer<ProxyStore, ProxyStoreError, SqlClient.SqlClient> = /* @__PURE__ */ Layer.effect(
  ProxyStore,
  makeSqlStore
)

/** Tests of `SqlStateStore` for each database. */
import { describe, expect, it } from "@effect/vitest"
import * as SqlStateStore from "@skein/server/SqlStateStore"
import type { Store } from "@skein/server/StateStore"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"

/** A new database. */
export interface Database {
  /** The file or the URL. */
  readonly place: string
  /** Clients of the database that do not know of each other, as those of two processes. */
  readonly clients: readonly [SqlClient.SqlClient, SqlClient.SqlClient]
}

const day = 86_400_000

export const storeIn = (sql: SqlClient.SqlClient, options?: SqlStateStore.Options) =>
  Effect.provideService(SqlStateStore.make(options), SqlClient.SqlClient, sql)

const keyOf = (name: string, owner = "principal ada") => ({ owner, scope: "user" as const, name })

const write = (json: string, expected?: string, ttlMs = day) => ({ json, expected, ttlMs })

/** Writes a value whatever its version is. */
const put = (store: Store, name: string, json: string, { owner, ttlMs }: { owner?: string; ttlMs?: number } = {}) =>
  Effect.gen(function*() {
    const key = keyOf(name, owner)
    const before = yield* store.get(key)
    expect(yield* store.set(key, write(json, before?.version, ttlMs))).toBe(true)
  })

/** Increments a number, as `State.update` does. Returns the attempts. */
const increment = (store: Store): Effect.Effect<number, unknown> =>
  Effect.gen(function*() {
    for (let attempts = 1;; attempts++) {
      const before = yield* store.get(keyOf("counter"))
      const json = String(Number(before?.json ?? 0) + 1)
      if (yield* store.set(keyOf("counter"), write(json, before?.version))) return attempts
    }
  })

const rowsOf = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql<{ readonly name: string }>`SELECT name FROM skein_states ORDER BY name`,
    (rows) => rows.map(({ name }) => name)
  )

const start = (place: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = fork(join(import.meta.dirname, "countingProcess.ts"), [place], {
        execArgv: ["--conditions=@skein/source"],
        stdio: ["ignore", "ignore", "inherit", "ipc"]
      })
      await once(child, "message")
      return child
    }),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )

const count = (child: ChildProcess, calls: number) =>
  Effect.promise(async () => {
    const answer = once(child, "message")
    child.send(calls)
    return (await answer)[0] as ReadonlyArray<string>
  })

export const sqlStoreTests = (
  database: string,
  open: Effect.Effect<Database, unknown, Scope.Scope>
): void => {
  describe(`SqlStateStore on ${database}`, () => {
    const stores = (options?: SqlStateStore.Options) =>
      Effect.gen(function*() {
        const { clients, place } = yield* open
        const made = yield* Effect.forEach(clients, (sql) => storeIn(sql, options), { concurrency: "unbounded" })
        return { place, sql: clients[0], stores: [made[0]!, made[1]!] as const }
      })

    it.effect("writes a value only in the expected version, whichever process wrote it", () =>
      Effect.gen(function*() {
        const { stores: [one, two] } = yield* stores()
        const key = keyOf("cart")
        expect(yield* one.get(key)).toBeUndefined()
        expect(yield* one.set(key, write("1", "unknown"))).toBe(false)
        expect(yield* one.set(key, write("1"))).toBe(true)
        expect(yield* two.set(key, write("2"))).toBe(false)
        const first = yield* two.get(key)
        expect(first?.json).toBe("1")
        expect(yield* two.set(key, write("2", first?.version))).toBe(true)
        expect(yield* one.set(key, write("3", first?.version))).toBe(false)
        yield* one.remove(key)
        expect(yield* two.get(key)).toBeUndefined()
        // The value exists again, but is another one.
        expect(yield* two.set(key, write("1"))).toBe(true)
        expect(yield* one.set(key, write("3", first?.version))).toBe(false)
        expect((yield* one.get(key))?.json).toBe("1")
      }))

    it.effect("loses no concurrent update of two clients, and none is retried 100 times", () =>
      Effect.gen(function*() {
        const { stores: pair } = yield* stores()
        const attempts = yield* Effect.forEach(
          Array.from({ length: 100 }, (_, n) => pair[n % 2]!),
          increment,
          { concurrency: 10 }
        )
        expect((yield* pair[0].get(keyOf("counter")))?.json).toBe("100")
        expect(Math.max(...attempts)).toBeLessThan(100)
      }))

    it.effect("keeps the values of owners, scopes, names and namespaces apart, whatever their texts are", () =>
      Effect.gen(function*() {
        const { clients: [sql] } = yield* open
        const texts = [
          "a",
          "a ",
          "A",
          "a\0",
          "",
          "\ud800",
          "\ud801",
          "\ufffd",
          "a".repeat(10_000),
          "'; DROP TABLE x",
          "a\u0301",
          "\u00e1"
        ]
        const written: Array<string> = []
        for (const [pass, expected] of [undefined, "read"].entries()) {
          for (const namespace of ["a", "a\0", "b"]) {
            const store = yield* storeIn(sql, { namespace })
            for (const text of texts) {
              for (const key of [keyOf(text), keyOf("x", text), { ...keyOf(text), scope: "session" as const }]) {
                const json = JSON.stringify([namespace, key])
                if (expected === undefined) expect(yield* store.set(key, write(json))).toBe(true)
                else expect((yield* store.get(key))?.json).toBe(json)
                if (pass === 0) written.push(json)
              }
            }
          }
        }
        expect(new Set(written).size).toBe(3 * 3 * texts.length)
      }))

    it.effect("returns a value until it expires, and then accepts another one", () =>
      Effect.gen(function*() {
        const { stores: [one, two] } = yield* stores()
        const key = keyOf("cart")
        yield* put(one, "cart", "1", { ttlMs: 10_000.5 })
        yield* put(two, "kept", "1", { ttlMs: Infinity })
        yield* TestClock.adjust("10 seconds")
        const last = yield* two.get(key)
        expect(last?.json).toBe("1")
        yield* TestClock.adjust("1 second")
        expect(yield* two.get(key)).toBeUndefined()
        expect(yield* two.set(key, write("2", last?.version))).toBe(false)
        expect(yield* two.set(key, write("2"))).toBe(true)
        expect((yield* one.get(key))?.json).toBe("2")
        yield* TestClock.adjust(365 * day)
        expect((yield* one.get(keyOf("kept")))?.json).toBe("1")
      }))

    it.effect("deletes rows that have expired, once a minute and 1,000 at a time, and no others", () =>
      Effect.gen(function*() {
        const { sql, stores: [store] } = yield* stores()
        yield* put(store, "kept", "1", { ttlMs: Infinity })
        const expired = (count: number) =>
          sql`INSERT INTO skein_states (id, owner, namespace, name, value, bytes, version, expires_at)
            ${
            sql.literal(
              `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`
            )
          }
            SELECT 'old ' || n, 'nobody', 'default', 'old', '1', 1, '1', 1 FROM numbers`
        const rows = Effect.map(sql`SELECT 1 FROM skein_states`, ({ length }) => length)
        yield* expired(2_500)
        yield* TestClock.adjust("59 seconds")
        yield* put(store, "new", "1")
        expect(yield* rows).toBe(2_502)
        yield* TestClock.adjust("1 second")
        const left: Array<number> = []
        for (let n = 0; n < 4; n++) {
          yield* put(store, "new", `${n}`)
          left.push(yield* rows)
        }
        expect(left).toEqual([1_502, 502, 2, 2])
        yield* expired(1)
        yield* put(store, "new", "1")
        expect(yield* rows).toBe(3)
        yield* TestClock.adjust("1 minute")
        // In a transaction of the caller, nothing else is deleted.
        yield* sql.withTransaction(put(store, "new", "2"))
        expect(yield* rows).toBe(3)
        yield* put(store, "new", "3")
        expect(yield* rowsOf(sql)).toEqual(["kept", "new"])
      }))

    it.effect("bounds the bytes of one owner, without those that have expired, and keeps the earlier value", () =>
      Effect.gen(function*() {
        const { stores: [one, two] } = yield* stores({ maxBytesPerClient: 50 })
        yield* put(one, "one", "1".repeat(30), { ttlMs: 10_000 })
        const first = yield* two.get(keyOf("two"))
        const refused = yield* Effect.flip(two.set(keyOf("two"), write("2".repeat(21), first?.version)))
        expect(refused.reason._tag).toBe("TooLarge")
        expect(refused.message).toBe("The state two exceeds maxBytesPerClient (50 bytes)")
        yield* put(two, "two", "2".repeat(20))
        yield* put(two, "two", "2".repeat(21), { owner: "principal bob" })
        // Bytes, not characters.
        const before = yield* two.get(keyOf("two"))
        const large = yield* Effect.flip(two.set(keyOf("two"), write("\u00e9".repeat(11), before?.version)))
        expect(large.reason._tag).toBe("TooLarge")
        expect((yield* two.get(keyOf("two")))?.json).toBe("2".repeat(20))
        yield* TestClock.adjust("10 seconds")
        yield* put(two, "two", "2".repeat(50))
      }))

    it.effect("commits and rolls back with the transaction of the caller", () =>
      Effect.gen(function*() {
        const { sql, stores: [one, two] } = yield* stores()
        yield* put(one, "cart", "1")
        const failing = sql.withTransaction(Effect.andThen(put(one, "cart", "2"), Effect.fail("rolled back")))
        expect(yield* Effect.flip(failing)).toBe("rolled back")
        expect((yield* two.get(keyOf("cart")))?.json).toBe("1")
        yield* sql.withTransaction(put(one, "cart", "2"))
        expect((yield* two.get(keyOf("cart")))?.json).toBe("2")
      }))

    it.effect("creates its tables once, and refuses those of a later version", () =>
      Effect.gen(function*() {
        const { sql, stores: [one] } = yield* stores()
        yield* put(one, "cart", "1")
        const again = yield* storeIn(sql)
        expect((yield* again.get(keyOf("cart")))?.json).toBe("1")
        expect(yield* sql`SELECT version FROM skein_state_versions`).toEqual([{ version: 1 }])
        yield* sql`INSERT INTO skein_state_versions (version) VALUES (2)`
        expect((yield* Effect.flip(storeIn(sql))).message).toBe(
          "The state is not available: its tables have version 2, and this program supports 1: a later version created them"
        )
      }))

    it.effect("fails with Unavailable if the database does, without the message of the driver", () =>
      Effect.gen(function*() {
        const { sql, stores: [store] } = yield* stores()
        yield* sql`DROP TABLE skein_states`
        for (const use of [store.get(keyOf("a")), store.set(keyOf("a"), write("secret")), store.remove(keyOf("a"))]) {
          const { message, reason } = yield* Effect.flip(use as Effect.Effect<unknown, Effect.Error<typeof use>>)
          expect([reason._tag, message]).toEqual(["Unavailable", "The state is not available: the database failed"])
        }
      }))

    it.live("lets two processes increment one counter, and loses nothing", () =>
      Effect.gen(function*() {
        const { place } = yield* open
        const children = yield* Effect.all([start(place), start(place)], { concurrency: 2 })
        const seen = yield* Effect.forEach(children, (child) => count(child, 100), { concurrency: 2 })
        const numbers = seen.flat().map(Number).toSorted((a, b) => a - b)
        expect(numbers).toEqual(Array.from({ length: 200 }, (_, n) => n + 1))
      }))
  })
}

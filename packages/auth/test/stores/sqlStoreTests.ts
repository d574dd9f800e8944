/** The tests of `SqlTokenStore` that both databases pass, besides those of all stores. */
import { assert, describe, it } from "@effect/vitest"
import type * as SqlTokenStore from "@skein/auth/SqlTokenStore"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as Tracer from "effect/Tracer"
import { forkInLock, holdLock, read, reasonOf, shown, type Store, write } from "./conformance.ts"

export type OpenSql = (options: SqlTokenStore.Options) => Effect.Effect<
  {
    readonly clients: ReadonlyArray<SqlClient.SqlClient>
    readonly stores: readonly [Store, Store]
  },
  unknown,
  Scope.Scope
>

/** Makes the lease of every lock end now, as if its holder had been stopped for `leaseTimeout`. */
const endLeases = (sql: SqlClient.SqlClient) => sql`UPDATE skein_token_locks SET expires_at = 0`

export const sqlStoreTests = (name: string, open: OpenSql) =>
  describe(`${name}, leases`, () => {
    it.live("refuses what a holder writes whose lease ended and was taken over", () =>
      Effect.gen(function*() {
        const { clients: [sql], stores: [stopped, other] } = yield* open({})
        yield* write(stopped, "a", "old")
        const takenOver = yield* Deferred.make<void>()
        const holder = yield* forkInLock(
          stopped,
          "a",
          Effect.gen(function*() {
            yield* Deferred.await(takenOver)
            return [
              yield* reasonOf(write(stopped, "a", "stale")),
              yield* reasonOf(write(stopped, "b", "stale")),
              yield* reasonOf(stopped.remove("a")),
              // Another lock does not help.
              yield* reasonOf(stopped.withLock("c", write(stopped, "a", "stale"))),
              yield* read(stopped, "a")
            ]
          })
        )
        yield* endLeases(sql!)
        const release = yield* holdLock(other, "a")
        yield* write(other, "a", "new")
        yield* Deferred.succeed(takenOver, undefined)
        assert.deepEqual(yield* Fiber.join(holder), ["LockLost", "LockLost", "LockLost", "LockLost", "new"])
        // The lock of the new holder is still held.
        assert.strictEqual(
          yield* reasonOf(stopped.withLock("a", Effect.void, { lockTimeout: "50 millis" })),
          "LockTimeout"
        )
        yield* release
        assert.isUndefined(yield* read(stopped, "b"))
      }))

    it.live("takes a lock over when its lease ends, and not before", () =>
      Effect.gen(function*() {
        const { clients: [sql], stores: [first, second] } = yield* open({})
        const release = yield* holdLock(first, "a")
        assert.strictEqual(
          yield* reasonOf(second.withLock("a", Effect.void, { lockTimeout: "100 millis" })),
          "LockTimeout"
        )
        yield* endLeases(sql!)
        assert.strictEqual(yield* second.withLock("a", Effect.succeed("taken over")), "taken over")
        yield* release
      }))

    it.live("renews a lease while its effect runs, and interrupts the effect when the lease was taken over", () =>
      Effect.gen(function*() {
        const { clients: [sql], stores: [first, second] } = yield* open({ leaseTimeout: "300 millis" })
        const interrupted = yield* Deferred.make<void>()
        const holder = yield* forkInLock(
          first,
          "a",
          Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
        )
        const ends = sql!<{ readonly expires_at: number }>`SELECT expires_at FROM skein_token_locks`
        const before = (yield* ends)[0]!.expires_at
        while ((yield* ends)[0]!.expires_at === before) yield* Effect.sleep(20)
        yield* sql!`UPDATE skein_token_locks SET holder = 'another'`
        assert.strictEqual(yield* reasonOf(Fiber.join(holder)), "LockLost")
        yield* Deferred.await(interrupted)
        // It did not release the lock of the other.
        assert.strictEqual((yield* ends).length, 1)
        yield* endLeases(sql!)
        yield* second.withLock("a", Effect.void)
        assert.strictEqual((yield* ends).length, 0)
      }))

    it.live("creates its tables once when several processes start, and refuses those of a later version", () =>
      Effect.gen(function*() {
        const { clients, stores: [store] } = yield* open({})
        yield* write(store, "a", "kept")
        const { make } = yield* Effect.promise(() => import("@skein/auth/SqlTokenStore"))
        const makes = clients.map((sql) => Effect.provideService(make(), SqlClient.SqlClient, sql))
        yield* Effect.all([...makes, ...makes], { concurrency: "unbounded" })
        assert.strictEqual(yield* read(store, "a"), "kept")
        yield* clients[0]!`INSERT INTO skein_token_versions (version) VALUES (1000)`
        const error = yield* Effect.flip(makes[0]!)
        assert.include(error.message, "version 1000")
      }))

    it.live("reports a damaged row, and shows no value in errors and spans", () =>
      Effect.gen(function*() {
        const spans: Array<unknown> = []
        const tracer = Tracer.make({
          span: (options) => {
            const span = new Tracer.NativeSpan(options)
            spans.push(span)
            return span
          }
        })
        const { clients: [sql], stores: [store] } = yield* open({})
        yield* Effect.gen(function*() {
          yield* store.withLock("a", write(store, "a", "s3cret"))
          assert.strictEqual(yield* read(store, "a"), "s3cret")
        }).pipe(Effect.withSpan("use"), Effect.provide(Layer.succeed(Tracer.Tracer, tracer)))
        assert.isAbove(spans.length, 0)
        assert.notInclude(shown(spans), "s3cret")

        yield* sql!`UPDATE skein_tokens SET value = 's3cret'`
        const damaged = yield* Effect.flip(store.get("a"))
        assert.strictEqual(damaged.reason._tag, "InvalidEntry")
        assert.match(damaged.message, /the row "[\w-]{43}" of skein_tokens is damaged/)
        assert.notInclude(shown(damaged), "s3cret")
        yield* sql!`DROP TABLE skein_tokens`
        const failed = yield* Effect.flip(write(store, "a", "s3cret"))
        assert.strictEqual(failed.reason._tag, "StoreUnavailable")
        assert.notInclude(shown(failed), "s3cret")
      }))
  })

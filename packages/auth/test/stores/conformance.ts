/** The behaviour that every token store has. Each store's test file calls `storeTests`. */
import { assert, describe, it } from "@effect/vitest"
import type * as TokenStore from "@skein/auth/TokenStore"
import type { TokenStoreError } from "@skein/auth/TokenStoreError"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { inspect } from "node:util"

export type Store = TokenStore.TokenStore["Service"]

/** Opens two stores that share what they hold, as two processes do. Stores of two calls share nothing. */
export type Open = (
  options: TokenStore.Options
) => Effect.Effect<readonly [first: Store, second: Store], unknown, Scope.Scope>

/** Reads a value as text. */
export const read = (store: Store, key: string) =>
  Effect.map(store.get(key), (value) => Option.getOrUndefined(Option.map(value, Redacted.value)))

/** Writes a text. */
export const write = (store: Store, key: string, value: string) => store.set(key, Redacted.make(value))

/** The tag of the reason for which an effect fails. */
export const reasonOf = <A, E, R>(effect: Effect.Effect<A, E | TokenStoreError, R>) =>
  Effect.map(Effect.flip(effect), (error) => (error as TokenStoreError).reason._tag)

/** Everything that a log, a debugger or an error report could show of a value. */
export const shown = (value: unknown): string =>
  `${String(value)} ${
    JSON.stringify(value, (_, member: unknown) => typeof member === "bigint" ? String(member) : member)
  } ${inspect(value, { depth: 20, showHidden: true })}`

const oddTexts: ReadonlyArray<string> = [
  "",
  " ",
  "../../etc/passwd",
  "a/b\\c:d*e?f\"g<h>|i",
  "CON",
  "nul\0byte",
  "line\nbreak\r\n",
  "\u{1F375} 茶 é é",
  "lone \ud800 surrogate",
  "lone \ud801 surrogate",
  "__proto__",
  "constructor",
  "{\"json\":true}",
  "'; DROP TABLE skein_tokens; --",
  "https://tea.example/mcp?a=1#b",
  "HTTPS://TEA.EXAMPLE/mcp",
  "k".repeat(10_000)
]

/** Forks an effect that holds a lock, and waits until it holds it. Fails if the lock is not obtained. */
export const forkInLock = <A, E>(store: Store, key: string, effect: Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const held = yield* Deferred.make<void, E | TokenStoreError>()
    const fiber = yield* Effect.forkChild(
      // Not the `lockTimeout` of the store, which may be shorter than what a busy machine needs to obtain a free lock.
      store.withLock(key, Effect.andThen(Deferred.succeed(held, undefined), effect), { lockTimeout: "1 minute" }).pipe(
        Effect.onError((cause) => Deferred.failCause(held, cause))
      )
    )
    yield* Deferred.await(held)
    return fiber
  })

/** Holds a lock until the returned effect runs. */
export const holdLock = (store: Store, key: string) =>
  Effect.gen(function*() {
    const end = yield* Deferred.make<void>()
    const fiber = yield* forkInLock(store, key, Deferred.await(end))
    return Effect.andThen(Deferred.succeed(end, undefined), Fiber.join(fiber))
  })

const scoped = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.scoped(effect)

/** Describes the tests of a store. */
export const storeTests = (name: string, open: Open) =>
  describe(name, () => {
    const test = <E>(
      title: string,
      body: (first: Store, second: Store) => Effect.Effect<void, E, Scope.Scope>,
      options: TokenStore.Options = {}
    ) => it.live(title, () => scoped(Effect.flatMap(open(options), ([first, second]) => body(first, second))))

    test("reads what was written, the last value, and nothing for an unknown key", (first, second) =>
      Effect.gen(function*() {
        assert.isTrue(Option.isNone(yield* first.get("a")))
        yield* write(first, "a", "one")
        yield* write(first, "b", "other")
        assert.strictEqual(yield* read(second, "a"), "one")
        yield* write(second, "a", "two")
        assert.strictEqual(yield* read(first, "a"), "two")
        assert.strictEqual(yield* read(first, "b"), "other")
      }))

    test("removes a key, and accepts the removal of an unknown one", (first, second) =>
      Effect.gen(function*() {
        yield* write(first, "a", "one")
        yield* write(first, "b", "other")
        yield* second.remove("a")
        yield* second.remove("a")
        yield* second.remove("never")
        assert.isUndefined(yield* read(first, "a"))
        assert.strictEqual(yield* read(first, "b"), "other")
        yield* write(first, "a", "again")
        assert.strictEqual(yield* read(second, "a"), "again")
      }))

    test("keeps odd keys apart and odd values as they are", (first, second) =>
      Effect.gen(function*() {
        yield* Effect.forEach(oddTexts, (text) =>
          write(first, text, `value of ${text}`), { discard: true })
        for (const text of oddTexts) {
          assert.strictEqual(yield* read(second, text), `value of ${text}`)
        }
        yield* second.remove(oddTexts[0]!)
        for (const [index, text] of oddTexts.entries()) {
          assert.strictEqual(yield* read(first, text), index === 0 ? undefined : `value of ${text}`)
        }
      }))

    test("keeps values of 1 MiB, and refuses a larger one", (first, second) =>
      Effect.gen(function*() {
        const large = `${"\u20ac".repeat(349_525)}x`
        yield* write(first, "a", large)
        assert.strictEqual(yield* read(second, "a"), large)
        const error = yield* Effect.flip(write(first, "a", `${large}x`))
        assert.strictEqual((error as TokenStoreError).reason._tag, "ValueTooLarge")
        assert.include(error.message, "has 1048577 bytes")
        assert.strictEqual(yield* read(second, "a"), large)
      }))

    test("never reads a part of a value while others write it", (first, second) =>
      Effect.gen(function*() {
        const values = Array.from({ length: 10 }, (_, index) =>
          String(index).repeat(5_000))
        yield* write(first, "a", values[0]!)
        const writing = yield* Effect.forkChild(
          Effect.forEach(values, (value, index) => write(index % 2 === 0 ? first : second, "a", value), {
            concurrency: "unbounded",
            discard: true
          })
        )
        for (let times = 0; times < 20; times++) {
          assert.include(values, yield* read(times % 2 === 0 ? first : second, "a"))
          yield* Effect.yieldNow
        }
        yield* Fiber.join(writing)
        assert.include(values, yield* read(first, "a"))
      }))

    test("runs one effect at a time per key", (first, second) =>
      Effect.gen(function*() {
        yield* write(first, "count", "0")
        const increment = (store: Store) =>
          store.withLock(
            "count",
            Effect.gen(function*() {
              const count = Number(yield* read(store, "count"))
              yield* Effect.yieldNow
              yield* write(store, "count", String(count + 1))
            })
          )
        yield* Effect.forEach(
          Array.from({ length: 24 }, (_, index) => index % 2 === 0 ? first : second),
          increment,
          { concurrency: "unbounded", discard: true }
        )
        assert.strictEqual(yield* read(first, "count"), "24")
      }))

    test("runs effects of different keys at the same time, also one within another", (first, second) =>
      Effect.gen(function*() {
        const release = yield* holdLock(first, "a")
        const value = yield* second.withLock("b", first.withLock("c", Effect.succeed("ran")))
        assert.strictEqual(value, "ran")
        yield* release
      }))

    test(
      "releases the lock after success, failure, defect and interruption, and returns how the effect ended",
      (first, second) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* first.withLock("a", Effect.succeed(1)), 1)
          assert.strictEqual(yield* Effect.flip(second.withLock("a", Effect.fail("failure"))), "failure")
          const defect = yield* Effect.exit(first.withLock("a", Effect.die("defect")))
          assert.isTrue(Exit.isFailure(defect) && Cause.hasDies(defect.cause))
          const never = yield* forkInLock(second, "a", Effect.never)
          yield* Fiber.interrupt(never)
          assert.strictEqual(yield* first.withLock("a", Effect.succeed(2)), 2)
        })
    )

    test("stops waiting when it is interrupted, without taking the lock", (first, second) =>
      Effect.gen(function*() {
        for (const store of [first, second]) {
          const release = yield* holdLock(first, "a")
          let ran = false
          const waiting = yield* Effect.forkChild(store.withLock(
            "a",
            Effect.sync(() =>
              void (ran = true)
            )
          ))
          yield* Effect.sleep(20)
          yield* Fiber.interrupt(waiting)
          yield* release
          assert.isFalse(ran)
          assert.strictEqual(yield* second.withLock("a", Effect.succeed("free")), "free")
        }
      }))

    test("fails with LockTimeout after lockTimeout, and does not run the effect", (first, second) =>
      Effect.gen(function*() {
        for (const store of [first, second]) {
          const release = yield* holdLock(first, "a")
          let ran = false
          const error = yield* Effect.flip(store.withLock(
            "a",
            Effect.sync(() =>
              void (ran = true)
            )
          ))
          assert.strictEqual((error as TokenStoreError).reason._tag, "LockTimeout")
          assert.include(error.message, "lockTimeout (100ms)")
          assert.isFalse(ran)
          yield* release
        }
        // A caller that can wait longer does.
        const release = yield* holdLock(first, "a")
        const patient = yield* Effect.forkChild(
          second.withLock("a", Effect.succeed("patient"), { lockTimeout: "1 hour" })
        )
        yield* Effect.sleep(150)
        yield* release
        assert.strictEqual(yield* Fiber.join(patient), "patient")
      }), { lockTimeout: "100 millis" })

    test("bounds the wait for a lock, and not the time that it is held", (first) =>
      Effect.gen(function*() {
        let isHeld = false
        const slow = Effect.andThen(
          Effect.sync(() =>
            void (isHeld = true)
          ),
          Effect.as(Effect.sleep(250), "slow")
        )
        // A busy machine may need more than lockTimeout to obtain the lock.
        const held = Effect.retry(first.withLock("a", slow), {
          while: () =>
            !isHeld,
          times: 100
        })
        assert.strictEqual(yield* held, "slow")
      }), { lockTimeout: "100 millis" })

    test(
      "writes in a lock, also of another key, and reads what was written before the lock was obtained",
      (first, second) =>
        Effect.gen(function*() {
          const release = yield* holdLock(first, "a")
          const reading = yield* Effect.forkChild(second.withLock(
            "a",
            Effect.gen(function*() {
              const before = yield* read(second, "a")
              yield* write(second, "a", `${before}, seen`)
              yield* write(second, "b", "beside")
              yield* second.remove("c")
            })
          ))
          yield* write(first, "a", "new")
          yield* write(first, "c", "removed")
          yield* release
          yield* Fiber.join(reading)
          assert.deepEqual([yield* read(first, "a"), yield* read(first, "b"), yield* read(first, "c")], [
            "new, seen",
            "beside",
            undefined
          ])
        })
    )

    test("shows no value in what it returns and in its errors", (first) =>
      Effect.gen(function*() {
        yield* write(first, "a", "s3cret")
        assert.notInclude(shown(yield* first.get("a")), "s3cret")
        const error = yield* Effect.flip(write(first, "a", "s3cret".repeat(200_000)))
        assert.notInclude(shown(error), "s3cret")
      }))
  })

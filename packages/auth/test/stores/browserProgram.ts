/** The program of the pages and workers in `BrowserTabs.test.ts`. */
import * as BrowserTokenStore from "@skein/auth/BrowserTokenStore"
import * as EncryptedTokenStore from "@skein/auth/EncryptedTokenStore"
import type { TokenStoreError } from "@skein/auth/TokenStoreError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

type Storage = "indexedDB" | "localStorage"

const open = (storage: Storage) =>
  Effect.flatMap(
    BrowserTokenStore.make({ storage }),
    (store) => EncryptedTokenStore.make(store, { keys: ["a key that all tabs of this page have"] })
  )

const numberOf = (value: Option.Option<Redacted.Redacted>): number =>
  Option.match(value, { onNone: () => 0, onSome: (text) => Number(Redacted.value(text)) })

/** Increments the value of a key in locks. Returns the last value that it wrote. */
export const count = (storage: Storage, key: string, times: number): Promise<number> =>
  Effect.runPromise(Effect.gen(function*() {
    const store = yield* open(storage)
    let last = 0
    for (let time = 0; time < times; time++) {
      yield* store.withLock(
        key,
        Effect.gen(function*() {
          last = numberOf(yield* store.get(key)) + 1
          yield* store.set(key, Redacted.make(String(last)))
        })
      )
    }
    return last
  }))

/** Takes the lock of a key, calls `onHeld`, and never releases it. */
export const hold = (storage: Storage, key: string, onHeld: () => void): Promise<never> =>
  Effect.runPromise(Effect.flatMap(
    open(storage),
    (store) => store.withLock(key, Effect.andThen(Effect.sync(onHeld), Effect.never))
  ) as Effect.Effect<never>)

/** Takes the lock of a key and releases it. Returns the reason of a failure, or `"free"`. */
export const tryLock = (storage: Storage, key: string, lockTimeout: number): Promise<string> =>
  Effect.runPromise(
    Effect.flatMap(open(storage), (store) =>
      store.withLock(key, Effect.succeed("free"), { lockTimeout }).pipe(
        Effect.catchTag("TokenStoreError", (error: TokenStoreError) => Effect.succeed(error.reason._tag))
      ))
  )

/** Reads, removes, and reads again. */
export const takeAway = (storage: Storage, key: string): Promise<ReadonlyArray<number>> =>
  Effect.runPromise(Effect.gen(function*() {
    const store = yield* open(storage)
    const before = numberOf(yield* store.get(key))
    yield* store.remove(key)
    return [before, numberOf(yield* store.get(key))]
  }))

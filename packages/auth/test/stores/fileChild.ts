/**
 * A process or a thread that uses a folder of tokens: `hold` takes the lock of a key and never releases it, `count`
 * increments the value of the key in locks of
 * another, and `write` writes a large value.
 */
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { parentPort, workerData } from "node:worker_threads"

const [what, folder, key, times, lock = key] = (parentPort === null ? process.argv.slice(2) : workerData) as readonly [
  string,
  string,
  string,
  string
]

const say = (message: unknown) =>
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  Effect.sync(() => parentPort === null ? process.send?.(message) : parentPort.postMessage(message))

const program = Effect.gen(function*() {
  const store = yield* FileTokenStore.make({ folder })
  if (what === "hold") {
    return yield* store.withLock(key, Effect.andThen(say("held"), Effect.sleep("1 hour")))
  }
  if (what === "write") {
    const error = yield* Effect.flip(store.set(key, Redacted.make("s3cret".repeat(100_000))))
    return yield* say({ message: error.message, reason: error.reason._tag })
  }
  yield* say("counting")
  yield* Effect.repeat(
    store.withLock(
      lock,
      Effect.gen(function*() {
        const value = Option.getOrThrow(yield* store.get(key))
        yield* store.set(key, Redacted.make(String(Number(Redacted.value(value)) + 1)))
      })
    ),
    { times: Number(times) - 1 }
  )
})

await Effect.runPromise(program)

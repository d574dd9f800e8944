import { assert, describe, it } from "@effect/vitest"
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as KeyValueTokenStore from "@skein/auth/KeyValueTokenStore"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import { holdLock, read, reasonOf, shown, storeTests, write } from "./conformance.ts"
import { temporary } from "./folder.ts"

const memory = Effect.map(
  Layer.build(KeyValueStore.layerMemory),
  (context) => Context.get(context, KeyValueStore.KeyValueStore)
)

const makeOn = (values: KeyValueStore.KeyValueStore, options: KeyValueTokenStore.Options) =>
  Effect.provideService(KeyValueTokenStore.make(options), KeyValueStore.KeyValueStore, values)

storeTests("KeyValueTokenStore with the lock of one process", (options) =>
  Effect.map(
    Effect.flatMap(memory, (values) => makeOn(values, { ...options, lock: "process" })),
    (store) => [store, store] as const
  ))

storeTests("KeyValueTokenStore with the lock of FileTokenStore", (options) =>
  Effect.gen(function*() {
    const folder = yield* temporary
    const values = yield* memory
    const make = Effect.flatMap(FileTokenStore.make({ folder }), (lock) => makeOn(values, { ...options, lock }))
    return yield* Effect.all([make, make])
  }))

/** Locks of a service that several programs use: promises, in the order of arrival. */
const lockService = () => {
  const queues = new Map<string, Promise<void>>()
  const counts = { aborted: 0, acquired: 0, released: 0 }
  const acquire: KeyValueTokenStore.AcquireLock = async (key, signal) => {
    const held = Promise.withResolvers<void>()
    const before = queues.get(key)
    queues.set(key, held.promise)
    signal.addEventListener("abort", () => void counts.aborted++)
    await before
    counts.acquired++
    return async () => {
      counts.released++
      held.resolve()
    }
  }
  return { acquire, counts }
}

storeTests("KeyValueTokenStore with a function that acquires a lock", (options) =>
  Effect.gen(function*() {
    const make = makeOn(yield* memory, { ...options, lock: lockService().acquire })
    return yield* Effect.all([make, make])
  }))

/** A `KeyValueStore` whose errors quote what was to be written. */
const broken = KeyValueStore.makeStringOnly({
  get: (key) => Effect.fail(new KeyValueStore.KeyValueStoreError({ method: "get", key, message: "no connection" })),
  set: (key, value) =>
    Effect.fail(
      new KeyValueStore.KeyValueStoreError({
        method: "set",
        key,
        message: `cannot set ${value}`,
        cause: new Error(value)
      })
    ),
  remove: (key) => Effect.fail(new KeyValueStore.KeyValueStoreError({ method: "remove", key, message: "read-only" })),
  clear: Effect.void,
  keys: Effect.succeed([]),
  size: Effect.succeed(0)
})

describe("KeyValueTokenStore", () => {
  it.live("releases a lock that is obtained after lockTimeout, and aborts the signal of its wait", () =>
    Effect.gen(function*() {
      const { acquire, counts } = lockService()
      const values = yield* memory
      const store = yield* makeOn(values, { lock: acquire })
      const other = yield* makeOn(values, { lock: acquire, lockTimeout: 1 })
      const release = yield* holdLock(store, "a")
      assert.strictEqual(yield* reasonOf(other.withLock("a", Effect.void)), "LockTimeout")
      assert.deepStrictEqual(counts, { aborted: 1, acquired: 1, released: 0 })
      yield* release
      yield* store.withLock("a", Effect.void)
      assert.deepStrictEqual(counts, { aborted: 3, acquired: 3, released: 3 })
    }))

  it.effect("reports a lock that cannot be obtained, and ends with a lock that cannot be released", () =>
    Effect.gen(function*() {
      const values = yield* memory
      const refused = yield* makeOn(values, { lock: () => Promise.reject(new Error("no connection")) })
      const error = yield* Effect.flip(refused.withLock("a", Effect.void))
      assert.strictEqual(error.reason._tag, "StoreUnavailable")
      assert.include(error.message, "the lock of the token store could not be obtained")
      const stuck = yield* makeOn(values, { lock: () => () => Promise.reject(new Error("no connection")) })
      assert.strictEqual(yield* stuck.withLock("a", Effect.succeed(1)), 1)
    }))

  it.effect("reports the errors of the KeyValueStore without the value", () =>
    Effect.gen(function*() {
      const store = yield* makeOn(broken, { lock: "process" })
      const set = yield* Effect.flip(write(store, "a", "s3cret \"quoted\""))
      assert.strictEqual(set.reason._tag, "StoreUnavailable")
      assert.include(set.message, "KeyValueStore.set failed")
      assert.notInclude(shown(set), "s3cret")
      assert.include(
        (yield* Effect.flip(store.get("a"))).message,
        "KeyValueStore.get failed, so the token store cannot be used: no connection"
      )
      assert.include((yield* Effect.flip(store.remove("a"))).message, ": read-only")
    }))

  it.effect("reports a damaged entry by its name, and uses the prefix", () =>
    Effect.gen(function*() {
      const values = yield* memory
      const store = yield* makeOn(values, { lock: "process", prefix: "teahouse:" })
      yield* write(store, "a", "value")
      const [name] = yield* values.keys
      assert.match(name!, /^teahouse:[\w-]{43}$/)
      for (const damage of ["\"s3cre", "", "s3cret", "7", "null", "{\"value\":\"s3cret\"}"]) {
        yield* values.set(name!, damage)
        const error = yield* Effect.flip(store.get("a"))
        assert.strictEqual(error.reason._tag, "InvalidEntry")
        assert.include(error.message, name!)
        assert.notInclude(shown(error), "s3cre")
      }
      yield* write(store, "a", "again")
      assert.strictEqual(yield* read(store, "a"), "again")
    }))

  it.live("excludes nobody outside of the process with the lock of the process", () =>
    Effect.gen(function*() {
      const values = yield* memory
      const [first, second] = yield* Effect.all([
        makeOn(values, { lock: "process" }),
        makeOn(values, { lock: "process" })
      ])
      const release = yield* holdLock(first, "a")
      yield* second.withLock("a", Effect.void)
      yield* release
    }))

  it.live("waits as long as the given lock does, unless lockTimeout is set", () =>
    Effect.gen(function*() {
      const values = yield* memory
      const lock = yield* FileTokenStore.make({ folder: yield* temporary, lockTimeout: "50 millis" })
      const patient = yield* makeOn(values, { lock, lockTimeout: "1 hour" })
      const release = yield* holdLock(patient, "a")
      const impatient = yield* makeOn(values, { lock })
      const error = yield* Effect.flip(impatient.withLock("a", Effect.void))
      assert.include(error.message, "lockTimeout (50ms)")
      assert.strictEqual(
        yield* reasonOf(impatient.withLock("a", Effect.void, { lockTimeout: "60 millis" })),
        "LockTimeout"
      )
      const waiting = yield* Effect.forkChild(patient.withLock("a", Effect.succeed("patient")))
      yield* Effect.sleep(100)
      assert.isUndefined(waiting.pollUnsafe())
      yield* release
    }))
})

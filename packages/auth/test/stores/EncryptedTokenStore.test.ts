import { assert, describe, it } from "@effect/vitest"
import * as EncryptedTokenStore from "@skein/auth/EncryptedTokenStore"
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as TokenStore from "@skein/auth/TokenStore"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { read, reasonOf, shown, type Store, storeTests, write } from "./conformance.ts"
import { temporary } from "./folder.ts"

const oldKey = "old key of thirty-two bytes or more"
const newKey = Redacted.make("new key of thirty-two bytes or more")
const bytesKey = new Uint8Array(32).fill(7)

storeTests("EncryptedTokenStore around memory", (options) =>
  Effect.gen(function*() {
    // Encrypted, a value has more bytes: the bound is that of a store without encryption.
    const sizes = yield* TokenStore.makeMemory(options)
    const values = new Map<string, Redacted.Redacted>()
    const roomy: Store = {
      ...sizes,
      get: (key) => Effect.sync(() => Option.fromUndefinedOr(values.get(key))),
      set: (key, value) => Effect.sync(() => void values.set(key, value)),
      remove: (key) => Effect.sync(() => void values.delete(key))
    }
    const encrypted = yield* EncryptedTokenStore.make(roomy, { keys: [bytesKey] })
    const store: Store = {
      ...encrypted,
      set: (key, value) => Effect.andThen(sizes.set(key, value), encrypted.set(key, value))
    }
    return [store, store] as const
  }))

const encrypting = (store: Store, options: EncryptedTokenStore.Options) => EncryptedTokenStore.make(store, options)

describe("EncryptedTokenStore", () => {
  it.live("writes nothing readable, and another text each time", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      const store = yield* encrypting(yield* FileTokenStore.make({ folder }), { keys: [oldKey] })
      const text = () => readFileSync(join(folder, readdirSync(folder)[0]!), "utf8")
      yield* write(store, "a", "s3cret")
      const first = text()
      yield* write(store, "a", "s3cret")
      assert.notStrictEqual(text(), first)
      for (const key of ["s3cret", Buffer.from("s3cret").toString("base64url").slice(0, 6)]) {
        assert.notInclude(first, key)
      }
      assert.strictEqual(yield* read(store, "a"), "s3cret")
    }))

  it.effect("rotates keys: the first one writes, all of them read", () =>
    Effect.gen(function*() {
      const memory = yield* TokenStore.makeMemory()
      const before = yield* encrypting(memory, { keys: [oldKey] })
      const between = yield* encrypting(memory, { keys: [oldKey, newKey] })
      const during = yield* encrypting(memory, { keys: [newKey, oldKey] })
      const after = yield* encrypting(memory, { keys: [newKey] })
      yield* write(before, "a", "1")
      yield* write(between, "b", "2")
      assert.deepEqual([yield* read(during, "a"), yield* read(during, "b"), yield* read(before, "b")], ["1", "2", "2"])
      yield* write(during, "a", "3")
      assert.deepEqual([yield* read(between, "a"), yield* read(after, "a")], ["3", "3"])
      assert.strictEqual(yield* reasonOf(after.get("b")), "KeyError")
    }))

  it.effect("fails with KeyError for a wrong key, and loses nothing", () =>
    Effect.gen(function*() {
      const memory = yield* TokenStore.makeMemory()
      const right = yield* encrypting(memory, { keys: [oldKey] })
      const wrong = yield* encrypting(memory, { keys: [newKey], readPlaintext: true })
      yield* write(right, "a", "s3cret")
      const error = yield* Effect.flip(wrong.get("a"))
      assert.strictEqual(error.reason._tag, "KeyError")
      assert.include(error.message, "its key is not among the keys")
      assert.notInclude(shown(error) + shown(wrong), "s3cret")
      assert.notInclude(shown(error) + shown(wrong), "new key")
      assert.strictEqual(yield* read(right, "a"), "s3cret")
    }))

  it.effect("refuses a value that was changed, moved to another key, or cut", () =>
    Effect.gen(function*() {
      const memory = yield* TokenStore.makeMemory()
      const store = yield* encrypting(memory, { keys: [oldKey] })
      yield* write(store, "a", "of a")
      const text = (yield* read(memory, "a"))!
      yield* write(memory, "b", text)
      assert.strictEqual(yield* reasonOf(store.get("b")), "KeyError")
      const last = text.at(-2) === "A" ? "B" : "A"
      const changes = [text.slice(0, -2) + last + text.slice(-1), text.slice(0, -8), "skein.1.", "skein.1.x.y"]
      for (const change of changes) {
        yield* write(memory, "a", change)
        assert.strictEqual(yield* reasonOf(store.get("a")), "KeyError", change)
      }
      yield* write(memory, "a", text)
      assert.strictEqual(yield* read(store, "a"), "of a")
    }))

  it.effect("reads what was written before only with readPlaintext, and encrypts it at the next write", () =>
    Effect.gen(function*() {
      const memory = yield* TokenStore.makeMemory()
      yield* write(memory, "a", "{\"plain\":true}")
      const strict = yield* encrypting(memory, { keys: [oldKey] })
      const error = yield* Effect.flip(strict.get("a"))
      assert.strictEqual(error.reason._tag, "KeyError")
      assert.include(error.message, "set readPlaintext")
      const migrating = yield* encrypting(memory, { keys: [oldKey], readPlaintext: true })
      assert.strictEqual(yield* read(migrating, "a"), "{\"plain\":true}")
      yield* write(migrating, "a", "{\"plain\":false}")
      assert.strictEqual(yield* read(strict, "a"), "{\"plain\":false}")
    }))

  it.effect("refuses to start without keys, and with a short one", () =>
    Effect.gen(function*() {
      const memory = yield* TokenStore.makeMemory()
      for (const keys of [[], [oldKey, "short s3cret"], [new Uint8Array(31)]]) {
        const error = yield* Effect.flip(encrypting(memory, { keys }))
        assert.strictEqual(error.reason._tag, "KeyError")
        assert.notInclude(shown(error), "s3cret")
      }
    }))

  it.effect("takes its keys from configuration, and fails without them", () =>
    Effect.gen(function*() {
      const memory = yield* TokenStore.makeMemory()
      const use = <A, E>(env: Record<string, string>, program: (store: Store) => Effect.Effect<A, E>) =>
        Effect.flatMap(TokenStore.TokenStore, program).pipe(
          Effect.provide(
            EncryptedTokenStore.layerConfig("TOKEN_KEYS").pipe(
              Layer.provide(Layer.succeed(TokenStore.TokenStore, memory)),
              Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
            )
          )
        )
      yield* use({ TOKEN_KEYS: oldKey }, (store) => write(store, "a", "value"))
      const keys = `${Redacted.value(newKey)}, ${oldKey},`
      assert.strictEqual(yield* use({ TOKEN_KEYS: keys }, (store) => read(store, "a")), "value")
      assert.include(String(yield* Effect.flip(use({}, (store) => read(store, "a")))), "TOKEN_KEYS")
    }))
})

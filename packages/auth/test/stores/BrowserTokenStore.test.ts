/** The store with the Web Locks of Node and a `localStorage` in memory. `BrowserTabs.test.ts` has a real browser. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as BrowserTokenStore from "@skein/auth/BrowserTokenStore"
import * as Effect from "effect/Effect"
import { reasonOf, shown, storeTests, write } from "./conformance.ts"

const entries = new Map<string, string>()
let isFull = false

const storage = {
  getItem: (key: string) => entries.get(key) ?? null,
  setItem: (key: string, value: string) => {
    if (isFull) throw new DOMException(`no space for ${value}`, "QuotaExceededError")
    entries.set(key, value)
  },
  removeItem: (key: string) => entries.delete(key)
}

const original = Object.getOwnPropertyDescriptor(globalThis, "localStorage")
const define = (value: unknown) =>
  Object.defineProperty(globalThis, "localStorage", { value, configurable: true, writable: true })

beforeAll(() => void define(storage))
afterAll(() => {
  if (original === undefined) Reflect.deleteProperty(globalThis, "localStorage")
  else Object.defineProperty(globalThis, "localStorage", original)
})

let names = 0

describe("BrowserTokenStore", () => {
  // Node has had `navigator.locks` since version 24.5.
  if ((globalThis.navigator as { readonly locks?: unknown } | undefined)?.locks !== undefined) {
    storeTests("on localStorage", (options) => {
      const open = BrowserTokenStore.make({ ...options, storage: "localStorage", name: `test ${++names}` })
      return Effect.all([open, open])
    })
  }

  it.effect("refuses to start without navigator.locks or its storage", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* reasonOf(BrowserTokenStore.make()), "StoreUnavailable")
      const navigator = Object.getOwnPropertyDescriptor(globalThis, "navigator")!
      Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true })
      const error = yield* Effect.flip(BrowserTokenStore.make({ storage: "localStorage" }))
      Object.defineProperty(globalThis, "navigator", navigator)
      assert.include(error.message, "navigator.locks is missing")
      define(undefined)
      const none = yield* Effect.flip(BrowserTokenStore.make({ storage: "localStorage" }))
      define(storage)
      assert.strictEqual(none.reason._tag, "StoreUnavailable")
    }))

  it.effect("reports a full storage without the value", () =>
    Effect.gen(function*() {
      const store = yield* BrowserTokenStore.make({ storage: "localStorage" })
      isFull = true
      const error = yield* Effect.flip(write(store, "a", "s3cret"))
      isFull = false
      assert.include(error.message, "QuotaExceededError")
      assert.notInclude(shown(error), "s3cret")
    }))
})

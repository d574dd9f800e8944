import { assert, describe, it } from "@effect/vitest"
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { holdLock, read, reasonOf, shown, storeTests, write } from "./conformance.ts"
import { temporary } from "./folder.ts"

storeTests("FileTokenStore", (options) =>
  Effect.flatMap(temporary, (parent) => {
    const open = FileTokenStore.make({ ...options, folder: join(parent, "tokens") })
    return Effect.all([open, open])
  }))

const mode = (path: string): string => (fs.statSync(path).mode & 0o777).toString(8)

/** A folder with the file of the key "a". */
const withFile = Effect.gen(function*() {
  const folder = yield* temporary
  const store = yield* FileTokenStore.make({ folder })
  yield* write(store, "a", "s3cret")
  return { file: join(folder, fs.readdirSync(folder)[0]!), folder, store }
})

const isRoot = process.geteuid?.() === 0

describe("FileTokenStore", () => {
  it.live("2025-11-25 · Token Theft · makes a folder of mode 700 and files of mode 600, whatever the umask is", () =>
    Effect.gen(function*() {
      const parent = yield* temporary
      const folder = join(parent, "new", "tokens")
      const umask = process.umask(0)
      try {
        const store = yield* FileTokenStore.make({ folder })
        yield* store.withLock("a", write(store, "a", "value"))
      } finally {
        process.umask(umask)
      }
      const names = fs.readdirSync(folder)
      assert.strictEqual(names.length, 2)
      assert.deepEqual([mode(folder), ...names.map((name) => mode(join(folder, name)))], ["700", "600", "600"])
    }))

  it.live("repairs the mode of a folder and of a file that others can read", () =>
    Effect.gen(function*() {
      const { file, folder } = yield* withFile
      fs.chmodSync(folder, 0o755)
      fs.chmodSync(file, 0o666)
      const store = yield* FileTokenStore.make({ folder })
      assert.strictEqual(yield* read(store, "a"), "s3cret")
      assert.deepEqual([mode(folder), mode(file)], ["700", "600"])
    }))

  it.live.skipIf(!isRoot)("refuses a folder and a file of another user", () =>
    Effect.gen(function*() {
      const { file, folder, store } = yield* withFile
      fs.chownSync(file, 12_345, 12_345)
      const error = yield* Effect.flip(store.get("a"))
      assert.strictEqual(error.reason._tag, "StoreUnavailable")
      assert.include(error.message, "belongs to user 12345")
      fs.chownSync(folder, 12_345, 12_345)
      assert.include((yield* Effect.flip(FileTokenStore.make({ folder }))).message, "belongs to user 12345")
      const link = join(yield* temporary, "link")
      fs.symlinkSync(yield* temporary, link)
      fs.lchownSync(link, 12_345, 12_345)
      assert.include((yield* Effect.flip(FileTokenStore.make({ folder: link }))).message, "belongs to user 12345")
    }))

  it.live("follows a link to the folder, and refuses one in place of a file", () =>
    Effect.gen(function*() {
      const { file, folder } = yield* withFile
      const link = join(yield* temporary, "link")
      fs.symlinkSync(folder, link)
      const store = yield* FileTokenStore.make({ folder: link })
      assert.strictEqual(yield* read(store, "a"), "s3cret")

      const elsewhere = join(yield* temporary, "elsewhere")
      fs.renameSync(file, elsewhere)
      fs.symlinkSync(elsewhere, file)
      const error = yield* Effect.flip(store.get("a"))
      assert.strictEqual(error.reason._tag, "InvalidEntry")
      assert.include(error.message, "symbolic link; delete it")
      // A write replaces the link and does not follow it.
      yield* write(store, "a", "new")
      assert.strictEqual(yield* read(store, "a"), "new")
      assert.include(fs.readFileSync(elsewhere, "utf8"), "s3cret")
    }))

  it.live("reports a damaged or foreign file with its path, and shows nothing of it", () =>
    Effect.gen(function*() {
      const { file, store } = yield* withFile
      const text = fs.readFileSync(file, "utf8")
      const other = text.replace("\"a\"", "\"b\"")
      assert.notStrictEqual(other, text)
      const damages = [
        text.slice(0, -5),
        "",
        "\0".repeat(text.length),
        "s3cret",
        "[]",
        "null",
        "{\"key\":\"a\"}",
        other
      ]
      for (const damage of damages) {
        fs.writeFileSync(file, damage)
        const error = yield* Effect.flip(store.get("a"))
        assert.strictEqual(error.reason._tag, "InvalidEntry", damage)
        assert.include(error.message, file)
        assert.include(error.message, "delete it, and sign in again")
        assert.notInclude(shown(error), "s3cret")
      }
      fs.writeFileSync(file, Buffer.alloc(8 * 1024 * 1024, "x"))
      assert.strictEqual(yield* reasonOf(store.get("a")), "InvalidEntry")
      yield* store.remove("a")
      assert.isUndefined(yield* read(store, "a"))
      fs.mkdirSync(file)
      assert.strictEqual(yield* reasonOf(store.get("a")), "InvalidEntry")
      assert.strictEqual(yield* reasonOf(write(store, "a", "value")), "StoreUnavailable")
      fs.rmdirSync(file)
      spawnSync("mkfifo", [file])
      assert.strictEqual(yield* reasonOf(store.get("a")), "InvalidEntry")
    }))

  it.live("reports a lock that is not one", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* withFile
      yield* store.withLock("a", Effect.void)
      const lock = join(folder, fs.readdirSync(folder).find((name) => name.endsWith(".lock"))!)
      fs.writeFileSync(lock, "hello, this is not a database, and it is long enough to be read as its header ".repeat(9))
      const error = yield* Effect.flip(store.withLock("a", Effect.void))
      assert.strictEqual(error.reason._tag, "InvalidEntry")
      assert.include(error.message, lock)
      fs.rmSync(lock)
      fs.symlinkSync(join(folder, "elsewhere"), lock)
      assert.strictEqual(yield* reasonOf(store.withLock("a", Effect.void)), "InvalidEntry")
      assert.isFalse(fs.existsSync(join(folder, "elsewhere")))
    }))

  it.live("keeps the old value and leaves no file behind when it cannot write", () =>
    Effect.gen(function*() {
      const { file, folder, store } = yield* withFile
      fs.rmSync(file)
      fs.mkdirSync(join(file, "in the way"), { recursive: true })
      const before = fs.readdirSync(folder)
      const error = yield* Effect.flip(write(store, "a", "s3cret value"))
      assert.strictEqual(error.reason._tag, "StoreUnavailable")
      assert.notInclude(shown(error), "s3cret")
      assert.deepEqual(fs.readdirSync(folder), before)
    }))

  it.live("deletes what a dead process was writing an hour ago, and nothing else", () =>
    Effect.gen(function*() {
      const { file, folder } = yield* withFile
      const name = file.slice(folder.length + 1, -".json".length)
      const old = join(folder, `.${name}.00000000-0000-0000-0000-000000000000`)
      const recent = join(folder, `.${name}.11111111-1111-1111-1111-111111111111`)
      const foreign = join(folder, ".profile")
      for (const path of [old, recent, foreign]) fs.writeFileSync(path, "")
      for (const path of [old, foreign, file]) fs.utimesSync(path, 1, 1)
      yield* FileTokenStore.make({ folder })
      assert.deepEqual([old, recent, foreign, file].map((path) => fs.existsSync(path)), [false, true, true, true])
    }))

  it.live("finds the folder of an application among the directories of the user", () =>
    Effect.gen(function*() {
      const home = yield* temporary
      const store = yield* FileTokenStore.make({ app: "teahouse" }).pipe(
        Effect.provideService(
          ConfigProvider.ConfigProvider,
          ConfigProvider.fromEnv({ env: { HOME: home, XDG_DATA_HOME: join(home, "data") } })
        )
      )
      yield* write(store, "a", "value")
      assert.strictEqual(fs.readdirSync(join(home, "data", "teahouse", "tokens")).length, 1)
      for (const app of ["", "..", "a/b", "a\\b", "a\0"]) {
        assert.strictEqual(yield* reasonOf(FileTokenStore.make({ app })), "StoreUnavailable")
      }
    }))

  it.live("keeps one lock file for each key that has a value", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* withFile
      for (let times = 0; times < 20; times++) yield* store.withLock("a", store.withLock(`b ${times}`, Effect.void))
      assert.strictEqual(fs.readdirSync(folder).length, 2)
      yield* store.withLock("a", store.remove("a"))
      assert.deepEqual(fs.readdirSync(folder), [])
    }))

  it.live("waits for the holder of the lock of a file that was deleted, and then uses the new file", () =>
    Effect.gen(function*() {
      const { folder, store } = yield* withFile
      const other = yield* FileTokenStore.make({ folder })
      const release = yield* holdLock(store, "a")
      const order: Array<number> = []
      const waiting = yield* Effect.forkChild(other.withLock("a", Effect.sync(() => void order.push(1))))
      yield* Effect.sleep(100)
      fs.rmSync(join(folder, fs.readdirSync(folder).find((name) => name.endsWith(".lock"))!))
      const third = yield* FileTokenStore.make({ folder })
      const releaseThird = yield* holdLock(third, "a")
      yield* release
      yield* Effect.sleep(100)
      assert.deepEqual(order, [])
      yield* releaseThird
      yield* Fiber.join(waiting)
      assert.deepEqual(order, [1])
    }))
})

/** The locks of `FileTokenStore` among processes and threads, which are killed and stopped. */
import { assert, describe, it } from "@effect/vitest"
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { type ChildProcess, fork, spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { read, reasonOf, write } from "./conformance.ts"
import { temporary } from "./folder.ts"

const program = join(import.meta.dirname, "fileChild.ts")
const execArgv = ["--conditions=@skein/source"]

/** Starts a process that ends with the scope. */
const start = (...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => fork(program, args, { execArgv, stdio: ["ignore", "pipe", "pipe", "ipc"] })),
    (child) => Effect.promise(() => kill(child))
  )

const kill = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, "exit")
  child.kill("SIGKILL")
  await ended
}

const message = (child: ChildProcess) => Effect.promise(async () => (await once(child, "message"))[0] as unknown)

const printed = (child: ChildProcess) =>
  Promise.all([child.stdout!.toArray(), child.stderr!.toArray()]).then((chunks) => chunks.flat().join(""))

describe("locks of FileTokenStore", () => {
  // The lock of a key without a value is a file that is created and deleted each time.
  it.live.each(["of the value", "of a key without a value"])(
    "excludes processes and threads by the lock %s",
    (kind) =>
      Effect.gen(function*() {
        const folder = yield* temporary
        const store = yield* FileTokenStore.make({ folder })
        yield* write(store, "a", "0")
        const args = ["count", folder, "a", "10", kind === "of the value" ? "a" : "b"]
        const children = yield* Effect.all([1, 2].map(() => start(...args)))
        const outputs = children.map(printed)
        const workers = [1, 2].map(() => new Worker(program, { execArgv, workerData: args }))
        yield* Effect.promise(() => Promise.all([...children, ...workers].map((one) => once(one, "exit"))))
        assert.deepEqual(yield* Effect.promise(() => Promise.all(outputs)), ["", ""])
        assert.strictEqual(yield* read(store, "a"), "40")
        assert.strictEqual(readdirSync(folder).length, kind === "of the value" ? 2 : 1)
      })
  )

  it.live("frees the lock of a killed process at once, and waits for that of a stopped one", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      const store = yield* FileTokenStore.make({ folder, lockTimeout: "300 millis" })
      const holder = yield* start("hold", folder, "a")
      yield* message(holder)
      holder.kill("SIGSTOP")
      assert.strictEqual(yield* reasonOf(store.withLock("a", Effect.void)), "LockTimeout")
      const waiting = yield* Effect.forkChild(
        store.withLock("a", Effect.succeed("free"), { lockTimeout: Infinity })
      )
      yield* Effect.sleep(50)
      assert.isUndefined(waiting.pollUnsafe())
      yield* Effect.promise(() => kill(holder))
      assert.strictEqual(yield* Fiber.join(waiting), "free")
    }))

  it.live("gives the lock to another process while this one takes it again and again", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      const store = yield* FileTokenStore.make({ folder })
      yield* write(store, "a", "0")
      let held = 0
      const hold = Effect.andThen(Effect.sync(() => void held++), Effect.sleep(5))
      const locking = yield* Effect.forkChild(Effect.all(
        [1, 2, 3].map(() => Effect.forever(store.withLock("a", hold))),
        { concurrency: "unbounded" }
      ))
      const child = yield* start("count", folder, "a", "5")
      yield* message(child)
      held = 0
      yield* Effect.promise(() => once(child, "exit"))
      yield* Fiber.interrupt(locking)
      // Other processes get the lock after 16 fibers of this one. Else they would find it free by chance: every 150.
      assert.isBelow(held, 5 * 16 * 4)
      assert.strictEqual(yield* read(store, "a"), "5")
    }))

  it.live("does not lose the lock when other fibers of the process wait for it, give up, read and write", () =>
    Effect.gen(function*() {
      const folder = yield* temporary
      const [store, other] = yield* Effect.all([FileTokenStore.make({ folder }), FileTokenStore.make({ folder })])
      const child = yield* start("count", folder, "a", "1")
      const counting = yield* Effect.forkChild(Effect.promise(() => once(child, "exit")))
      yield* store.withLock(
        "a",
        Effect.gen(function*() {
          yield* write(store, "a", "0")
          for (let times = 0; times < 20; times++) {
            yield* Effect.exit(other.withLock("a", Effect.void, { lockTimeout: 20 }))
            yield* write(store, "a", "0")
            assert.strictEqual(yield* read(other, "a"), "0")
            yield* Effect.sleep(20)
          }
          assert.isUndefined(counting.pollUnsafe())
        })
      )
      yield* Fiber.join(counting)
      assert.strictEqual(yield* read(store, "a"), "1")
    }))

  it.live.skipIf(process.platform === "win32")(
    "keeps the old value when the disk is full",
    () =>
      Effect.gen(function*() {
        const folder = yield* temporary
        const store = yield* FileTokenStore.make({ folder })
        yield* write(store, "a", "old")
        // The shell limits the size of the files that the process can write.
        const command = `ulimit -f 64; exec "$0" ${execArgv[0]} "$@"`
        const child = spawn("/bin/sh", ["-c", command, process.execPath, program, "write", folder, "a"], {
          stdio: ["ignore", "pipe", "pipe", "ipc"]
        })
        const output = printed(child)
        const seen = yield* message(child) as Effect.Effect<{ readonly message: string; readonly reason: string }>
        assert.strictEqual(seen.reason, "StoreUnavailable")
        assert.match(seen.message, /^cannot write ".*" of the token store: EFBIG/)
        assert.notInclude(JSON.stringify(seen) + (yield* Effect.promise(() => output)), "s3cret")
        assert.strictEqual(yield* read(store, "a"), "old")
        assert.strictEqual(readdirSync(folder).length, 1)
      })
  )
})

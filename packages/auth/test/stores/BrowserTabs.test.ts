/**
 * `BrowserTokenStore` in Chromium, in two tabs and a worker. Needs Chromium: see `packages/client/test/browser`.
 */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { bundle } from "../../../client/test/browser/bundle.ts"
import * as Chromium from "../../../client/test/browser/chromium.ts"

const chromium = Chromium.find()

/** A tab that runs the calls that the first tab sends. */
const tab = `<!doctype html><script src="/program.js"></script><script>
  const channel = new BroadcastChannel(location.hash)
  channel.onmessage = async ({ data: [name, ...args] }) => {
    if (name === "hold") program.hold(...args, () => channel.postMessage("held"))
    else channel.postMessage(await program[name](...args))
  }
  channel.postMessage("ready")
</script>`

const worker = `
  importScripts("/program.js")
  onmessage = async ({ data: [name, ...args] }) => postMessage(await program[name](...args))`

const script = `
  const openTab = async (name) => {
    const channel = new BroadcastChannel("#" + name)
    const next = () => new Promise((resolve) => { channel.onmessage = ({ data }) => resolve(data) })
    const ready = next()
    const opened = open("/tab#" + name)
    if (opened === null) throw new Error("the browser opened no tab")
    await ready
    return { close: () => opened.close(), call: (...message) => {
      const answer = next()
      channel.postMessage(message)
      return answer
    } }
  }
  const inWorker = (...message) => new Promise((resolve, reject) => {
    const worker = new Worker("/worker.js")
    worker.onmessage = ({ data }) => resolve(data)
    worker.onerror = ({ message }) => reject(new Error(message))
    worker.postMessage(message)
  })
  const seen = {}
  for (const storage of ["indexedDB", "localStorage"]) {
    const other = await openTab(storage)
    const counts = await Promise.all([
      program.count(storage, "a", 25),
      other.call("count", storage, "a", 25),
      ...storage === "indexedDB" ? [inWorker("count", storage, "a", 25)] : []
    ])
    await other.call("hold", storage, "a")
    const whileHeld = await program.tryLock(storage, "a", 200)
    const waiting = program.tryLock(storage, "a", 60_000)
    other.close()
    const afterClose = await waiting
    // What is written, as far as a page sees it: IndexedDB is not in localStorage.
    const encrypted = JSON.stringify(Object.values(localStorage)).includes("skein.1.")
    seen[storage] = { last: Math.max(...counts), whileHeld, afterClose, encrypted, left: await program.takeAway(storage, "a") }
  }
  return seen`

const skipped = chromium === undefined && (process.env["CI"] ?? "") === ""

it.live.skipIf(skipped)(
  "shares tokens among tabs and workers of Chromium, and frees the lock of a closed tab",
  () =>
    Effect.gen(function*() {
      if (chromium === undefined) assert.fail("there is no Chromium in the PATH")
      const { code, ofNode } = yield* Effect.promise(() => bundle("packages/auth/test/stores/browserProgram.ts"))
      assert.deepEqual(ofNode, [])
      const seen = yield* Chromium.browse(chromium, code, script, { "/tab": tab, "/worker.js": worker })
      const lock = { whileHeld: "LockTimeout", afterClose: "free" }
      assert.deepEqual(seen, {
        indexedDB: { last: 75, ...lock, encrypted: false, left: [75, 0] },
        localStorage: { last: 50, ...lock, encrypted: true, left: [50, 0] }
      })
    })
)

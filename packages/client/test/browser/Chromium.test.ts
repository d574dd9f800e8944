/**
 * A client in a web page and in its worker, against servers of other origins. Needs Chromium: Debian's package
 * `chromium`, or the executable in `CHROMIUM`. Without it the tests are skipped, or fail if `CI` is set.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Bundle, bundle, program } from "./bundle.ts"
import * as Chromium from "./chromium.ts"
import type { Seen } from "./program.ts"
import { judgePage } from "./seen.ts"
import { open, silent } from "./servers.ts"

const chromium = Chromium.find()

const worker = `
  importScripts("/program.js")
  onmessage = ({ data }) => program.run(data).then(postMessage)`

/** Runs the program in the page, and then in a worker. */
const both = (servers: object): string => `
  const servers = ${JSON.stringify(servers)}
  const page = await program.run(servers)
  const worker = new Worker("/worker.js")
  const seen = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data)
    worker.onerror = ({ message }) => reject(new Error(message))
  })
  worker.postMessage(servers)
  return { origin: location.origin, page, worker: await seen }`

it("finds a browser by CHROMIUM alone if it is set, or else by its usual names in the PATH", () => {
  assert.strictEqual(Chromium.find({ CHROMIUM: process.execPath, PATH: "" }), process.execPath)
  assert.strictEqual(Chromium.find({ ...process.env, CHROMIUM: "/nowhere/chromium" }), undefined)
  assert.strictEqual(Chromium.find({ PATH: import.meta.dirname }), undefined)
})

if (chromium === undefined) {
  const name = "a browser is needed: install Debian's `chromium`, or set CHROMIUM to one"
  it.skipIf((process.env["CI"] ?? "") === "")(name, () => assert.fail("there is no Chromium in the PATH"))
} else {
  describe("in Chromium", () => {
    let bundled: Bundle
    beforeAll(async () => {
      bundled = await bundle(program)
    })

    it.live("runs a client with and without sessions in a page and a worker, and leaves nothing on the servers", () =>
      Effect.gen(function*() {
        const { endpoints, servers, verbs } = yield* open
        const seen = yield* Chromium.browse(chromium, bundled.code, both(servers), { "/worker.js": worker })
        const { origin, page, worker: inWorker } = seen as Record<"page" | "worker", Seen> & { readonly origin: string }
        judgePage(page, servers, origin)
        judgePage(inWorker, servers, origin)
        for (const { sessions, streams } of Object.values(endpoints)) assert.deepEqual([sessions, streams], [0, 0])
        // The sessions of the visit, of the pool, and of the concurrent clients. Each was closed once.
        assert.strictEqual(verbs.filter((verb) => verb === "DELETE").length, 2 * (2 + 5 + 8))
      }))

    it.live("2025-11-25 · transports, session management · a page that is left SHOULD send a DELETE: sends one", () =>
      Effect.gen(function*() {
        const { endpoints: { session }, servers } = yield* open
        const opened = `await program.stay(${
          JSON.stringify(servers.session)
        })\nlocation.href = "/left"\nreturn new Promise(() => {})`
        const left = `<script>fetch("/seen", { method: "POST", body: "true" })</script>`
        yield* Chromium.browse(chromium, bundled.code, opened, { "/left": left })
        while (session.sessions > 0) yield* Effect.sleep(5)
        assert.deepEqual([session.sessions, session.streams], [0, 0])
      }))

    // The browser's cache makes a second request for the same URL wait for the first: 20 seconds in Chromium.
    it.live("2025-11-25 · transports, resumability · resumes a stream while the standalone stream has not responded yet", () =>
      Effect.gen(function*() {
        const { byMethod, url } = yield* silent
        const text = yield* Chromium.browse(chromium, bundled.code, `return program.call(${JSON.stringify(url)})`)
        assert.strictEqual(text, "resumed")
        assert.strictEqual(byMethod("GET").length, 2)
        assert.strictEqual(byMethod("DELETE").length, 1)
      }))
  })
}

/** A client for browsers needs only web APIs, and its size is bounded. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Vm from "node:vm"
import { type Bundle, bundle, program } from "./bundle.ts"
import type { call, run } from "./program.ts"
import { expected } from "./seen.ts"
import { open, silent } from "./servers.ts"

let bundled: Bundle
beforeAll(async () => {
  bundled = await bundle(program)
})

describe("a program of Client, Http, ClientPool, Progress, ResponseCache, Elicitation, Sampling and Roots", () => {
  it("imports no module of Node, and uses no global of Node without a typeof check", () => {
    assert.deepEqual(bundled.ofNode, [])
  })

  it("is checked by a search that finds such imports and globals", async () => {
    const { ofNode } = await bundle(
      "",
      "import { join } from \"node:path\"\nimport fs from \"fs\"\n" +
        "console.log(join, fs, process.argv, Buffer.from(\"\"))\nif (typeof process === \"object\") console.log(1)\n" +
        "const f = (process) => process.argv\nconsole.log(f, globalThis.process)\n"
    )
    assert.strictEqual(ofNode.length, 3)
    assert.match(ofNode[0]!, /^node:path in /)
    assert.match(ofNode[1]!, /^fs in /)
    assert.match(ofNode[2]!, /process\.argv.*Buffer\.from/)
  })

  it("has at most 359 KiB, 128 KiB compressed, including validation of results and the input handlers", () => {
    console.info(`a client for browsers: ${bundled.minified} bytes minified, ${bundled.gzip} with gzip`)
    assert.isAtMost(bundled.minified, 359 * 1024)
    assert.isAtMost(bundled.gzip, 128 * 1024)
  })

  it("contains no language model, command, process or configuration", () => {
    const outside = ["effect/src/ai/", "client/src/Stdio.ts", "client/src/NodeHttp.ts", "packages/cli/"]
    const configurations = ["client/src/NodeConfig.ts", "client/src/ServerConfig.ts", "configEntry.ts", "variables.ts"]
    for (const other of [...outside, ...configurations]) {
      assert.deepEqual(bundled.inputs.filter((input) => input.includes(other)), [])
    }
  })
})

/** The globals that every kind of worker has, besides those of the language. No `setImmediate`, no `location`. */
const web = () => ({
  AbortController,
  AbortSignal,
  Headers,
  ReadableStream,
  Request,
  Response,
  TextDecoder,
  TextEncoder,
  URL,
  URLSearchParams,
  clearTimeout,
  console,
  crypto,
  fetch,
  performance,
  queueMicrotask,
  setTimeout
})

type Program = { readonly call: typeof call; readonly run: typeof run }

const inContext = (globals: object): Program =>
  Vm.runInNewContext(`${bundled.code}\nprogram`, { ...globals }) as Program

describe("a context with web APIs only", () => {
  it.live("runs a client with all its features", () =>
    Effect.gen(function*() {
      const { endpoints, servers } = yield* open
      const { refused, ...seen } = yield* Effect.promise(() => inContext(web()).run(servers))
      // Converts the values from the other realm.
      assert.deepEqual(JSON.parse(JSON.stringify(seen)), expected)
      const { foreign, moved, nobody } = JSON.parse(JSON.stringify(refused))
      assert.strictEqual(nobody.reason, "ConnectionFailed")
      assert.match(nobody.message, /cannot be reached: .*ECONNREFUSED/)
      assert.strictEqual(foreign, "connected")
      assert.strictEqual(moved.reason, "HttpError")
      assert.match(moved.message, /redirects \(307\) to another origin/)
      for (const { sessions, streams } of Object.values(endpoints)) assert.deepEqual([sessions, streams], [0, 0])
    }))

  it.live("disables the cache of streams, and keeps DELETE alive after a page, with no other fetch options", () =>
    Effect.gen(function*() {
      const { url } = yield* silent
      const declared = new Map<string, string>()
      const asked: typeof fetch = (input, { body, headers, method, signal, ...init } = {}) => {
        declared.set(method!, JSON.stringify(init))
        return fetch(input, { body: body ?? null, headers: headers!, method: method!, signal: signal!, ...init })
      }
      const globals = { ...web(), location: { origin: "https://app.example.com" }, fetch: asked }
      assert.strictEqual(yield* Effect.promise(() => inContext(globals).call(url.href)), "resumed")
      assert.deepEqual(Object.fromEntries(declared), {
        POST: `{"redirect":"manual"}`,
        GET: `{"redirect":"manual","cache":"no-store"}`,
        DELETE: `{"redirect":"manual","keepalive":true}`
      })
    }))

  for (const word of ["Failed to fetch", "Load failed", "NetworkError when attempting to fetch resource."]) {
    it(`reports "${word}" in a page with the possible causes`, async () => {
      const fetch = () => Promise.reject(new TypeError(word))
      const globals = { ...web(), location: { origin: "https://app.example.com" }, fetch }
      const error: Error = await inContext(globals).call("https://mcp.example.com/").then(assert.fail, (error) => error)
      assert.include(error.message, `The request to https://mcp.example.com failed: ${word}`)
      assert.include(error.message, "does not allow pages of https://app.example.com (CORS)")
    })
  }
})

/**
 * A web page in a real browser calls an endpoint of another origin through each of the three adapters. It is not part
 * of the test suite, because few machines have a browser. Run it with:
 *
 * `node --conditions=@skein/source packages/server/test/http/browser.ts [chromium]`
 */
import * as Cors from "@skein/server/Cors"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { deepEqual } from "node:assert/strict"
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { adapters } from "./adapters.ts"
import { type Json, meta } from "./kit.ts"

const echo = Tool.make("echo", { input: { text: Schema.String } })
const steps = Tool.make("steps")

const server = McpServer.layer(
  { name: "browser", version: "1" },
  Tool.layer(echo, ({ text }) => Effect.succeed(text)),
  Tool.layer(steps, () => Effect.as(Progress.report({ progress: 1 }), "done"))
)

/** The script of the page. It runs in the browser and cannot use anything of this module. */
const visit = async (endpoint: string, meta: object, report: (results: object) => Promise<unknown>): Promise<void> => {
  const results: { [name: string]: unknown } = {}
  const json = { "content-type": "application/json", accept: "application/json, text/event-stream" }
  const send = (body: object, headers: object = {}) =>
    fetch(endpoint, { method: "POST", headers: { ...json, ...headers }, body: JSON.stringify(body) })
  const attempt = async (name: string, run: () => Promise<unknown>) => {
    try {
      results[name] = await run()
    } catch (error) {
      results[name] = String(error)
    }
  }
  let session: object = {}
  await attempt("session", async () => {
    const clientInfo = { name: "page", version: "1" }
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo }
    const opened = await send({ jsonrpc: "2.0", id: 0, method: "initialize", params })
    session = { "mcp-session-id": opened.headers.get("mcp-session-id"), "mcp-protocol-version": "2025-11-25" }
    await send({ jsonrpc: "2.0", method: "notifications/initialized" }, session)
    const call = { name: "echo", arguments: { text: "hi" } }
    const called = await send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call }, session)
    return (await called.json() as Json).result.content[0].text
  })
  await attempt("resume", async () => {
    const headers = { ...session, accept: "text/event-stream", "last-event-id": "0-0" }
    // Chromium may send the DELETE a second time when it evicts a cache entry for the same address meanwhile.
    const listening = await fetch(endpoint, { headers, cache: "no-store" })
    await listening.body!.cancel()
    return listening.status
  })
  await attempt("end", async () => (await fetch(endpoint, { method: "DELETE", headers: { ...session } })).status)
  const modern = (name: string, params: object = {}) => ({ name, arguments: params, _meta: meta })
  const mirrored = (name: string, more: object = {}) => ({
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
    ...more
  })
  await attempt("alone", async () => {
    const headers = mirrored("echo", {
      "mcp-param-region": "eu",
      traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01`
    })
    const called = await send(
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: modern("echo", { text: "ho" }) },
      headers
    )
    return (await called.json() as Json).result.content[0].text
  })
  await attempt("stream", async () => {
    const params = { ...modern("steps"), _meta: { ...meta, progressToken: 1 } }
    const called = await send({ jsonrpc: "2.0", id: 1, method: "tools/call", params }, mirrored("steps"))
    return (await called.text()).split("\n\n").length - 1
  })
  await attempt("refusal", async () => {
    const refused = await send(
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: modern("echo") },
      mirrored("other")
    )
    return [refused.status, (await refused.json() as Json).error.code]
  })
  await attempt("own header", async () => (await send({}, { "x-other": "1" })).status)
  await report(results)
}

const expected = {
  session: "hi",
  resume: 200,
  end: 204,
  alone: "ho",
  stream: 2,
  refusal: [400, -32020],
  "own header": "TypeError: Failed to fetch"
}

/** Serves the page and waits for its report. */
const browse = (chromium: string, script: (own: string) => string): Effect.Effect<object> =>
  Effect.promise(async () => {
    const profile = await mkdtemp(join(tmpdir(), "skein-browser-"))
    const { promise, reject, resolve } = Promise.withResolvers<object>()
    const page = createServer((request, response) => {
      if (request.method !== "POST") {
        response.setHeader("content-type", "text/html")
        return void response.end(`<script type="module">${script(`http://localhost:${port}`)}</script>`)
      }
      let text = ""
      request.setEncoding("utf8").on("data", (chunk: string) => void (text += chunk)).on("end", () => {
        response.end()
        resolve(JSON.parse(text))
      })
    }).listen(0, "localhost")
    await new Promise((listening) => void page.once("listening", listening))
    const { port } = page.address() as AddressInfo
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`]
    const browser = spawn(chromium, [...flags, `http://localhost:${port}/`], { stdio: "ignore" })
    const ended = new Promise<void>((done) => browser.once("exit", () => done()))
    browser.once("error", reject)
    browser.once("exit", () => reject(new Error("The browser ended before the page did")))
    try {
      return await promise
    } finally {
      browser.kill("SIGKILL")
      await ended
      page.closeAllConnections()
      page.close()
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    }
  })

for (const adapter of adapters) {
  const results = await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const { port } = yield* adapter.serve(server, { cors: Cors.make() })
    return yield* browse(
      process.argv[2] ?? "chromium",
      (own) =>
        `(${visit})("http://127.0.0.1:${port}/mcp", ${JSON.stringify(meta())}, ` +
        `(results) => fetch(${JSON.stringify(own)}, { method: "POST", body: JSON.stringify(results) }))`
    )
  })))
  deepEqual(results, expected, adapter.name)
  process.stdout.write(`${adapter.name}: a page of another origin does what it should\n`)
}

/** The client over real processes. The clock is real too, so the tests wait no longer than the processes take. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Client from "../../src/Client.ts"
import * as Stdio from "../../src/Stdio.ts"

/** A session-based server with one tool. `before` handles requests that arrive before `initialize`. */
const legacy = (before: string) => `
  const answer = (id, body) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...body }))
  let open = false
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line)
    if (method === "initialize") {
      open = true
      const serverInfo = { name: "legacy", version: "1" }
      answer(id, { result: { protocolVersion: "2025-03-26", capabilities: { tools: {} }, serverInfo } })
    } else if (!open) { ${before} }
    else if (method === "tools/call") answer(id, { result: { content: [{ type: "text", text: params.arguments.name }] } })
  })`

const run = (script: string): Stdio.Options => ({
  command: process.execPath,
  args: ["-e", script],
  stderr: "capture"
})

describe("a client over stdio", () => {
  it.live("connects to a server that rejects the probe", () =>
    Effect.gen(function*() {
      const script = legacy(`answer(id, { error: { code: -32601, message: "no" } })`)
      const client = yield* Client.make(Stdio.transport(run(script)))
      assert.strictEqual(client.revision, "2025-03-26")
      const { content } = yield* client.callTool("echo", { name: "Ada" })
      assert.deepStrictEqual(content, [{ type: "text", text: "Ada" }])
    }))

  it.live("uses the late response of a server that was slow to start for the next connection", () =>
    Effect.gen(function*() {
      // Serves both lifecycles, and reads nothing before it has started.
      const script = `
        const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
        const capabilities = { tools: {} }
        const serverInfo = { name: "slow", version: "1" }
        setTimeout(() => require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
          const { id, method } = JSON.parse(line)
          if (method === "server/discover") {
            const hints = { resultType: "complete", ttlMs: 0, cacheScope: "private" }
            answer(id, { ...hints, supportedVersions: ["2026-07-28", "2025-11-25"], capabilities })
          } else if (method === "initialize") answer(id, { protocolVersion: "2025-11-25", capabilities, serverInfo })
        }), 500)`
      const transport = Stdio.transport(run(script))
      const first = yield* Client.make(transport, { probeTimeout: 50 })
      assert.strictEqual(first.revision, "2025-11-25")
      while (first.serverProfile === undefined) yield* Effect.sleep(10)
      assert.strictEqual(first.serverProfile.revision, "2026-07-28")
      const second = yield* Client.make(transport, { serverProfile: first.serverProfile })
      assert.strictEqual(second.revision, "2026-07-28")
      yield* second.ping()
    }))

  it.live("connects to a server that writes text to stdout, and logs it", () =>
    Effect.gen(function*() {
      const script = `console.log("Listening!");${legacy(`answer(id, { error: { code: -32601, message: "no" } })`)}`
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => {
        lines.push(String(message))
      })
      const content = Effect.gen(function*() {
        const client = yield* Client.make(Stdio.transport(run(script)))
        return (yield* client.callTool("echo", { name: "Ada" })).content
      })
      assert.strictEqual((yield* Effect.provide(content, Logger.layer([logger]))).length, 1)
      assert.deepStrictEqual(lines, ["messages of the server were ignored: they are not JSON-RPC"])
    }))

  it.live("connects to a server that exits on the probe", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(Stdio.transport(run(legacy("process.exit(1)"))))
      assert.strictEqual((yield* client.callTool("echo", { name: "Ada" })).content.length, 1)
    }))

  it.live("fails with the exit code and the last part of the server's stderr", () =>
    Effect.gen(function*() {
      const script = `console.error("cannot find module pg"); process.exit(3)`
      const error = yield* Effect.flip(Client.make(Stdio.transport(run(script))))
      assert.strictEqual(error.reason._tag, "Closed")
      assert.include(error.message, "exited with code 3")
      assert.include(error.message, "cannot find module pg")
    }))

  it.live("fails with ConnectionFailed and the command if the command is not found", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Client.make(Stdio.transport({ command: "no-such-command-at-all" })))
      assert.strictEqual(error.reason._tag, "ConnectionFailed")
      assert.include(error.message, "no-such-command-at-all")
    }))
})

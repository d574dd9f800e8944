/** Server processes that flood, die or never read. The MCP host receives a typed error at worst. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { readFileSync } from "node:fs"
import * as Client from "../../src/Client.ts"
import * as Stdio from "../../src/Stdio.ts"
import { bounded } from "../support/fixedBounds.ts"

const mib = 1024 * 1024
const timeouts = { shutdownTimeout: 50 }

/** A server in a few lines of plain Node. */
const program = (code: string, options: Partial<Stdio.Options> = {}) =>
  Stdio.transport({ command: process.execPath, args: ["-e", code], stderr: "capture", ...timeouts, ...options })

/** Responds to `initialize`, and treats all other requests as the test demands. */
const initialized = (then: string) => `
  const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n")
  let text = ""
  process.stdin.on("data", (chunk) => {
    text += chunk
    const lines = text.split("\\n")
    text = lines.pop()
    for (const line of lines) {
      const { id, method, params } = JSON.parse(line)
      if (method === "initialize") {
        write({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } } })
      }
      if (method === "notifications/initialized") { ${then} }
    }
  })
`

const options: Client.Options = { revisions: ["2025-11-25"], probeTimeout: 300, limits: { timeout: 400 } }

const floods: ReadonlyArray<readonly [string, string]> = [
  ["a line without end", "\"x\".repeat(65536)"],
  [
    "a string without end",
    "(globalThis.n ??= (process.stdout.write('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"'), \"\\\\\\\\\".repeat(65536)))"
  ],
  ["prose", "\"hello, I am a server\\n\".repeat(2000)"],
  ["blank lines", "\"\\r\\n\".repeat(20000)"],
  ["nulls", "\"null\\n[]\\n{}\\n\".repeat(5000)"],
  ["bytes that are not UTF-8", "Buffer.alloc(65536, 0xff)"],
  ["a byte order mark per line", "\"\\ufeff\\n\".repeat(10000)"]
]

describe("a process that floods", () => {
  for (const [what, text] of floods) {
    it.live(`its stdout with ${what}: the handshake fails in time, memory is bounded, the process ends`, () =>
      Effect.gen(function*() {
        const code =
          `const go = () => { while (process.stdout.write(${text})); process.stdout.once("drain", go) }; go()`
        globalThis.gc!()
        const before = process.memoryUsage().rss
        const begun = performance.now()
        const error = yield* Effect.flip(Effect.scoped(Client.make(program(code), options)))
        assert.include(["Timeout", "InvalidResponse"], error.reason._tag)
        assert.isBelow(performance.now() - begun, 15_000)
        assert.isBelow(process.memoryUsage().rss - before, 192 * mib)
      }))
  }

  it.live("its captured stderr: the last part is kept, and calls continue", () =>
    Effect.gen(function*() {
      const code = initialized("") +
        "const go = () => { while (process.stderr.write(\"e\".repeat(65536))); process.stderr.once(\"drain\", go) }; go()"
      const client = yield* Client.make(program(code), { ...options, limits: { timeout: 5_000 } })
      const before = process.memoryUsage().rss
      yield* Effect.sleep(300)
      assert.isBelow(process.memoryUsage().rss - before, 128 * mib)
      assert.strictEqual(client.revision, "2025-11-25")
    }).pipe(Effect.scoped))

  it.live("with valid notifications: slow readers keep bounded buffers, and calls continue", () =>
    Effect.gen(function*() {
      const code = initialized(`
        const note = (method, params) => JSON.stringify({ jsonrpc: "2.0", method: "notifications/" + method, params }) + "\\n"
        const more = (note("tools/list_changed") + note("message", { level: "error", data: "x".repeat(200) })).repeat(200)
        const go = () => { while (process.stdout.write(more)); process.stdout.once("drain", go) }
        setTimeout(go, 10)
      `).replace(
        "if (method === \"notifications",
        "if (method === \"ping\") write({ id, result: {} })\n      if (method === \"notifications"
      )
      const client = yield* Client.make(program(code), { ...options, limits: { timeout: 20_000 } })
      for (const stream of [client.logs, client.notifications, client.changes({ tools: true })]) {
        yield* Effect.forkScoped(Stream.runForEach(stream as Stream.Stream<unknown>, () => Effect.never))
      }
      globalThis.gc!()
      const before = process.memoryUsage().heapUsed
      for (let count = 0; count < 20; count++) {
        yield* client.ping()
        yield* Effect.sleep(50)
      }
      globalThis.gc!()
      assert.isBelow(process.memoryUsage().heapUsed - before, 64 * mib)
    }).pipe(Effect.scoped))

  it.live(
    "its stdout with a message of 1 MB in writes of one byte: the message is read in bounded memory",
    () =>
      Effect.gen(function*() {
        const code = initialized("").replace(
          "if (method === \"notifications",
          `if (method === "tools/call") {
        const { writeSync } = require("node:fs")
        const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "x".repeat(1024 * 1024 - 4096) }] } }) + "\\n")
        for (let at = 0; at < bytes.length;) {
          try { at += writeSync(1, bytes, at, 1) } catch (error) { if (error.code !== "EAGAIN") throw error }
        }
      }
      if (method === "notifications`
        )
        const client = yield* Client.make(program(code), { ...options, limits: { timeout: 100_000 } })
        globalThis.gc!()
        const before = process.memoryUsage().rss
        const { content } = yield* client.callTool("t")
        assert.strictEqual((content[0] as { readonly text: string }).text.length, mib - 4096)
        assert.isBelow(process.memoryUsage().rss - before, 128 * mib)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("with pings, and reads no responses: closes the connection at maxUnsentChars", () =>
    Effect.gen(function*() {
      const code = initialized(`
        process.stdin.pause()
        let id = 0
        const go = () => {
          let more = ""
          for (let n = 0; n < 500; n++) more += JSON.stringify({ jsonrpc: "2.0", id: ++id, method: "ping" }) + "\\n"
          if (process.stdout.write(more)) setImmediate(go)
          else process.stdout.once("drain", go)
        }
        go()
      `)
      const client = yield* bounded(
        { maxUnsentChars: 256 * 1024 },
        Client.make(program(code), { ...options, limits: { timeout: 5_000 }, reconnect: false })
      )
      const end = yield* Effect.timeout(client.ended, 60_000)
      assert.strictEqual(end._tag, "Lost")
    }).pipe(Effect.scoped))
})

describe("a short-lived process", () => {
  it.live("is restarted at most as often as the policy permits, and all waiting calls fail at the end", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(program(initialized("process.exit(3)")), {
        ...options,
        limits: { timeout: 10_000 },
        reconnect: { initialDelay: 1, maxDelay: 5, maxAttempts: 3 }
      })
      const attempts: Array<string> = []
      const watching = yield* Effect.forkScoped(
        Stream.runForEach(client.status, ({ _tag }) => Effect.sync(() => void attempts.push(_tag))),
        { startImmediately: true }
      )
      const calls = yield* Effect.forkScoped(
        Effect.forEach(Array.from({ length: 20 }), () => Effect.flip(client.callTool("t")), {
          concurrency: "unbounded"
        }),
        { startImmediately: true }
      )
      assert.strictEqual((yield* client.ended)._tag, "Lost")
      for (const { reason } of yield* Fiber.join(calls)) assert.strictEqual(reason._tag, "Closed")
      yield* Fiber.join(watching)
      assert.isAtMost(attempts.filter((tag) => tag === "Reconnecting").length, 3)
    }).pipe(Effect.scoped))

  it.live("fails at once when the command does not exist or is not executable", () =>
    Effect.gen(function*() {
      for (
        const command of [
          "/does/not/exist",
          "does-not-exist-at-all",
          "/etc/passwd",
          "/",
          "",
          "a\0b",
          "x".repeat(100_000)
        ]
      ) {
        const transport = Stdio.transport({ command, stderr: "capture", ...timeouts })
        const error = yield* Effect.flip(Effect.scoped(Client.make(transport, { ...options, reconnect: true })))
        assert.strictEqual(error.reason._tag, "ConnectionFailed", command.slice(0, 20))
        assert.isBelow(error.message.length, 200_000)
      }
    }))

  it.live("receives only the permitted environment variables of the host", () =>
    Effect.gen(function*() {
      process.env["SKEIN_ATTACK_SECRET"] = "hunter2"
      process.env["LC_ALL"] = "() { :; }; echo vulnerable"
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          delete process.env["SKEIN_ATTACK_SECRET"]
          delete process.env["LC_ALL"]
        })
      )
      let seen = ""
      const connection = yield* Stdio.connect({
        command: process.execPath,
        args: ["-e", "process.stderr.write(JSON.stringify(process.env))"],
        stderr: (text) => {
          seen += text
        },
        ...timeouts
      })
      yield* connection.exited
      while (!seen.endsWith("}")) yield* Effect.sleep(5)
      assert.notInclude(seen, "hunter2")
      assert.notInclude(seen, "vulnerable")
      for (const name of Object.keys(JSON.parse(seen))) assert.include(Stdio.defaultEnv, name)
    }).pipe(Effect.scoped))

  it.live("ends together with a grandchild that holds its stdout and ignores SIGTERM", () =>
    Effect.gen(function*() {
      const stubborn = "process.on('SIGTERM', () => {}); process.stdout.write('up\\n'); setInterval(() => {}, 1e6)"
      const code = initialized("") +
        `const child = require("child_process").spawn(process.execPath, ["-e", ${
          JSON.stringify(stubborn)
        }], { stdio: ["ignore", "pipe", "inherit"] }); child.stdout.on("data", () => setInterval(() => write({ method: "notifications/up", params: { pid: child.pid } }), 10))`
      let pid = 0
      const begun = performance.now()
      yield* Effect.scoped(Effect.gen(function*() {
        const client = yield* Client.make(program(code), { ...options, limits: { timeout: 5_000 } })
        yield* Stream.runForEach(Stream.take(client.notifications, 1), ({ params }) =>
          Effect.sync(() => {
            pid = (params as { readonly pid: number }).pid
          })).pipe(Effect.timeoutOption(3_000))
      }))
      assert.isBelow(performance.now() - begun, 20_000)
      assert.isAbove(pid, 0)
      // The process has ended, or is a zombie that has not been reaped.
      let state = ") Z"
      try {
        state = readFileSync(`/proc/${pid}/stat`, "utf8")
      } catch {
        // The process does not exist.
      }
      assert.match(state, /\) [ZX]/)
    }))
})

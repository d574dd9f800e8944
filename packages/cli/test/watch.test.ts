/** `skein logs` and `skein subscribe`, which print until they are interrupted. */
import { assert, describe, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { ServerResponse } from "node:http"
import { listen, starting, teaHouse, teaHouseUrl, until } from "./serverKit.ts"

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}/

const evil = "\u001b[2J"

/** The result of a request to a server that logs. */
const resultOf = (method: string): object =>
  method === "initialize"
    ? {
      protocolVersion: "2025-11-25",
      capabilities: { logging: {} },
      serverInfo: { name: "logger", version: "1" }
    }
    : {}

const message = (level: string, data: unknown, logger?: string): string =>
  JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level, data, logger } })

/** The messages that such a server sends after the level has been set. */
const messages = (level: string): ReadonlyArray<string> => [
  message("warning", "The kettle is old\nwarning   forged", `kettle${evil}`),
  message("error", { tea: "cold" }),
  message("info", `the level is ${level}`)
]

/** A server over stdio that logs when the level is set, and then ends if its argument is `end`. */
const script = `
  const resultOf = ${resultOf.toString()}
  const message = ${message.toString()}
  const evil = ${JSON.stringify(evil)}
  const messages = ${messages.toString()}
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) return
    if (method === "server/discover") {
      return console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "" } }))
    }
    console.log(JSON.stringify({ jsonrpc: "2.0", id, result: resultOf(method) }))
    if (method === "logging/setLevel") {
      messages(params.level).forEach((text) => console.log(text))
      if (process.argv.includes("end")) setTimeout(() => process.exit(0), 100)
    }
  })`

const overStdio = (...args: ReadonlyArray<string>) => [process.execPath, "-e", script, ...args]

/** The same server over HTTP, with its messages on the standalone stream. */
const overHttp = Effect.suspend(() => {
  let stream: ServerResponse | undefined
  return listen(async (request, response) => {
    if (request.method === "GET") {
      stream = response.writeHead(200, { "content-type": "text/event-stream" })
      stream.flushHeaders()
      return
    }
    let body = ""
    for await (const chunk of request) body += String(chunk)
    if (body === "") return void response.writeHead(200).end()
    const { id, method, params } = JSON.parse(body)
    if (id === undefined) return void response.writeHead(202).end()
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "s1" })
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: resultOf(method) }))
    if (method === "logging/setLevel") {
      while (stream === undefined) await new Promise((resolve) => setTimeout(resolve, 10))
      for (const text of messages(params.level)) stream.write(`data: ${text}\n\n`)
    }
  })
})

describe("skein logs", () => {
  for (
    const [transport, operands] of [
      ["stdio", Effect.succeed(["logs", "--level", "notice", ...overStdio()])],
      ["HTTP", Effect.map(overHttp, (url) => ["logs", "--level", "notice", url])]
    ] as const
  ) {
    it.live(`prints messages until it is interrupted · ${transport}`, () =>
      Effect.gen(function*() {
        const { ran, running } = starting(yield* operands)
        const fiber = yield* Effect.forkChild(running)
        yield* until(() => ran.out.length >= 3)
        yield* Fiber.interrupt(fiber)
        for (const line of ran.out) assert.match(line, time)
        assert.deepStrictEqual(ran.out.map((line) => line.replace(time, "")), [
          "warning   kettle\\u{1b}[2J: The kettle is old\n  | warning   forged",
          "error     {\"tea\":\"cold\"}",
          "info      the level is notice"
        ])
        assert.deepStrictEqual(ran.err, ["Printing log messages, level notice and above, until interrupted"])
      }))
  }

  it.live("--json prints each message in a line, and the end of the connection exits with 3", () =>
    Effect.gen(function*() {
      const ran = yield* starting(["logs", "--json", ...overStdio("end")]).running
      assert.strictEqual(ran.code, 3)
      assert.include(ran.err.at(-1), "The connection to the server has ended")
      const lines = ran.out.map((line) => JSON.parse(line))
      assert.deepStrictEqual(lines.map(({ level }) => level), ["warning", "error", "info"])
      assert.strictEqual(lines[2].data, "the level is info")
    }))

  it.live("says that the stateless revision has no messages outside of a request", () =>
    Effect.gen(function*() {
      const advice =
        "In 2026-07-28 a server sends log messages only with the response to a request: use skein call --verbose"
      const asked = yield* starting(["logs", "--revision", "2026-07-28", "http://127.0.0.1:1/mcp"]).running
      assert.deepStrictEqual([asked.code, asked.err], [2, [`skein: ${advice}`]])
    }))
})

describe("skein subscribe", () => {
  for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"]) {
    it.live(`${revision} · prints updates and changes of lists until it is interrupted · HTTP`, () =>
      Effect.gen(function*() {
        const url = yield* teaHouseUrl
        const { ran, running } = starting(["subscribe", "--revision", revision, url, "shop://menu"])
        const fiber = yield* Effect.forkChild(running)
        yield* until(() => ran.err.length > 0)
        assert.deepStrictEqual(ran.err, [
          "Subscribed to the list of tools, the list of resources, the list of prompts, shop://menu"
        ])
        // Another client causes the changes.
        const other = yield* Client.make(NodeHttp.transport({ url: new URL(url) }))
        yield* other.callTool("change")
        yield* until(() => ran.out.length >= 2)
        yield* Fiber.interrupt(fiber)
        for (const line of ran.out) assert.match(line, time)
        const lines = new Set(ran.out.map((line) => line.replace(time, "")))
        assert.deepStrictEqual([...lines].toSorted(), ["tools changed", "updated shop://menu"])
      }))
  }

  for (const revision of ["2025-11-25", "2026-07-28"]) {
    it.live(
      `${revision} · prints updates and changes of lists until it is interrupted · stdio`,
      () =>
        Effect.gen(function*() {
          const server = `${teaHouse} --tick`
          const { ran, running } = starting(["subscribe", "--json", "--revision", revision, server, "shop://menu"])
          const fiber = yield* Effect.forkChild(running)
          const lines = () => ran.out.map((line) => JSON.parse(line))
          yield* until(() => lines().some(({ _tag }) => _tag === "ToolListChanged"))
          yield* until(() => lines().some(({ _tag, uri }) => _tag === "ResourceUpdated" && uri === "shop://menu"))
          yield* Fiber.interrupt(fiber)
          assert.isString(lines()[0].time)
        })
    )
  }

  it.live("reports resources that the server does not report, and the end of the connection with 3", () =>
    Effect.gen(function*() {
      // It declares changes of tools only, and ends after the handshake.
      const code = `
        const { createInterface } = require("node:readline")
        createInterface({ input: process.stdin }).on("line", (line) => {
          const { id, method } = JSON.parse(line)
          if (id === undefined) return
          if (method !== "initialize") {
            return console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "" } }))
          }
          const capabilities = { tools: { listChanged: true } }
          const serverInfo = { name: "s", version: "1" }
          const result = { protocolVersion: "2025-11-25", capabilities, serverInfo }
          console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
          setTimeout(() => {
            console.log(JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }))
            setTimeout(() => process.exit(0), 200)
          }, 300)
        })`
      const ran = yield* starting(["subscribe", process.execPath, "-e", code, "shop://menu"]).running
      assert.strictEqual(ran.code, 3)
      assert.strictEqual(ran.err[0], "Subscribed to the list of tools. The server does not report: shop://menu")
      assert.deepStrictEqual(ran.out.map((line) => line.replace(time, "")), ["tools changed"])
    }))

  it.live("reports a server without changes with 4", () =>
    Effect.gen(function*() {
      const ran = yield* starting(["subscribe", ...overStdio()]).running
      assert.deepStrictEqual([ran.code, ran.out], [4, []])
    }))
})

/** An HTTP server whose clients write hostile requests to a socket: targets, headers, framing and bodies. */
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type * as Http from "@skein/server/Http"
import * as LegacySse from "@skein/server/LegacySse"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Net from "node:net"
import * as RandomNumbers from "../../packages/protocol/test/oracle/Random.ts"
import { adapters } from "../../packages/server/test/http/adapters.ts"
import { hostileBytes, split } from "./framesTarget.ts"
import * as Hostile from "./hostileJson.ts"
import { MessageReader, oddly, oddValues, writeSplit } from "./rawHttp.ts"
import * as Samples from "./samples.ts"
import * as Server from "./server.ts"
import { printableLogger, type Report, type Target } from "./target.ts"

type Json = Hostile.Anything
type Random = RandomNumbers.Random

const accept = "application/json, text/event-stream"
const clientInfo = { name: "fuzz", version: "1" }
const meta = {
  [RequestMeta.protocolVersion]: "2026-07-28",
  [RequestMeta.clientInfo]: clientInfo,
  [RequestMeta.clientCapabilities]: { elicitation: {}, sampling: {}, roots: {} }
}

/** The statuses that a hostile request may get. All others, and above all 500, are faults. */
const statuses = new Set([
  100,
  200,
  202,
  204,
  400,
  401,
  403,
  404,
  405,
  406,
  408,
  409,
  411,
  413,
  414,
  415,
  417,
  421,
  426,
  429,
  431,
  501,
  503,
  505
])

const targets = [
  "/mcp",
  "/mcp?a=b",
  "http://localhost/mcp",
  "/mcp/",
  "/",
  "*",
  "//mcp",
  "/%6dcp",
  "/mcp/../mcp",
  "http://evil.example/mcp",
  "/mcp#x",
  "/\u0080",
  "",
  "/sse",
  `/${"a".repeat(9_000)}`
]

/** The message of a request, and its name if it has one. */
const messageOf = (random: Random, revision: Revision.Revision): Json => {
  const method = random.chance(0.8) ? random.pick(Method.requests) : random.pick(Method.notifications)
  const isRequest = (Method.requests as ReadonlyArray<unknown>).includes(method)
  const params: Json = { ...Samples.written(random, method, revision, "params") as object }
  if (method.name === "tools/call") {
    Object.assign(params, { name: random.pick(Server.toolNames), arguments: { x: "a" } })
  }
  if (method.name === "initialize") {
    Object.assign(params, { protocolVersion: revision, capabilities: {}, clientInfo })
  }
  if (revision === "2026-07-28") params._meta = meta
  const message = { jsonrpc: "2.0", ...(isRequest ? { id: random.below(5) } : undefined), method: method.name, params }
  return random.chance(0.5) ? Hostile.damage(random, message) : message
}

const chunked = (random: Random, body: Buffer): Buffer =>
  Buffer.concat([
    ...split(random, body).filter(({ length }) => length > 0).map((piece) =>
      Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")])
    ),
    Buffer.from(
      random.chance(0.9) ? "0\r\n\r\n" : random.pick(["0\r\nHost: b\r\n\r\n", "-1\r\n", "zz\r\n", "0;a\r\n\r\n"])
    )
  ])

const shownName = (value: unknown): string => typeof value === "string" ? value : "x"

const request = (random: Random, revision: Revision.Revision, sessions: ReadonlyArray<string>): Buffer => {
  const message = messageOf(random, revision)
  const text = Hostile.stringify(revision === "2025-03-26" && random.chance(0.1) ? [message, message] : message)
  const garbled = random.chance(0.2) ? Hostile.garble(random, text, Hostile.jsonPieces) : text
  const body = random.chance(0.05) ? hostileBytes(random) : Buffer.from(garbled)
  // No HEAD: the reader of the responses does not know which response has no body.
  const verb = random.chance(0.8)
    ? "POST"
    : random.pick(["GET", "DELETE", "OPTIONS", "PUT", "POSTS", "CONNECT", "get"])
  const target = random.chance(0.85) ? "/mcp" : random.pick(targets)
  const lines = [
    `${verb} ${target} ${random.chance(0.97) ? "HTTP/1.1" : random.pick(["HTTP/1.0", "HTTP/2.0", "HTTP/0.9", ""])}`
  ]
  const add = (share: number, name: string, usual: ReadonlyArray<string>): void => {
    if (random.chance(share)) lines.push(`${name}: ${oddly(random, usual)}`)
    if (random.chance(0.02)) lines.push(`${name}: ${oddly(random, usual)}`)
  }
  add(0.98, "Host", ["localhost", "localhost", "127.0.0.1:80"])
  add(0.95, "Content-Type", ["application/json", "application/json; charset=utf-8"])
  add(0.95, "Accept", [accept, accept, "*/*", "text/event-stream", "application/json;q=0"])
  add(0.1, "Origin", ["http://localhost", "null", "http://evil.example", "http://[::1"])
  if (revision === "2026-07-28") {
    add(0.9, "Mcp-Method", [shownName(message?.method)])
    add(0.6, "Mcp-Name", [shownName(message?.params?.name ?? message?.params?.uri ?? message?.params?.taskId)])
    add(0.1, "Mcp-Param-X", ["a", "=?base64?YQ==?=", "=?base64?!?="])
  }
  add(0.9, "MCP-Protocol-Version", [revision])
  if (sessions.length > 0) add(0.85, "Mcp-Session-Id", sessions)
  add(0.1, "Last-Event-ID", ["1", "a_1", "0"])
  add(0.05, "Expect", ["100-continue", "x"])
  add(0.03, "Connection", ["close", "upgrade", "keep-alive, host"])
  add(0.02, "Upgrade", ["websocket", "h2c"])
  add(0.05, "traceparent", ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"])
  if (random.chance(0.03)) {
    lines.push(random.pick([" folded", "X: a\r\n b", "X Y: a", ": a", "é: é", `X: ${"a".repeat(20_000)}`]))
  }
  if (random.chance(0.01)) lines.push(...Array.from({ length: 2_100 }, (_, at) => `X-${at}: a`))
  let sent = body
  if (random.chance(0.2)) {
    lines.push(`Transfer-Encoding: ${oddly(random, ["chunked", "chunked", "gzip, chunked", "identity"])}`)
    sent = chunked(random, body)
    if (random.chance(0.05)) lines.push(`Content-Length: ${body.length}`)
  } else if (random.chance(0.97)) {
    const length = random.chance(0.93)
      ? body.length
      : random.pick([body.length + 5, Math.max(0, body.length - 3), 1e15])
    lines.push(`Content-Length: ${random.chance(0.98) ? length : random.pick(oddValues)}`)
  }
  const bytes = Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), sent])
  if (random.chance(0.05)) bytes[random.below(bytes.length)] = random.below(256)
  return random.chance(0.05) ? bytes.subarray(0, random.below(bytes.length)) : bytes
}

/** Opens a connection. `onMessage` receives each response. */
const open = (port: number, onMessage: (start: string, body: Buffer, headers: ReadonlyMap<string, string>) => void) => {
  const socket = Net.connect(port, "127.0.0.1")
  const reader = new MessageReader(({ body, headers, start }) => onMessage(start, body, headers))
  socket.on("error", () => {})
  socket.on("data", (chunk) => reader.push(chunk))
  return socket
}

/** Sends an honest request, and returns the start of its response and its session id. */
const asked = (port: number, revision: Revision.Revision) =>
  Effect.callback<readonly [start: string, session: string | undefined]>((resume) => {
    const isSession = Revision.era(revision) === "session"
    const method = isSession ? "initialize" : "server/discover"
    const params = isSession ? { protocolVersion: revision, capabilities: {}, clientInfo } : { _meta: meta }
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
    const more = isSession ? "" : `MCP-Protocol-Version: ${revision}\r\nMcp-Method: ${method}\r\n`
    const socket = open(port, (start, _, headers) => {
      socket.destroy()
      resume(Effect.succeed([start, headers.get("mcp-session-id")]))
    })
    socket.on("close", () => resume(Effect.succeed(["closed", undefined])))
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: ${accept}\r\n${more}` +
        `Content-Length: ${body.length}\r\n\r\n${body}`
    )
  })

let currentReport: Report = () => {}
const logger = printableLogger((fault) => currentReport(fault))

let built: { readonly scope: Scope.Closeable; readonly port: number; uses: number } | undefined

const close = Effect.suspend(() => {
  const scope = built?.scope
  built = undefined
  return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
})

const options: Http.Options = {
  shutdownTimeout: 0,
  allowedHosts: ["localhost", "127.0.0.1"],
  limits: { maxSessions: 20_000 },
  legacySse: LegacySse.make()
}

// The adapter for `fetch` needs a server around it, whose reading of requests is its own.
const served = adapters.filter(({ name }) => name !== "web")
let made = 0

const portOf = Effect.gen(function*() {
  if (built !== undefined && built.uses++ < 100) return built.port
  yield* close
  const scope = Scope.makeUnsafe()
  const { serve } = served[made++ % served.length]!
  const { port } = yield* Scope.provide(serve(Server.make(logger), options), scope)
  built = { scope, port, uses: 0 }
  return port
})

const exchange = (random: Random, port: number, report: Report) =>
  Effect.gen(function*() {
    const revision = random.pick(Revision.all)
    const [started, session] = yield* asked(port, revision)
    if (!started.startsWith("HTTP/1.1 200")) report(`${revision}: an honest request got ${started}`)
    const sessions = session === undefined ? [] : [session]
    const sent: Array<Buffer> = []
    const shown = () => Buffer.concat(sent).toString("latin1").slice(0, 1_500)
    const socket = open(port, (start, body) => {
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(start)?.[1])
      if (!statuses.has(status)) report(`${revision}: ${JSON.stringify(start)} for ${JSON.stringify(shown())}`)
      if (body.includes("\"reference\"")) {
        report(`${revision}: ${body.toString().slice(0, 300)} for ${JSON.stringify(shown())}`)
      }
    })
    let isOver = false
    socket.on("close", () => {
      isOver = true
    })
    for (let count = 1 + random.below(4); count > 0; count--) {
      const bytes = request(random, revision, sessions)
      sent.push(bytes)
      writeSplit(socket, split(random, bytes), random.chance(0.9) ? "keep" : random.pick(["end", "destroy", "reset"]))
      yield* Effect.promise(() => new Promise<void>((resolve) => void setTimeout(resolve, random.pick([0, 2, 10]))))
    }
    if (random.chance(0.5)) socket.end()
    for (let turn = 0; turn < 10 && !isOver; turn++) {
      yield* Effect.promise(() => new Promise<void>((resolve) => void setTimeout(resolve, 3)))
    }
    socket.destroy()
    const [last] = yield* asked(port, revision)
    if (!last.startsWith("HTTP/1.1 200")) {
      report(`${revision}: the last request got ${last} after ${JSON.stringify(shown())}`)
    }
  })

export const httpTarget: Target = {
  name: "http",
  close,
  run: (random, report) =>
    Effect.gen(function*() {
      currentReport = report
      const port = yield* portOf
      const seeds = Array.from({ length: 12 }, () => random.below(2 ** 31))
      yield* Effect.forEach(seeds, (seed) => exchange(RandomNumbers.make(seed), port, report), {
        concurrency: "unbounded",
        discard: true
      })
    })
}

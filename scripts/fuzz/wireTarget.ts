/** A client whose server writes hostile HTTP responses and event streams to a socket, over `node:http` and `fetch`. */
import * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Credentials from "@skein/client/Credentials"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Net from "node:net"
import * as RandomNumbers from "../../packages/protocol/test/oracle/Random.ts"
import { checked } from "./clientTarget.ts"
import { hostileBytes, split } from "./framesTarget.ts"
import * as Hostile from "./hostileJson.ts"
import { type Afterwards, MessageReader, oddly, oddValues, writeSplit } from "./rawHttp.ts"
import * as Samples from "./samples.ts"
import { printableLogger, type Report, type Target } from "./target.ts"
import { withBounds } from "../../packages/client/test/http/support/changedBounds.ts"

/** The fixed bounds of the transports, small enough for a run. */
const bounds = {
  refusalTimeout: 50,
  postTimeout: 100,
  endpointTimeout: 100,
  minRetry: 1,
  maxRetry: 20,
  maxReconnects: 4
}

type Json = Hostile.Anything
type Random = RandomNumbers.Random

const secret = "secret-token-of-the-fuzzer"

const statuses = [
  "200 OK",
  "202 Accepted",
  "204 No Content",
  "304 Not Modified",
  "400 Bad Request",
  "401 Unauthorized",
  "403 Forbidden",
  "404 Not Found",
  "405 Method Not Allowed",
  "429 Too Many Requests",
  "500 Internal Server Error",
  "503 Service Unavailable",
  "307 Temporary Redirect",
  "308 Permanent Redirect",
  "100 Continue",
  "101 Switching Protocols",
  "103 Early Hints",
  "999 Odd",
  "0 Odd"
]

const types = [
  "application/json",
  "application/json; charset=utf-8",
  "APPLICATION/JSON",
  "text/event-stream",
  "text/event-stream; charset=latin1",
  "text/html",
  "text/event-stream, application/json",
  "application/json;"
]

const challenges = [
  "Bearer",
  "Bearer realm=\"a\", error=\"invalid_token\"",
  "Bearer resource_metadata=\"https://a/b\"",
  `Bearer realm="${"x".repeat(3_000)}"`,
  "Bearer realm=\"",
  "Basic, Bearer ,, ,",
  `Bearer ${secret}`
]

/** The bytes of a body, and its media type. */
const bodyOf = (random: Random, message: Json): readonly [string, Buffer] => {
  const text = Hostile.stringify(message)
  const json = random.chance(0.3) ? Hostile.garble(random, text, Hostile.jsonPieces) : text
  switch (random.below(4)) {
    case 0:
      return [random.pick(types.slice(0, 3)), Buffer.from(json)]
    case 1:
      return ["text/event-stream", Buffer.from(`id: 1\nretry: ${random.pick([0, 1, 1e15])}\ndata: ${json}\n\n`)]
    case 2:
      return [
        "text/event-stream",
        Buffer.concat([hostileBytes(random), Buffer.from(`\n\ndata: ${json}\n\n`), hostileBytes(random)])
      ]
    default:
      return [
        random.pick(types),
        random.chance(0.5) ? hostileBytes(random) : Buffer.from(`${secret} ${Samples.escapes}`)
      ]
  }
}

const chunked = (random: Random, body: Buffer): Buffer =>
  Buffer.concat([
    ...split(random, body).map((piece) =>
      piece.length === 0
        ? piece
        : Buffer.concat([
          Buffer.from(`${piece.length.toString(16)}${random.chance(0.01) ? ";a=\"" : ""}\r\n`),
          piece,
          Buffer.from("\r\n")
        ])
    ),
    Buffer.from(
      random.chance(0.9)
        ? "0\r\n\r\n"
        : random.pick(["0\r\nA: b\r\n\r\n", "-1\r\n", "zz\r\n", "ffffffffffffffff\r\n", ""])
    )
  ])

/** A response with odd parts. */
const hostileResponse = (random: Random, message: Json): readonly [Buffer, Afterwards] => {
  const [type, body] = bodyOf(random, message)
  const status = random.chance(0.7) ? statuses[0]! : random.pick(statuses)
  const lines = [
    random.chance(0.97)
      ? `HTTP/1.1 ${status}`
      : random.pick(["HTTP/1.0 200 OK", "HTTP/2 200", "ICY 200", "HTTP/1.1 2000"])
  ]
  if (random.chance(0.95)) lines.push(`Content-Type: ${oddly(random, [type])}`)
  if (random.chance(0.1)) lines.push(`Mcp-Session-Id: ${oddly(random, ["s", "é", "a b", "x".repeat(4_097)])}`)
  if (random.chance(0.15)) lines.push(`Retry-After: ${oddly(random, ["0", "1", "Fri, 31 Dec 9999 23:59:59 GMT"])}`)
  if (random.chance(0.3)) lines.push(`WWW-Authenticate: ${oddly(random, challenges)}`)
  if (random.chance(0.1)) lines.push(`Content-Encoding: ${oddly(random, ["gzip", "identity", "br", "deflate, gzip"])}`)
  if (random.chance(0.3) || status.startsWith("30")) {
    lines.push(
      `Location: ${
        oddly(random, [
          "/mcp/again",
          "http://127.0.0.1:1/",
          "//[::1",
          "javascript:1",
          "http://u:p@x/",
          `/${Samples.escapes}`
        ])
      }`
    )
  }
  if (random.chance(0.05)) lines.push(`X-${random.pick(["A", "é", "a b", ""])}: ${random.pick(oddValues)}`)
  if (random.chance(0.01)) lines.push(...Array.from({ length: 2_500 }, (_, at) => `X-${at}: a`))
  let sent = body
  if (random.chance(0.4)) {
    lines.push("Transfer-Encoding: chunked")
    sent = chunked(random, body)
  } else if (random.chance(0.8)) {
    const length = random.chance(0.85)
      ? body.length
      : random.pick([body.length + 5, Math.max(0, body.length - 3), 1e15])
    lines.push(`Content-Length: ${random.chance(0.95) ? length : random.pick(oddValues)}`)
  }
  const early = random.chance(0.05) ? "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" : ""
  const head = Buffer.from(`${early}${lines.join("\r\n")}\r\n\r\n`, "latin1")
  const bytes = Buffer.concat([head, sent])
  if (random.chance(0.1)) bytes[random.below(bytes.length)] = random.below(256)
  const cut = random.chance(0.1) ? bytes.subarray(0, random.below(bytes.length)) : bytes
  return [cut, random.pick(["keep", "keep", "keep", "end", "destroy", "reset"])]
}

const honest = (message: Json | undefined, headers = ""): Buffer => {
  if (message === undefined) return Buffer.from("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
  const body = Buffer.from(JSON.stringify(message))
  return Buffer.concat([
    Buffer.from(
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${headers}Content-Length: ${body.length}\r\n\r\n`
    ),
    body
  ])
}

const capabilities = { tools: { listChanged: true } }
const serverInfo = { name: "fuzz", version: "1" }

/** The honest response to a request. */
const answerOf = (revision: Revision.Revision, { id, method, params }: Json): Json => {
  if (id === undefined) return undefined
  switch (method) {
    case "initialize":
      return { jsonrpc: "2.0", id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo } }
    case "server/discover":
      return {
        jsonrpc: "2.0",
        id,
        result: { resultType: "complete", supportedVersions: [revision], capabilities, ttlMs: 0, cacheScope: "private" }
      }
    default:
      return { jsonrpc: "2.0", id, result: { resultType: "complete", content: [{ type: "text", text: "é€😀" }] } }
  }
}

interface Case {
  readonly random: Random
  readonly revision: Revision.Revision
  /** The probability that a response is hostile. */
  readonly share: number
  readonly sockets: Set<Net.Socket>
}

const cases = new Map<string, Case>()

const respond = ({ random, revision, share }: Case, socket: Net.Socket, start: string, body: Buffer): void => {
  const [verb] = start.split(" ")
  const message: Json = body.length === 0 ? {} : JSON.parse(body.toString())
  const answer = verb === "POST" ? answerOf(revision, message) : { jsonrpc: "2.0", method: "notifications/message" }
  const isHandshake = message.method === "initialize" || message.method === "server/discover"
  if (random.chance(isHandshake ? share / 4 : share)) {
    const [bytes, end] = hostileResponse(random, answer ?? {})
    return writeSplit(socket, split(random, bytes), end)
  }
  if (revision === "2024-11-05") {
    if (verb === "GET") {
      const opened = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: /mcp/x\n\n"
      return writeSplit(socket, split(random, Buffer.concat([Buffer.from(opened), hostileBytes(random)])), "keep")
    }
    if (random.chance(0.5)) return void socket.write("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
  }
  if (verb === "GET") return void socket.write("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
  if (verb === "DELETE") return void socket.write(honest(undefined))
  const session = message.method === "initialize" ? "Mcp-Session-Id: s\r\n" : ""
  socket.write(honest(answer, session))
}

let listening: Promise<{ readonly server: Net.Server; readonly port: number }> | undefined

const listen = () =>
  listening ??= new Promise((resolve) => {
    const server = Net.createServer((socket) => {
      socket.on("error", () => {})
      const reader = new MessageReader(({ body, headers, start }) => {
        const found = cases.get(headers.get("x-case") ?? "")
        if (found === undefined) return void socket.destroy()
        found.sockets.add(socket)
        respond(found, socket, start, body)
      })
      socket.on("data", (chunk) => reader.push(chunk))
    })
    server.listen(0, "127.0.0.1", () => resolve({ server, port: (server.address() as Net.AddressInfo).port }))
  })

let made = 0

const exchange = (random: Random, report: Report) =>
  Effect.gen(function*() {
    const { port } = yield* Effect.promise(listen)
    const key = `case-${++made}`
    const revision = random.pick(Revision.all)
    const found: Case = { random, revision, share: random.pick([0.2, 0.6, 0.9]), sockets: new Set() }
    cases.set(key, found)
    const isNode = random.chance(0.6)
    const challenged = {
      headers: () => Effect.succeed({ authorization: `Bearer ${secret}` }),
      refused: () => Effect.succeed(random.chance(0.5))
    }
    const settings: Http.Options = {
      url: `http://127.0.0.1:${port}/mcp/x`,
      headers: { "x-case": key },
      credentials: random.chance(0.5) ? challenged : Credentials.bearer(Redacted.make(secret)),
      shutdownTimeout: random.pick([0, 50]),
      maxMessageBytes: random.chance(0.1) ? 100 : 100_000,
      standaloneStream: random.chance(0.7),
      resumption: { initialDelay: 1, maxDelay: 5, maxAttempts: 2 }
    }
    const options: Client.Options = {
      revisions: random.chance(0.8) ? [revision] : Revision.all,
      enforceCapabilities: false,
      reconnect: random.chance(0.3) ? { initialDelay: 1, maxDelay: 5, maxAttempts: 2 } : false,
      probeTimeout: 100,
      limits: { timeout: 300, maxTimeout: 1_000, shutdownTimeout: 0, maxRetries: 1 }
    }
    const exit = yield* Effect.exit(Effect.scoped(Effect.gen(function*() {
      const client = yield* Client.make(withBounds((isNode ? NodeHttp : Http).transport(settings), bounds), options)
      if (random.chance(0.3)) {
        yield* Effect.forkScoped(Effect.ignore(Stream.runDrain(client.changes({ tools: true }))))
      }
      for (let count = 1 + random.below(3); count > 0; count--) {
        checked(revision, yield* Effect.exit(client.callTool("t")), report)
      }
    })))
    checked(revision, exit, (fault) => report(`${isNode ? "node:http" : "fetch"} ${fault}`))
    const quoted = JSON.stringify(exit._tag === "Failure" ? messagesOf(exit.cause.reasons) : "")
    if (quoted.includes(secret)) report(`a credential in an error: ${quoted.slice(0, 1_000)}`)
    if (isNode) yield* closed(found.sockets, report)
    for (const socket of found.sockets) socket.destroy()
    cases.delete(key)
  })

const messagesOf = (reasons: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  reasons.map((reason) => (reason as { readonly error?: ClientError }).error?.message)

/** Waits until the client has closed its sockets. */
const closed = (sockets: ReadonlySet<Net.Socket>, report: Report) =>
  Effect.promise(async () => {
    const isClosed = (socket: Net.Socket): boolean => socket.destroyed || socket.readableEnded
    for (let turn = 0; turn < 500; turn++) {
      if ([...sockets].every(isClosed)) return
      await new Promise<void>((resolve) => void setTimeout(resolve, 10))
    }
    report("a socket stays open after its client")
  })

export const wireTarget: Target = {
  name: "wire",
  run: (random, report) => {
    const seeds = Array.from({ length: 12 }, () => random.below(2 ** 31))
    return Effect.forEach(seeds, (seed) => exchange(RandomNumbers.make(seed), report), {
      concurrency: "unbounded",
      discard: true
    }).pipe(Effect.provide(Logger.layer([printableLogger(report)])))
  },
  close: Effect.promise(async () => (await listening)?.server.close())
}

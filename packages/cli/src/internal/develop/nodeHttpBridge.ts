/**
 * Serves servers of stdio over Streamable HTTP on the loopback interface: sessions (2025-03-26 to 2025-11-25), each with
 * a server of its own, and stateless requests (2026-07-28), which share one server.
 *
 * It is for development. It does not authenticate, does not replay streams, and has no options of HTTP: use
 * `skein run --http` for those. Over stdio a notification does not name the request that it belongs to, unless it has a
 * progress token or the id of a subscription: other ones go to the newest open stream.
 */
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { CommandFailed } from "../base/process.ts"
import type { Output } from "./relay.ts"
import { subscriptionKey } from "./relay.ts"

/** One server behind the bridge. */
export interface BridgedServer {
  readonly fromHost: (message: JsonRpc.Inbound) => void
}

/** Opens a server that sends its messages to `host`, until the scope closes. */
export type OpenServer = (
  host: Output,
  ended: (reason: string) => void
) => Effect.Effect<BridgedServer, CommandFailed, Scope.Scope>

/** The bounds of a bridge, which the command line has options for. */
export interface BridgeBounds {
  /** The number of sessions. Beyond it, the session that was used least recently ends. */
  readonly maxSessions: number
  /** The number of bytes in the body of a request. A larger one is answered with 413. */
  readonly maxBodyBytes: number
  /** The number of messages of one server that are stored until a stream takes them. Beyond it, the oldest is dropped. */
  readonly maxBufferedMessages: number
}

/** Options of {@link serveBridge}. */
export interface BridgeOptions extends BridgeBounds {
  readonly host: string
  readonly port: number
  readonly open: OpenServer
  /** Receives a line for the first message of a server that is dropped. */
  readonly warn: (line: string) => void
}

const path = "/mcp"
// A response without messages before it is JSON, unless it takes longer than this, in milliseconds.
const streamAfter = 1_000

const json = { "content-type": "application/json" }

const refuse = (response: ServerResponse, status: number, message: string, code = -32600, id?: JsonRpc.Id): void => {
  if (response.headersSent) return void response.end()
  response.writeHead(status, json)
  response.end(JsonRpc.encode(JsonRpc.failure(id, { code, message })))
}

// Streamable HTTP of 2026-07-28 has these statuses for errors. Before, an error has 200 as a result has.
const statusOf = (message: JsonRpc.Outbound, isStateless: boolean): number => {
  if (!isStateless || message._tag !== "Failure") return 200
  const { code } = message.error
  return code === -32601 ? 404 : code <= -32020 && code >= -32022 ? 400 : 200
}

/** The response to a POST or a GET: JSON, or a stream of messages. */
class HttpStream {
  readonly response: ServerResponse
  readonly #isStateless: boolean
  readonly #timer: NodeJS.Timeout
  readonly #headers: Readonly<Record<string, string>>

  constructor(
    response: ServerResponse,
    { headers = {}, isStateless = false, opensNow = false }: {
      readonly isStateless?: boolean
      readonly opensNow?: boolean
      readonly headers?: Readonly<Record<string, string>>
    } = {}
  ) {
    this.response = response
    this.#isStateless = isStateless
    this.#headers = headers
    this.#timer = setTimeout(() => this.#open(), opensNow ? 0 : streamAfter)
    if (opensNow) this.#open()
    response.on("close", () => clearTimeout(this.#timer))
  }

  #open(): void {
    clearTimeout(this.#timer)
    if (this.response.headersSent || this.response.destroyed) return
    this.response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      ...this.#headers
    })
    this.response.write(":\n\n")
  }

  send(message: JsonRpc.Outbound): void {
    this.#open()
    this.response.write(`event: message\ndata: ${JsonRpc.encode(message)}\n\n`)
  }

  /** Sends the response to the request, and ends. */
  end(message: JsonRpc.Outbound): void {
    clearTimeout(this.#timer)
    if (this.response.headersSent) {
      this.send(message)
      return void this.response.end()
    }
    this.response.writeHead(statusOf(message, this.#isStateless), { ...json, ...this.#headers })
    this.response.end(JsonRpc.encode(message))
  }
}

/** A request of a client that waits for its response. */
interface Waiting {
  readonly stream: HttpStream
  readonly id: JsonRpc.Id
  readonly token: unknown
}

/** The clients of one server: those of a session, or all that send stateless requests. */
class Clients implements Output {
  readonly #isStateless: boolean
  readonly #waiting = new Map<JsonRpc.Id, Waiting>()
  #listening: HttpStream | undefined
  #counter = 0
  readonly #buffered: Array<JsonRpc.Outbound> = []
  readonly #maxBuffered: number
  readonly #warn: (line: string) => void
  #hasDropped = false
  server: BridgedServer | undefined

  constructor(isStateless: boolean, { maxBufferedMessages, warn }: BridgeOptions) {
    this.#isStateless = isStateless
    this.#maxBuffered = maxBufferedMessages
    this.#warn = warn
  }

  /** A request of a client. Clients of stateless requests use the same ids and tokens, so each gets one of the bridge. */
  request(request: JsonRpc.Request, stream: HttpStream): void {
    const params = JsonRpc.isObject(request.params) ? request.params : {}
    const meta = JsonRpc.isObject(params["_meta"]) ? params["_meta"] : {}
    const token = meta["progressToken"]
    const id = this.#isStateless ? `http:${++this.#counter}` : request.id
    this.#waiting.set(id, { stream, id: request.id, token })
    stream.response.on("close", () => {
      if (this.#waiting.delete(id) && this.#isStateless) {
        this.server?.fromHost(JsonRpc.notification("notifications/cancelled", { requestId: id }))
      }
    })
    const named = this.#isStateless && token !== undefined
      ? { ...params, _meta: { ...meta, progressToken: id } }
      : request.params
    this.server?.fromHost({ ...request, id, params: named })
  }

  /** The stream of a GET, which receives what belongs to no request. */
  listen(stream: HttpStream): void {
    this.#listening?.response.end()
    this.#listening = stream
    stream.response.on("close", () => {
      if (this.#listening === stream) this.#listening = undefined
    })
    for (const message of this.#buffered.splice(0)) stream.send(message)
  }

  /** A message of the server. */
  send(message: JsonRpc.Outbound): void {
    if (message._tag === "Success" || message._tag === "Failure") {
      const waiting = message.id === undefined ? undefined : this.#waiting.get(message.id)
      if (waiting === undefined) return
      this.#waiting.delete(message.id!)
      return waiting.stream.end({ ...message, id: waiting.id })
    }
    if (message._tag === "Notification" && JsonRpc.isObject(message.params)) {
      const { params } = message
      const meta = JsonRpc.isObject(params["_meta"]) ? params["_meta"] : {}
      const subscription = meta[subscriptionKey]
      const token = params["progressToken"]
      for (const [id, { id: original, stream, token: given }] of this.#waiting) {
        if (subscription !== undefined && subscription === id) {
          return stream.send({ ...message, params: { ...params, _meta: { ...meta, [subscriptionKey]: original } } })
        }
        if (token !== undefined && token === (this.#isStateless ? id : given)) {
          return stream.send({ ...message, params: { ...params, progressToken: given } })
        }
      }
    }
    const newest = [...this.#waiting.values()].at(-1)?.stream ?? this.#listening
    if (newest !== undefined) return newest.send(message)
    if (this.#buffered.push(message) <= this.#maxBuffered) return
    this.#buffered.shift()
    if (this.#hasDropped) return
    this.#hasDropped = true
    this.#warn(
      `More than ${this.#maxBuffered} messages of the server have no stream: the oldest are dropped (--max-buffered-messages)`
    )
  }

  /** Ends all streams. */
  end(reason: string): void {
    for (const { id, stream } of this.#waiting.values()) {
      stream.end(JsonRpc.failure(id, { code: -32603, message: reason }))
    }
    this.#waiting.clear()
    this.#listening?.response.end()
  }
}

/** Reads a body of at most `maxBodyBytes`. Returns `undefined` for a larger one. */
const readBody = async (request: IncomingMessage, maxBodyBytes: number): Promise<string | undefined> => {
  const chunks: Array<Buffer> = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBodyBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

const loopback = new Set(["127.0.0.1", "localhost", "[::1]"])

/** Whether a browser on another site has sent the request, by a name that resolves to this computer. */
const isForeign = ({ headers }: IncomingMessage, host: string): boolean => {
  const names = new Set([...loopback, host])
  const isAllowed = (url: string): boolean => URL.canParse(url) && names.has(new URL(url).hostname)
  return !isAllowed(`http://${headers.host}`) || (headers.origin !== undefined && !isAllowed(headers.origin))
}

/** The member of the params that `Mcp-Name` repeats, by the method. */
const targets: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId"
}

/** The revision that a message of a stateless client names. */
const statelessVersion = (message: JsonRpc.Inbound): string | undefined => {
  if (message._tag !== "Request" || !JsonRpc.isObject(message.params?.["_meta"])) return undefined
  const version = message.params["_meta"]["io.modelcontextprotocol/protocolVersion"]
  return typeof version === "string" ? version : undefined
}

/** Serves until the scope closes. Returns the URL. */
export const serveBridge = (options: BridgeOptions): Effect.Effect<string, CommandFailed, Scope.Scope> =>
  Effect.gen(function*() {
    const { host, maxBodyBytes, maxSessions, open, port } = options
    const scope = yield* Effect.scope
    const sessions = new Map<string, { readonly clients: Clients; readonly close: () => void }>()
    const start = async (clients: Clients, ended: () => void): Promise<() => void> => {
      const own = await Effect.runPromise(Scope.fork(scope))
      const close = (): void => void Effect.runFork(Scope.close(own, Exit.void))
      clients.server = await Effect.runPromise(Scope.provide(
        open(clients, (reason) => {
          clients.end(reason)
          ended()
        }),
        own
      ))
      return close
    }
    let shared: Promise<Clients> | undefined
    const stateless = (): Promise<Clients> =>
      shared ??= (async () => {
        const clients = new Clients(true, options)
        const forget = (): void => void (shared = undefined)
        await start(clients, forget).catch((error: unknown) => {
          forget()
          throw error
        })
        return clients
      })()
    const newSession = async (): Promise<readonly [id: string, clients: Clients]> => {
      const [oldest] = sessions.keys()
      if (sessions.size >= maxSessions && oldest !== undefined) endSession(oldest)
      const clients = new Clients(false, options)
      const id = randomUUID()
      const close = await start(clients, () => void endSession(id))
      sessions.set(id, { clients, close })
      return [id, clients]
    }
    const endSession = (id: string): boolean => {
      const session = sessions.get(id)
      session?.clients.end("The session has ended")
      session?.close()
      return sessions.delete(id)
    }
    const post = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
        return refuse(response, 415, "The body must be application/json")
      }
      const body = await readBody(request, maxBodyBytes)
      if (body === undefined) {
        return refuse(response, 413, `The body exceeds ${maxBodyBytes} bytes (--max-body-bytes)`)
      }
      const message = JsonRpc.parseText(body)
      if (message._tag === "Invalid") {
        return refuse(response, 400, message.error.message, message.error.code, message.id)
      }
      const version = request.headers[Header.keys.protocolVersion]
      const lookup = (key: string): string | undefined => request.headers[key] as string | undefined
      const inBody = statelessVersion(message)
      const id = message._tag === "Request" ? message.id : undefined
      if (
        inBody !== undefined ||
        (typeof version === "string" && Revision.is(version) && Revision.era(version) === "stateless")
      ) {
        if (message._tag !== "Request") return void response.writeHead(202).end()
        const { method, params } = message
        const name = params?.[targets[method] ?? ""]
        const fault = Header.standardMismatch(lookup, {
          protocolVersion: inBody,
          method,
          name: typeof name === "string" ? name : undefined
        } as Header.Mirrored)
        if (fault !== undefined) return refuse(response, 400, `Header mismatch: ${fault}`, -32020, id)
        const clients = await stateless()
        return clients.request(
          message,
          new HttpStream(response, { isStateless: true, opensNow: method === "subscriptions/listen" })
        )
      }
      if (typeof version === "string" && !Revision.is(version)) {
        return refuse(response, 400, `Unsupported protocol version: ${version}`, -32602, id)
      }
      if (message._tag === "Request" && message.method === "initialize") {
        const [session, clients] = await newSession()
        return clients.request(message, new HttpStream(response, { headers: { "mcp-session-id": session } }))
      }
      const session = find(request, response)
      if (session === undefined) return
      if (message._tag === "Request") return session.request(message, new HttpStream(response))
      session.server?.fromHost(message)
      response.writeHead(202).end()
    }
    const find = ({ headers }: IncomingMessage, response: ServerResponse): Clients | undefined => {
      const id = headers[Header.keys.sessionId]
      if (typeof id !== "string") return void refuse(response, 400, "The header Mcp-Session-Id is missing")
      const session = sessions.get(id)
      if (session === undefined) return void refuse(response, 404, "There is no such session")
      // The order of the map is that of the last use.
      sessions.delete(id)
      sessions.set(id, session)
      return session.clients
    }
    const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      if (isForeign(request, host)) return refuse(response, 403, "The Host or Origin is not of this computer")
      if (new URL(request.url ?? "", "http://x").pathname !== path) {
        return refuse(response, 404, "There is no such endpoint")
      }
      switch (request.method) {
        case "POST":
          return post(request, response)
        case "GET":
          return find(request, response)?.listen(new HttpStream(response, { opensNow: true }))
        case "DELETE":
          if (find(request, response) === undefined) {
            return
          }
          endSession(request.headers[Header.keys.sessionId] as string)
          return void response.writeHead(200).end()
        default:
          response.writeHead(405, { allow: "GET, POST, DELETE" }).end()
      }
    }
    const http = createServer((request, response) => {
      handle(request, response).catch((error: unknown) =>
        refuse(response, 500, error instanceof Error ? error.message : String(error), -32603)
      )
    })
    yield* Effect.acquireRelease(
      Effect.callback<void, CommandFailed>((resume) => {
        http.once(
          "error",
          (error) =>
            resume(
              Effect.fail(new CommandFailed({ exitCode: 3, report: `The bridge cannot listen: ${error.message}` }))
            )
        )
        http.listen(port, host, () => resume(Effect.void))
      }),
      () =>
        Effect.sync(() => {
          http.close()
          http.closeAllConnections()
        })
    )
    const address = http.address() as AddressInfo
    return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}${path}`
  })

/**
 * A minimal MCP client over raw connections, for all revisions over HTTP. It can abandon a request or a session at any
 * moment.
 */
import { type CloseMode, type HttpResponse, RawConnection } from "./rawConnection.ts"

/** Revisions that have sessions over Streamable HTTP. */
export type Revision = "2025-03-26" | "2025-06-18" | "2025-11-25"

const clientInfo = { name: "soak", version: "1.0.0" }
const capabilities = { sampling: {} }

const statelessRevision = "2026-07-28"

const meta = {
  "io.modelcontextprotocol/protocolVersion": statelessRevision,
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": capabilities
}

export const message = (id: number | undefined, method: string, params?: object): object => ({
  jsonrpc: "2.0",
  ...(id === undefined ? undefined : { id }),
  method,
  ...(params === undefined ? undefined : { params })
})

/** A `tools/call` request that asks for progress notifications. */
export const call = (id: number, name: string): object =>
  message(id, "tools/call", { name, arguments: {}, _meta: { progressToken: id } })

export const initialize = (protocolVersion: string): object =>
  message(0, "initialize", { protocolVersion, capabilities, clientInfo })

export const initialized = message(undefined, "notifications/initialized")

/** A session as its client sees it. */
export interface Session {
  readonly id: string
  readonly revision: Revision
}

const expectStatus = (what: string, response: HttpResponse, status: number): HttpResponse => {
  if (response.status === status) return response
  throw new Error(`${what}: status ${response.status} instead of ${status}: ${response.head} ${response.body}`)
}

export class RawClient {
  /** The number of scenario rounds before this client. Scenarios vary their timing and revision with it. */
  readonly round: number
  /** The name of the principal, which no other client has. */
  readonly #user: string
  readonly #port: number
  readonly #connections: Array<RawConnection> = []

  constructor(port: number, user: string, round: number) {
    this.#port = port
    this.#user = user
    this.round = round
  }

  connect(): RawConnection {
    const connection = new RawConnection(this.#port)
    this.#connections.push(connection)
    return connection
  }

  /** How this client closes its connections. */
  get closeMode(): CloseMode {
    return (["reset", "destroy", "end"] as const)[this.round % 3]!
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close(this.closeMode)))
  }

  /** The text of an HTTP request. */
  httpRequest(verb: string, path: string, headers: Readonly<Record<string, string>>, body?: object): string {
    const json = body === undefined ? "" : JSON.stringify(body)
    const length = body === undefined ? "" : `content-type: application/json\r\ncontent-length: ${json.length}\r\n`
    const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("")
    const accept = verb === "GET" ? "text/event-stream" : "application/json, text/event-stream"
    const common = `host: 127.0.0.1:${this.#port}\r\nx-user: ${this.#user}\r\naccept: ${accept}`
    return `${verb} ${path} HTTP/1.1\r\n${common}\r\n${length}${more}\r\n${json}`
  }

  // ---- Sessions over Streamable HTTP

  #headers(session: Session): Record<string, string> {
    return { "mcp-session-id": session.id, "mcp-protocol-version": session.revision }
  }

  sessionPost(session: Session, body: object): string {
    return this.httpRequest("POST", "/mcp", this.#headers(session), body)
  }

  /** Sends `initialize` but not `notifications/initialized`. */
  async initialize(connection: RawConnection, revision: Revision): Promise<Session> {
    connection.write(this.httpRequest("POST", "/mcp", {}, initialize(revision)))
    const { head } = expectStatus("initialize", await connection.readResponse(), 200)
    const id = /mcp-session-id: (\S+)/i.exec(head)?.[1]
    if (id === undefined) throw new Error(`initialize: the response has no Mcp-Session-Id: ${head}`)
    return { id, revision }
  }

  /** Opens a session with the whole handshake. */
  async open(connection: RawConnection, revision: Revision): Promise<Session> {
    const session = await this.initialize(connection, revision)
    connection.write(this.sessionPost(session, initialized))
    expectStatus("initialized", await connection.readResponse(), 202)
    return session
  }

  /** Posts a request and reads its response, which is not a stream. */
  async request(connection: RawConnection, session: Session, body: object): Promise<HttpResponse> {
    connection.write(this.sessionPost(session, body))
    return expectStatus("request", await connection.readResponse(), 200)
  }

  /** Posts a request whose response is a stream, and returns the text of the stream up to `mark`. */
  async stream(connection: RawConnection, session: Session, body: object, mark: string): Promise<string> {
    connection.write(this.sessionPost(session, body))
    expectStatus("stream", await connection.readHead(), 200)
    return connection.readUntil(mark)
  }

  /** Opens the standalone stream of a session, or resumes a stream after an event. */
  async get(connection: RawConnection, session: Session, lastEventId?: string): Promise<void> {
    const more = lastEventId === undefined ? {} : { "last-event-id": lastEventId }
    connection.write(this.httpRequest("GET", "/mcp", { ...this.#headers(session), ...more }))
    expectStatus("GET", await connection.readHead(), 200)
  }

  async delete(connection: RawConnection, session: Session): Promise<void> {
    connection.write(this.httpRequest("DELETE", "/mcp", this.#headers(session)))
    expectStatus("DELETE", await connection.readResponse(), 204)
  }

  // ---- 2024-11-05, HTTP+SSE

  /** Opens a session on an SSE stream, and returns the path for its POST requests. */
  async openSse(connection: RawConnection): Promise<string> {
    connection.write(this.httpRequest("GET", "/sse", {}))
    expectStatus("GET", await connection.readHead(), 200)
    await connection.readUntil("data: ")
    const path = (await connection.readUntil("\n")).trim()
    const posts = this.connect()
    await this.ssePost(posts, path, initialize("2024-11-05"))
    await connection.readUntil(`"result":`)
    await this.ssePost(posts, path, initialized)
    return path
  }

  async ssePost(connection: RawConnection, path: string, body: object): Promise<void> {
    connection.write(this.httpRequest("POST", path, {}, body))
    expectStatus("POST", await connection.readResponse(), 202)
  }

  // ---- 2026-07-28, stateless requests

  statelessPost(id: number, method: string, params: Readonly<Record<string, unknown>>): string {
    const name = params["name"]
    return this.httpRequest("POST", "/mcp", {
      "mcp-protocol-version": statelessRevision,
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : undefined)
    }, message(id, method, { ...params, _meta: { ...meta, progressToken: id } }))
  }

  /** Opens a notification stream and waits for its acknowledgement. */
  async subscribe(connection: RawConnection, notifications: object): Promise<void> {
    connection.write(this.statelessPost(1, "subscriptions/listen", { notifications }))
    expectStatus("subscriptions/listen", await connection.readHead(), 200)
    await connection.readUntil("notifications/subscriptions/acknowledged")
  }

  /** Calls a tool whose response is a stream, and reads the stream up to `mark`. */
  async statelessStream(connection: RawConnection, name: string, mark: string): Promise<void> {
    connection.write(this.statelessPost(1, "tools/call", { name, arguments: {} }))
    expectStatus("tools/call", await connection.readHead(), 200)
    await connection.readUntil(mark)
  }

  /** Calls a tool whose response is not a stream. */
  async statelessCall(connection: RawConnection, name: string): Promise<HttpResponse> {
    connection.write(this.statelessPost(1, "tools/call", { name, arguments: {} }))
    return expectStatus("tools/call", await connection.readResponse(), 200)
  }
}

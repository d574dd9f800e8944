/**
 * One client: it knows how to talk, in both eras, and leaves without a word.
 */
import { type Answer, type Farewell, Wire } from "./wire.ts"

/** Revisions of the session era that are spoken over Streamable HTTP. */
export type Revision = "2025-03-26" | "2025-06-18" | "2025-11-25"

const clientInfo = { name: "rude", version: "1.0.0" }
const capabilities = { sampling: {} }

const requestEra = "2026-07-28"

const meta = {
  "io.modelcontextprotocol/protocolVersion": requestEra,
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": capabilities
}

export const message = (id: number | undefined, method: string, params?: object): object => ({
  jsonrpc: "2.0",
  ...(id === undefined ? undefined : { id }),
  method,
  ...(params === undefined ? undefined : { params })
})

/** The call of a tool, which asks to be told of its progress. */
export const call = (id: number, name: string, more: object = {}): object =>
  message(id, "tools/call", { name, arguments: {}, _meta: { progressToken: id, ...more } })

/** The handshake's first message. */
export const initialize = (protocolVersion: string): object =>
  message(0, "initialize", { protocolVersion, capabilities, clientInfo })

export const initialized = message(undefined, "notifications/initialized")

/** A session, as its client knows it. */
export interface Session {
  readonly id: string
  readonly revision: Revision
}

const expect = (what: string, answer: Answer, status: number): Answer => {
  if (answer.status === status) return answer
  throw new Error(`${what}: ${answer.status}, not ${status}: ${answer.head} ${answer.body}`)
}

export class Visitor {
  /** Different for each that comes the same way. */
  readonly number: number
  /** Nobody else is called like this. */
  readonly #user: string
  readonly #port: number
  readonly #wires: Array<Wire> = []

  constructor(port: number, user: string, number: number) {
    this.#port = port
    this.#user = user
    this.number = number
  }

  connect(): Wire {
    const wire = new Wire(this.#port)
    this.#wires.push(wire)
    return wire
  }

  /** How this one leaves. */
  get farewell(): Farewell {
    return (["reset", "destroy", "end"] as const)[this.number % 3]!
  }

  /** Ends all of its connections. */
  async leave(): Promise<void> {
    await Promise.all(this.#wires.map((wire) => wire.leave(this.farewell)))
  }

  /** The text of a request. */
  text(verb: string, path: string, headers: Readonly<Record<string, string>>, body?: object): string {
    const json = body === undefined ? "" : JSON.stringify(body)
    const length = body === undefined ? "" : `content-type: application/json\r\ncontent-length: ${json.length}\r\n`
    const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("")
    const accept = verb === "GET" ? "text/event-stream" : "application/json, text/event-stream"
    const to = `host: 127.0.0.1:${this.#port}\r\nx-user: ${this.#user}`
    return `${verb} ${path} HTTP/1.1\r\n${to}\r\naccept: ${accept}\r\n${length}${more}\r\n${json}`
  }

  // ---- the session era

  #headers(session: Session): Record<string, string> {
    return { "mcp-session-id": session.id, "mcp-protocol-version": session.revision }
  }

  post(session: Session, body: object): string {
    return this.text("POST", "/mcp", this.#headers(session), body)
  }

  /** The handshake, but for its last message. */
  async begin(wire: Wire, revision: Revision): Promise<Session> {
    wire.write(this.text("POST", "/mcp", {}, initialize(revision)))
    const { head } = expect("initialize", await wire.answer(), 200)
    const id = /mcp-session-id: (\S+)/i.exec(head)?.[1]
    if (id === undefined) throw new Error(`initialize: there is no session: ${head}`)
    return { id, revision }
  }

  /** A session in use. */
  async open(wire: Wire, revision: Revision = "2025-11-25"): Promise<Session> {
    const session = await this.begin(wire, revision)
    wire.write(this.post(session, initialized))
    expect("initialized", await wire.answer(), 202)
    return session
  }

  /** Posts a request that is answered at once. */
  async ask(wire: Wire, session: Session, body: object): Promise<Answer> {
    wire.write(this.post(session, body))
    return expect("request", await wire.answer(), 200)
  }

  /** Posts a request that is answered with a stream, and waits for something on it. Answers what has come up to there. */
  async stream(wire: Wire, session: Session, body: object, mark: string): Promise<string> {
    wire.write(this.post(session, body))
    expect("stream", await wire.head(), 200)
    return wire.until(mark)
  }

  /** Listens to what belongs to no request, or goes on with a stream. */
  async listen(wire: Wire, session: Session, lastEventId?: string): Promise<void> {
    const more = lastEventId === undefined ? {} : { "last-event-id": lastEventId }
    wire.write(this.text("GET", "/mcp", { ...this.#headers(session), ...more }))
    expect("GET", await wire.head(), 200)
  }

  async delete(wire: Wire, session: Session): Promise<void> {
    wire.write(this.text("DELETE", "/mcp", this.#headers(session)))
    expect("DELETE", await wire.answer(), 204)
  }

  // ---- 2024-11-05

  /** Opens a session on a stream; answers the path to post to. */
  async legacy(wire: Wire): Promise<string> {
    wire.write(this.text("GET", "/sse", {}))
    expect("GET", await wire.head(), 200)
    await wire.until("data: ")
    const path = (await wire.until("\n")).trim()
    const beside = this.connect()
    await this.tell(beside, path, initialize("2024-11-05"))
    await wire.until(`"result":`)
    await this.tell(beside, path, initialized)
    return path
  }

  async tell(wire: Wire, path: string, body: object): Promise<void> {
    wire.write(this.text("POST", path, {}, body))
    expect("legacy POST", await wire.answer(), 202)
  }

  // ---- the request era

  alone(id: number, method: string, params: Readonly<Record<string, unknown>>): string {
    const name = params["name"]
    return this.text("POST", "/mcp", {
      "mcp-protocol-version": requestEra,
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : undefined)
    }, message(id, method, { ...params, _meta: { ...meta, progressToken: id } }))
  }

  /** A stream of notices, acknowledged. */
  async subscribe(wire: Wire, notifications: object): Promise<void> {
    wire.write(this.alone(1, "subscriptions/listen", { notifications }))
    expect("subscriptions/listen", await wire.head(), 200)
    await wire.until("notifications/subscriptions/acknowledged")
  }

  /** A call whose answer is a stream. */
  async aloneStream(wire: Wire, name: string, mark: string): Promise<void> {
    wire.write(this.alone(1, "tools/call", { name, arguments: {} }))
    expect("tools/call", await wire.head(), 200)
    await wire.until(mark)
  }

  /** A call that is answered at once. */
  async aloneCall(wire: Wire, name: string): Promise<Answer> {
    wire.write(this.alone(1, "tools/call", { name, arguments: {} }))
    return expect("tools/call", await wire.answer(), 200)
  }
}

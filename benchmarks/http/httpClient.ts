/**
 * Sends single requests: to open sessions, and to check a response completely.
 */
import { Agent, request as httpRequest } from "node:http"
import type { Socket } from "node:net"

export interface Request {
  readonly method: "GET" | "POST"
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Response {
  readonly status: number
  readonly type: string
  readonly session: string | undefined
  readonly body: string
  /** The size of the whole response in bytes. */
  readonly bytes: number
}

/** How long a response may take, in milliseconds. */
const responseTimeout = 30_000

const headersOf = (port: number, { body, headers, method }: Request): Readonly<Record<string, string | number>> => ({
  host: `127.0.0.1:${port}`,
  ...headers,
  ...(method === "POST" ? { "content-length": Buffer.byteLength(body) } : undefined)
})

/** The text of a whole request. */
export const textOf = (port: number, request: Request): string => {
  const lines = Object.entries(headersOf(port, request)).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${request.method} /mcp HTTP/1.1\r\n${lines.join("")}\r\n${request.body}`
}

export class HttpClient {
  readonly #port: number
  readonly #agent: Agent

  constructor(port: number, connections: number) {
    this.#port = port
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections })
  }

  send(request: Request): Promise<Response> {
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({
        agent: this.#agent,
        host: "127.0.0.1",
        port: this.#port,
        path: "/mcp",
        method: request.method,
        headers: headersOf(this.#port, request),
        timeout: responseTimeout
      })
      let before = 0
      let socket: Socket | undefined
      outgoing.once("socket", (assigned) => {
        socket = assigned
        before = assigned.bytesRead
      })
      outgoing.once("timeout", () => outgoing.destroy(new Error(`no response within ${responseTimeout} ms`)))
      outgoing.once("error", reject)
      outgoing.once("response", (incoming) => {
        let body = ""
        incoming.setEncoding("utf8")
        incoming.on("data", (chunk: string) => {
          body += chunk
        })
        incoming.once("error", reject)
        incoming.once("end", () =>
          resolve({
            status: incoming.statusCode!,
            type: incoming.headers["content-type"] ?? "",
            session: incoming.headers["mcp-session-id"] as string | undefined,
            body,
            bytes: socket!.bytesRead - before
          }))
      })
      outgoing.end(request.body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

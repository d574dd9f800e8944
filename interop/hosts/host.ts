/**
 * Official servers over HTTP, in the process of the tests: what arrives at one of them is noted, it can forget its sessions, and it can
 * be started anew on the same port.
 */
import { once } from "node:events"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import type { ServerAddress } from "../clients.ts"

/** A request as it arrived; `status` is 0 until it is answered. */
export interface Seen {
  readonly verb: string
  readonly headers: http.IncomingHttpHeaders
  readonly status: number
}

export interface Host {
  readonly address: ServerAddress
  readonly port: number
  readonly seen: ReadonlyArray<Seen>
  /** How many sessions it keeps; undefined where nobody can tell. */
  readonly sessions: (() => number) | undefined
  /** Ends it, and starts it on the same port, without what it knew. */
  readonly restart: () => Promise<void>
  readonly close: () => Promise<void>
}

/** One life of a server, from a start to the next. */
export interface Life {
  readonly listener: http.RequestListener
  readonly sessions?: () => number
  readonly end?: () => void | Promise<void>
}

/** The message of a POST. */
export const bodyOf = async (request: http.IncomingMessage): Promise<unknown> => {
  if (request.method !== "POST") return undefined
  let text = ""
  for await (const chunk of request.setEncoding("utf8")) text += chunk
  return JSON.parse(text)
}

export const refuse = (response: http.ServerResponse, status: number, message: string): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }))
}

const listen = async (life: Life, port: number, seen: Array<Seen>): Promise<http.Server> => {
  const server = http.createServer()
  server.on("request", (request, response) => {
    seen.push({
      verb: request.method!,
      headers: request.headers,
      get status() {
        return response.headersSent ? response.statusCode : 0
      }
    })
  })
  server.on("request", life.listener)
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  return server
}

const stop = async (life: Life, server: http.Server): Promise<void> => {
  const closed = once(server, "close")
  server.close()
  server.closeAllConnections()
  await life.end?.()
  await closed
}

/** Serves on a port that is free. */
export const host = async (
  begin: () => Life | Promise<Life>,
  { path = "/mcp", transport = "http" }: { readonly path?: string; readonly transport?: ServerAddress["transport"] } =
    {}
): Promise<Host> => {
  const seen: Array<Seen> = []
  let life = await begin()
  let server = await listen(life, 0, seen)
  const { port } = server.address() as AddressInfo
  return {
    address: { transport, url: `http://127.0.0.1:${port}${path}` },
    port,
    seen,
    sessions: life.sessions === undefined ? undefined : () => life.sessions!(),
    restart: async () => {
      await stop(life, server)
      life = await begin()
      server = await listen(life, port, seen)
    },
    close: () => stop(life, server)
  }
}

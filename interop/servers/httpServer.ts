/**
 * Runs an official server over HTTP in the test process. It records its requests, and can be restarted on the same port
 * without its sessions.
 */
import { once } from "node:events"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import type { ServerAddress } from "../testClient.ts"

/** A received request. `status` is 0 until the response has started. */
export interface ReceivedRequest {
  readonly verb: string
  readonly headers: http.IncomingHttpHeaders
  readonly status: number
}

export interface HttpServer {
  readonly address: ServerAddress
  readonly port: number
  readonly requests: ReadonlyArray<ReceivedRequest>
  /** The number of open sessions; undefined if the server does not expose it. */
  readonly sessions: (() => number) | undefined
  /** Stops the server and starts a new instance on the same port. */
  readonly restart: () => Promise<void>
  readonly close: () => Promise<void>
}

/** One instance of a server, between two restarts. */
export interface ServerInstance {
  readonly listener: http.RequestListener
  readonly sessions?: () => number
  readonly end?: () => void | Promise<void>
}

/** Parses the body of a POST request. */
export const readBody = async (request: http.IncomingMessage): Promise<unknown> => {
  if (request.method !== "POST") return undefined
  let text = ""
  for await (const chunk of request.setEncoding("utf8")) text += chunk
  return JSON.parse(text)
}

/** Sends a JSON-RPC error without an id. */
export const sendError = (response: http.ServerResponse, status: number, message: string): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }))
}

const listen = async (
  instance: ServerInstance,
  port: number,
  requests: Array<ReceivedRequest>
): Promise<http.Server> => {
  const server = http.createServer()
  server.on("request", (request, response) => {
    requests.push({
      verb: request.method!,
      headers: request.headers,
      get status() {
        return response.headersSent ? response.statusCode : 0
      }
    })
  })
  server.on("request", instance.listener)
  server.listen(port, "127.0.0.1")
  await once(server, "listening")
  return server
}

const stop = async (instance: ServerInstance, server: http.Server): Promise<void> => {
  const closed = once(server, "close")
  server.close()
  server.closeAllConnections()
  await instance.end?.()
  await closed
}

/** Starts a server on a free port. `create` makes an instance. */
export const startHttpServer = async (
  create: () => ServerInstance | Promise<ServerInstance>,
  { path = "/mcp", transport = "http" }: { readonly path?: string; readonly transport?: ServerAddress["transport"] } =
    {}
): Promise<HttpServer> => {
  const requests: Array<ReceivedRequest> = []
  let instance = await create()
  let server = await listen(instance, 0, requests)
  const { port } = server.address() as AddressInfo
  return {
    address: { transport, url: `http://127.0.0.1:${port}${path}` },
    port,
    requests,
    sessions: instance.sessions === undefined ? undefined : () => instance.sessions!(),
    restart: async () => {
      await stop(instance, server)
      instance = await create()
      server = await listen(instance, port, requests)
    },
    close: () => stop(instance, server)
  }
}

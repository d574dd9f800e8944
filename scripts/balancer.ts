/**
 * A load balancer for tests: gives each HTTP request to the next of several servers, as a proxy without affinity does. A
 * server that refuses the connection is skipped.
 */
import { once } from "node:events"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as send,
  type ServerResponse
} from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"

/** A request whose server has ended before its answer was complete. */
export interface LostRequest {
  readonly port: number
  readonly method: string
  readonly body: string
}

export interface Balancer {
  readonly port: number
  /** The statuses of the answers. */
  readonly statuses: ReadonlyArray<number>
  readonly lost: ReadonlyArray<LostRequest>
  readonly close: () => Promise<void>
}

/**
 * The headers that concern the message, without those of the connection. With the `Keep-Alive` of a server, a client would
 * use its connection to the balancer for as long as the server keeps its own.
 */
const forwarded = (all: IncomingHttpHeaders): IncomingHttpHeaders => {
  const { connection: _, "keep-alive": __, "transfer-encoding": ___, ...headers } = all
  return headers
}

/**
 * Starts a balancer of servers at ports of loopback, on a free port of loopback. It uses `ports` as they are when a request
 * arrives.
 */
export const startBalancer = async (ports: ReadonlyArray<number>): Promise<Balancer> => {
  const statuses: Array<number> = []
  const lost: Array<LostRequest> = []
  let turn = 0

  const pass = (incoming: IncomingMessage, body: Buffer, outgoing: ServerResponse, attempts: number): void => {
    const port = ports[turn++ % ports.length]!
    const { headers, method = "GET", url } = incoming
    const given = { host: "127.0.0.1", port, method, path: url, headers: forwarded(headers), agent: false }
    const request = send(given, (response) => {
      statuses.push(response.statusCode!)
      outgoing.writeHead(response.statusCode!, forwarded(response.headers))
      outgoing.flushHeaders()
      response.on("error", lose).pipe(outgoing)
    })
    const lose = (): void => {
      // Otherwise the client has left.
      if (!outgoing.destroyed) lost.push({ port, method, body: body.toString() })
      outgoing.destroy()
    }
    request.on("error", ({ code }: NodeJS.ErrnoException) => {
      if (code === "ECONNREFUSED" && attempts > 1) pass(incoming, body, outgoing, attempts - 1)
      else lose()
    })
    outgoing.on("close", () => request.destroy())
    request.end(body)
  }

  // Its clients close idle connections. If the balancer did, a client could send a request on one at that moment.
  const server = createServer({ keepAliveTimeout: 0 }, (incoming, outgoing) => {
    buffer(incoming).then((body) => pass(incoming, body, outgoing, ports.length), () => outgoing.destroy())
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as AddressInfo).port,
    statuses,
    lost,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    }
  }
}

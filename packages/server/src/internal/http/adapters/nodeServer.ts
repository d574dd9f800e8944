/**
 * A `node:http` server that has an endpoint to itself: how it is hardened, and how it ends.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"

/** The bounds of the server, in milliseconds; the public options tell their defaults. */
export interface Bounds {
  readonly headersTimeout: number
  readonly requestTimeout: number
  readonly keepAliveTimeout: number
  readonly maxConnections: number
}

// How long the last bytes of the answers may take to leave.
const flush = 2_000

/** Whether an answer has begun on a connection. Node's own listener asks the same; there is no public way. */
const isAnswering = (socket: Duplex): boolean =>
  (socket as { readonly _httpMessage?: ServerResponse | null | undefined })._httpMessage?.headersSent === true

/**
 * What Node refuses before it is a request: the refusal is a JSON-RPC error like any other. Behind a request whose answer has begun
 * it would be taken for a part of that answer, so there is none.
 */
const refuseBytes = (error: Error & { readonly code?: string | undefined }, socket: Duplex): void => {
  if (!socket.writable || error.code === "ECONNRESET" || isAnswering(socket)) return void socket.destroy()
  const [status, reason] = error.code === "HPE_HEADER_OVERFLOW"
    ? [431, "Request Header Fields Too Large"]
    : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
    ? [408, "Request Timeout"]
    : [400, "Bad Request"]
  const body = JSON.stringify({ jsonrpc: "2.0", error: { code: -32600, message: reason } })
  const head = `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`
  socket.end(`${head}connection: close\r\n\r\n${body}`, () => socket.destroy())
}

/** A server that does not listen yet, and its connections. */
export interface Made {
  readonly server: Server
  readonly sockets: ReadonlySet<Socket>
}

/** Makes a server that does not listen yet. */
export const make = (
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  { headersTimeout, keepAliveTimeout, maxConnections, requestTimeout }: Bounds
): Made => {
  const connectionsCheckingInterval = Math.min(headersTimeout, 5_000)
  // Not imported: that reads all exports of `node:http`, of which one loads the whole of `fetch`.
  const { createServer } = process.getBuiltinModule("node:http")
  const server = createServer({ headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval }, handle)
  server.maxConnections = maxConnections
  // Node does not count a connection that has sent nothing yet as idle, and would wait for it in the end.
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  // Without a listener of its own, Node tells a client to send its body before anybody has looked at the head.
  server.on("checkContinue", handle)
  server.on("clientError", refuseBytes)
  return { server, sockets }
}

/** Why it cannot listen, in one line for whoever started it. */
const refused = (cause: Error & { readonly code?: string | undefined }, port: number, host: string): TransportError => {
  const why = cause.code === "EADDRINUSE" ? "the port is taken (EADDRINUSE)" : cause.message
  return new TransportError({ reason: new OpenFailed({ message: `Cannot listen on ${host}:${port}: ${why}`, cause }) })
}

/** Listens until the scope closes. Fails with `TransportError` `Open` where it cannot. */
export const listen = (server: Server, port: number, host: string): Effect.Effect<AddressInfo, TransportError> =>
  Effect.callback((resume) => {
    const failed = (cause: Error): void => resume(Effect.fail(refused(cause, port, host)))
    server.once("error", failed)
    try {
      server.listen(port, host, () => {
        server.off("error", failed)
        // What goes wrong with the listening socket later (no file descriptors left) passes by; nobody is to die of it.
        server.on("error", () => {})
        resume(Effect.succeed(server.address() as AddressInfo))
      })
    } catch (error) {
      // It is no port.
      failed(error as Error)
    }
  })

/** Accepts nothing more, lets `end` finish what there is, and closes the connections once the last bytes have left. */
export const close = (server: Server, sockets: Iterable<Socket>, end: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.suspend(() => {
    let closed = false
    let hear: (() => void) | undefined
    // Closes idle connections too.
    server.close(() => {
      closed = true
      hear?.()
    })
    const gone = Effect.callback<void>((resume) => {
      // All is said: each connection is closed as soon as it was taken.
      for (const socket of sockets) socket.destroySoon()
      if (closed) return resume(Effect.void)
      hear = () => resume(Effect.void)
    })
    return Effect.andThen(
      Effect.andThen(end, Effect.timeoutOption(gone, flush)),
      Effect.sync(() => server.closeAllConnections())
    )
  })

/** The address for people. */
export const urlOf = ({ address, family, port }: AddressInfo, path: string): string => {
  const name = address === "127.0.0.1" || address === "::1"
    ? address
    : address === "::" || address === "0.0.0.0"
    ? "localhost"
    : address
  return `http://${family === "IPv6" && name !== "localhost" ? `[${name}]` : name}:${port}${path}`
}

/** Whether an address stands for every one of this machine's. */
export const isWildcard = (host: string): boolean => host === "" || host === "0.0.0.0" || host === "::"

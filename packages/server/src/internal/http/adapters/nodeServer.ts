/**
 * A `node:http` server for one endpoint: its bounds, and its shutdown.
 */
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"

/** The bounds of the server, in milliseconds; the defaults are documented at the public options. */
export interface Bounds {
  readonly headersTimeout: number
  readonly requestTimeout: number
  readonly keepAliveTimeout: number
  readonly maxConnections: number
}

// How long the last bytes of the answers may take to be sent.
const flushTimeout = 2_000

/** Whether an answer has begun on a connection. Node's own listener reads the same field; there is no public API. */
const isAnswering = (socket: Duplex): boolean =>
  (socket as { readonly _httpMessage?: ServerResponse | null | undefined })._httpMessage?.headersSent === true

/**
 * Answers bytes that Node cannot parse with a JSON-RPC error. If another answer has begun on the connection, the error
 * would be read as a part of it, so nothing is sent.
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

/** Makes a server that is not listening yet, and the set of its connections. */
export const make = (
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  { headersTimeout, keepAliveTimeout, maxConnections, requestTimeout }: Bounds
) => {
  const connectionsCheckingInterval = Math.min(headersTimeout, 5_000)
  // Not an `import`: that reads all exports of `node:http`, and one of them loads `fetch`.
  const { createServer } = process.getBuiltinModule("node:http")
  const server = createServer({ headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval }, handle)
  server.maxConnections = maxConnections
  // Node does not count a connection without a request as idle, and would wait for it during the shutdown.
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  // Without this listener, Node answers `Expect: 100-continue` before the head is validated.
  server.on("checkContinue", handle)
  server.on("clientError", refuseBytes)
  return { server, sockets }
}

/** Why the server cannot listen, in one line for the user who started it. */
const refused = (cause: Error & { readonly code?: string | undefined }, port: number, host: string): TransportError => {
  const why = cause.code === "EADDRINUSE" ? "the port is taken (EADDRINUSE)" : cause.message
  return new TransportError({ reason: new OpenFailed({ message: `Cannot listen on ${host}:${port}: ${why}`, cause }) })
}

/** Listens until the scope closes. Fails with `TransportError` `OpenFailed` if it cannot. */
export const listen = (server: Server, port: number, host: string): Effect.Effect<AddressInfo, TransportError> =>
  Effect.callback((resume) => {
    const failed = (cause: Error): void => resume(Effect.fail(refused(cause, port, host)))
    server.once("error", failed)
    try {
      server.listen(port, host, () => {
        server.off("error", failed)
        // Later errors of the listening socket (no file descriptors left) are temporary, and must not end the process.
        server.on("error", () => {})
        resume(Effect.succeed(server.address() as AddressInfo))
      })
    } catch (error) {
      // The port is not valid.
      failed(error as Error)
    }
  })

/** Stops accepting connections, runs `end`, and closes the connections when their last bytes were sent. */
export const close = (server: Server, sockets: Iterable<Socket>, end: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.suspend(() => {
    let closed = false
    let onClosed: (() => void) | undefined
    // Closes idle connections too.
    server.close(() => {
      closed = true
      onClosed?.()
    })
    const gone = Effect.callback<void>((resume) => {
      // Everything was written: each connection is closed as soon as its data was sent.
      for (const socket of sockets) socket.destroySoon()
      if (closed) return resume(Effect.void)
      onClosed = () => resume(Effect.void)
    })
    return Effect.andThen(
      Effect.andThen(end, Effect.timeoutOption(gone, flushTimeout)),
      Effect.sync(() => server.closeAllConnections())
    )
  })

/** The URL of the endpoint. */
export const urlOf = ({ address, family, port }: AddressInfo, path: string): string => {
  const name = isWildcard(address) ? "localhost" : address
  return `http://${family === "IPv6" && name !== "localhost" ? `[${name}]` : name}:${port}${path}`
}

/** Whether the server listens on all addresses of the machine. */
export const isWildcard = (host: string): boolean => host === "" || host === "0.0.0.0" || host === "::"

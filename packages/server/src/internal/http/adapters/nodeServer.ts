/**
 * A `node:http` server for one endpoint: its bounds, and its shutdown.
 */
import * as Defaults from "@skein/runtime/Options"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { AddressInfo, Server as NetServer, Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Bounds, type FixedBounds } from "../../base/fixedBounds.ts"
import { loopback } from "../access/options.ts"
import { answerOf, isIdle, makeConnections } from "./nodeConnections.ts"

/** The bounds of a listener, which shares none of them with its endpoint. */
export interface Limits {
  /**
   * How long a whole request may take to arrive: 60 seconds by default. Then the answer is 408, and the connection is
   * closed. Raise it with `maxMessageBytes`, for clients that upload slowly.
   */
  readonly requestTimeout?: Duration.Input | undefined
  /**
   * How long a connection may be idle between requests: 65 seconds by default, longer than the usual 60 seconds of
   * proxies. Raise it above the idle time of your proxy, which may otherwise send a request on a closed connection.
   */
  readonly keepAliveTimeout?: Duration.Input | undefined
  /**
   * The number of connections: 20,000 by default. At the bound the address with the most connections gives up its oldest
   * one without a request in progress. If it has none, and has less than twice as many as the address of the new
   * connection, the new one is closed immediately. Raise it with the number of sockets that the process may open.
   */
  readonly maxConnections?: number | undefined
}

/** The connections with a refusal that waits for earlier answers. */
const refusing = /* @__PURE__ */ new WeakSet<Duplex>()

/**
 * Sends a JSON-RPC error for bytes that are not passed to the handler, and closes the connection. The answers to earlier
 * requests are sent before: "a server MUST send the corresponding responses in the same order" (RFC 9112, 9.3.2).
 */
const refuse = (socket: Duplex, status: number, reason: string): void => {
  const answer = answerOf(socket)
  if (answer === undefined || (!answer.headersSent && !answer.req.complete)) return send(socket, status, reason)
  // The request was refused already, and its body cannot be read further.
  if (!answer.req.complete) return (socket as Socket).destroySoon()
  // A stream may be open for long.
  if (answer.headersSent && !answer.writableEnded) return void socket.destroy()
  if (refusing.has(socket)) return
  refusing.add(socket)
  answer.once("finish", () => {
    refusing.delete(socket)
    if (socket.writable) refuse(socket, status, reason)
  })
}

const send = (socket: Duplex, status: number, reason: string): void => {
  const body = JSON.stringify({ jsonrpc: "2.0", error: { code: -32600, message: reason } })
  const head = `HTTP/1.1 ${status} ${reason}\r\ndate: ${new Date().toUTCString()}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
  socket.end(`${head}connection: close\r\n\r\n${body}`, () => socket.destroy())
}

interface ParseError extends Error {
  readonly code?: string | undefined
  readonly bytesParsed?: number | undefined
  readonly rawPacket?: Buffer | undefined
}

/** Whether the parser has stopped within the first line of a connection: then the target is too long. */
const isFirstLine = ({ bytesParsed, rawPacket }: ParseError, socket: Duplex): boolean =>
  rawPacket !== undefined && rawPacket.length === (socket as Socket).bytesRead &&
  !rawPacket.subarray(0, bytesParsed).includes(10)

/** Whether the parser has stopped after a version. It also stops at a line without a version. */
const isAfterVersion = ({ bytesParsed = 0, rawPacket }: ParseError): boolean =>
  rawPacket !== undefined &&
  /^HTTP\/\d\.\d$/.test(rawPacket.toString("latin1", Math.max(0, bytesParsed - 8), bytesParsed))

/** The status of bytes that Node cannot parse. */
const statusOf = (error: ParseError, socket: Duplex): readonly [number, string] => {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return isFirstLine(error, socket) ? [414, "URI Too Long"] : [431, "Request Header Fields Too Large"]
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return [413, "Content Too Large"]
    case "HPE_PAUSED_H2_UPGRADE":
      return [505, "HTTP Version Not Supported"]
    case "HPE_INVALID_VERSION":
      return isAfterVersion(error) ? [505, "HTTP Version Not Supported"] : [400, "Bad Request"]
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return [408, "Request Timeout"]
    default:
      return [400, "Bad Request"]
  }
}

/** Answers bytes that Node cannot parse. */
const refuseBytes = (error: ParseError, socket: Duplex): void => {
  // The client has asked to close the connection, and "MUST NOT send further requests" (RFC 9112, 9.6). Its last answer
  // is still sent.
  if (error.code === "HPE_CLOSED_CONNECTION") return
  if (!socket.writable || error.code === "ECONNRESET") socket.destroy()
  else refuse(socket, ...statusOf(error, socket))
}

const ignore = (): void => {}

/**
 * Answers CONNECT, which Node does not pass to the handler. Node has removed its own listeners from the socket, and an
 * error without a listener, of a client that has reset its connection, would end the process.
 */
const refuseTunnel = (_request: IncomingMessage, socket: Duplex): void => {
  socket.on("error", ignore)
  refuse(socket, 501, "Not Implemented")
}

/** The events of `node:http` that pass a request. */
const requestEvents = ["request", "checkContinue", "checkExpectation"] as const

/** Makes a server that is not listening yet, and its connections. */
const make = (
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  limits: Limits,
  { headersTimeout }: FixedBounds
) => {
  const { keepAliveTimeout, maxConnections, requestTimeout } = Defaults.resolve<Limits>(
    limits,
    { maxConnections: 20_000 },
    { requestTimeout: 60_000, keepAliveTimeout: 65_000 }
  )
  const connectionsCheckingInterval = Math.min(headersTimeout, 5_000)
  // Not an `import`: that reads all exports of `node:http`, and one of them loads `fetch`.
  const { createServer } = process.getBuiltinModule("node:http")
  const server = createServer({
    headersTimeout,
    requestTimeout,
    keepAliveTimeout,
    connectionsCheckingInterval,
    // The handler checks it, and answers with a JSON-RPC error.
    requireHostHeader: false
  }, handle)
  // Node does not count a connection without a request as idle, and would wait for it during the shutdown. At
  // `server.maxConnections` it would close a new connection, and not one of the client with the most.
  const connections = makeConnections(maxConnections)
  server.on("connection", (socket) => connections.add(socket))
  // Without this listener, Node answers `Expect: 100-continue` before the head is validated.
  for (const event of requestEvents) if (event !== "request") server.on(event, handle)
  server.on("connect", refuseTunnel)
  server.on("clientError", refuseBytes)
  return { server, connections }
}

/**
 * Why the server cannot listen, in one line for the user who started it. `variable` is the variable of the environment
 * that sets the port, if there is one.
 */
const refused = (
  cause: Error & { readonly code?: string | undefined },
  port: number,
  host: string,
  variable: string | undefined
): TransportError => {
  const how = variable === undefined ? "" : ` (${variable})`
  const why = cause.code === "EADDRINUSE"
    ? `the port is taken (EADDRINUSE): stop the other program, or set another port${how}`
    : cause.message
  return new TransportError({ reason: new OpenFailed({ message: `Cannot listen on ${host}:${port}: ${why}`, cause }) })
}

/**
 * Listens. Fails with `TransportError` `OpenFailed` if it cannot. Of an `exclusive` address the workers of `node:cluster` have
 * one each.
 */
export const listen = (
  server: NetServer,
  port: number,
  host: string,
  variable?: string,
  exclusive = false
): Effect.Effect<AddressInfo, TransportError> =>
  Effect.callback((resume) => {
    const failed = (cause: Error): void => resume(Effect.fail(refused(cause, port, host, variable)))
    server.once("error", failed)
    try {
      server.listen({ port, host, exclusive }, () => {
        server.off("error", failed)
        // Later errors of the listening socket (no file descriptors left) are temporary, and must not end the process.
        server.on("error", ignore)
        resume(Effect.succeed(server.address() as AddressInfo))
      })
    } catch (error) {
      // The port is not valid.
      failed(error as Error)
    }
  })

/** Listens for a moment. Fails as {@link listen} does, if that is not possible. */
export const tryPort = (
  port: number,
  host: string,
  variable: string | undefined
): Effect.Effect<void, TransportError> =>
  Effect.suspend(() => {
    const server = process.getBuiltinModule("node:http").createServer()
    return Effect.andThen(
      listen(server, port, host, variable),
      Effect.callback((resume) => void server.close(() => resume(Effect.void)))
    )
  })

// The most turns of the event loop in which the connections of the kernel's queue are accepted, and how many turns without
// a connection show that it is empty.
const maxAcceptTurns = 1_000
const quietTurns = 3

const nextTurn = /* @__PURE__ */ Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

/**
 * Closes the listening socket, and calls `done` when the connections are closed, too. The kernel resets the connections in
 * its queue then, and with them the requests that their clients have sent. So the queue is made as short as possible first:
 * clients that are not in it begin again after a second, and then their connection is refused, which proxies retry. There is
 * no public API to do this. Other runtimes close the socket only.
 */
const stopListening = (server: Server, done: () => void): Effect.Effect<void> =>
  Effect.gen(function*() {
    const net = process.getBuiltinModule("node:net")
    if (!(server instanceof net.Server)) return void (server as Server).close(done)
    const { _handle: handle } = server as Server & {
      readonly _handle?: { readonly listen?: (backlog: number) => number } | null
    }
    handle?.listen?.(0)
    let quiet = 0
    const accepted = () => void (quiet = 0)
    server.on("connection", accepted)
    for (let turn = 0; quiet < quietTurns && turn < maxAcceptTurns; turn++, quiet++) yield* nextTurn
    server.off("connection", accepted)
    // Not `server.close`: that of `node:http` closes idle connections, on which a request may be on its way.
    net.Server.prototype.close.call(server, done)
  })

/**
 * Waits until the requests that clients have sent, or are sending, have arrived. A connection without a request is closed when
 * it was idle for some time: its client may send one before it learns of the end. A client that has just connected does so
 * almost certainly, and a proxy under load uses each of its connections soon. The answer to that request closes the
 * connection.
 */
const settle = (
  server: Server,
  sockets: ReadonlyMap<Socket, unknown>,
  { busyCloseDelay, firstRequestDelay, idleCloseDelay }: FixedBounds
): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const waiting = new Set<Socket>()
    // Until then further requests are likely.
    let busyUntil = 0
    const arrived = (socket: Socket): void => {
      if (waiting.delete(socket) && waiting.size === 0) resume(Effect.void)
    }
    const receive = (request: IncomingMessage): void => {
      busyUntil = performance.now() + busyCloseDelay
      request.socket.setTimeout(0)
      request.once("end", () => arrived(request.socket))
    }
    // A process that was busy finds that the time of a connection has passed before it reads the request that has arrived on
    // it meanwhile. So the turn of the event loop ends first.
    const close = (socket: Socket): void => {
      const { bytesRead } = socket
      setImmediate(() => {
        if (!waiting.has(socket) || socket.bytesRead !== bytesRead) return
        const left = busyUntil - performance.now()
        if (left > 0) socket.setTimeout(left)
        else socket.destroy()
      })
    }
    for (const socket of sockets.keys()) {
      if (!isIdle(socket)) continue
      waiting.add(socket)
      socket.once("close", () => arrived(socket))
      const answer = answerOf(socket)
      if (answer === undefined) socket.setTimeout(socket.bytesRead === 0 ? firstRequestDelay : idleCloseDelay)
      else answer.req.once("end", () => arrived(socket))
    }
    for (const event of requestEvents) server.on(event, receive)
    // Without a listener Node closes the connection at once.
    server.on("timeout", close)
    if (waiting.size === 0) resume(Effect.void)
    return Effect.sync(() => {
      for (const event of requestEvents) server.off(event, receive)
      server.off("timeout", close)
    })
  })

/**
 * Stops accepting connections, lets the requests on the open ones arrive, runs `end`, and closes the connections when their
 * last bytes were sent.
 */
const close = (
  server: Server,
  sockets: ReadonlyMap<Socket, unknown>,
  { end, shared }: Listener,
  bounds: FixedBounds
): Effect.Effect<void> =>
  Effect.gen(function*() {
    const closed = Latch.makeUnsafe(false)
    // A proxy whose connections stay open has no reason to open another one, which the kernel could reset.
    shared.closing = false
    yield* stopListening(server, () => closed.openUnsafe())
    shared.closing = true
    yield* Effect.timeoutOption(settle(server, sockets, bounds), bounds.flushTimeout)
    yield* end
    // Everything was written: each connection is closed as soon as its data was sent.
    for (const socket of Array.from(sockets.keys())) socket.destroySoon()
    yield* Effect.timeoutOption(closed.await, bounds.flushTimeout)
    server.closeAllConnections()
    // Ends the timer of `node:http`, too.
    server.close()
  })

/** Where a server listens, and what it answers. */
export interface Listener {
  readonly host: string
  readonly port: number
  readonly limits: Limits | undefined
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** Whether each answer closes its connection. It is set when the server does not listen any longer. */
  readonly shared: { closing: boolean }
  /** Runs when the scope closes, while the server still listens. */
  readonly beforeEnd: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>
  /** Runs when the server does not listen any longer, before its connections are closed. */
  readonly end: Effect.Effect<void>
}

/** Listens until the scope closes. Fails with `TransportError` `OpenFailed` if it cannot. */
export const serve = (listener: Listener): Effect.Effect<AddressInfo, TransportError, Scope.Scope> =>
  Effect.flatMap(Bounds, (bounds) => {
    const { beforeEnd, handle, host, limits = {}, port } = listener
    const { connections, server } = make(handle, limits, bounds)
    return Effect.acquireRelease(
      listen(server, port, host),
      (_, exit) => Effect.andThen(beforeEnd(exit), close(server, connections.sockets, listener, bounds))
    )
  })

/** The names in `Host` that a server on this address accepts by default. */
export const allowedHostsOf = (host: string): ReadonlyArray<string> =>
  loopback.includes(host) || isWildcard(host) ? loopback : [...loopback, host.includes(":") ? `[${host}]` : host]

/** The URL of the endpoint. */
export const urlOf = ({ address, family, port }: AddressInfo, path: string): string => {
  const name = isWildcard(address) ? "localhost" : address
  return `http://${family === "IPv6" && name !== "localhost" ? `[${name}]` : name}:${port}${path}`
}

/** Whether the server listens on all addresses of the machine. */
const isWildcard = (host: string): boolean => host === "" || host === "0.0.0.0" || host === "::"

/** Whether a path is for the routes: it is not among those of the endpoint. */
export const isRouteBeside = (paths: ReadonlyArray<string>): (path: string) => boolean => {
  const exact = new Set(paths)
  const prefixes = paths.filter((path) => path.endsWith("/*")).map((path) => path.slice(0, -1))
  return (path) =>
    path.startsWith("/") && !exact.has("*") && !exact.has(path) && !prefixes.some((prefix) => path.startsWith(prefix))
}

/** Logs that the server shuts down. */
export const logShutdown = (
  { inFlightRequests, sessions }: { readonly inFlightRequests: number; readonly sessions: number },
  drainDelay: number
): Effect.Effect<void> => {
  const delay = drainDelay === 0 ? "" : `, drainDelay: ${drainDelay} ms`
  return Effect.logInfo(`Shutting down (requests: ${inFlightRequests}, sessions: ${sessions}${delay})`)
}

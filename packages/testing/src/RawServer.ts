/**
 * Servers of plain `node:http` and `node:net` on a free port of 127.0.0.1, for tests that write every byte of a
 * response themselves. Use `ScriptedHttpServer` if whole responses and events are enough.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Http from "node:http"
import * as Net from "node:net"

/** A server, and the connections that it accepted. */
export interface RawServer<S extends Net.Server = Net.Server> {
  /** The URL of the port, with the path `/mcp`. */
  readonly url: URL
  /** The server of Node. */
  readonly server: S
  /** The connections that were accepted, in order, including those that are closed. */
  readonly sockets: ReadonlyArray<Net.Socket>
  /** Waits until every connection that was accepted so far is closed. */
  readonly closed: Effect.Effect<void>
}

const listen = <S extends Net.Server>(server: S): Effect.Effect<RawServer<S>, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback((resume) => {
      const sockets: Array<Net.Socket> = []
      server.on("connection", (socket) => {
        sockets.push(socket)
        // A client may reset its connection.
        socket.on("error", () => {})
      })
      const closed = Effect.promise(() =>
        Promise.all(
          sockets.map((socket) =>
            socket.destroyed ? undefined : new Promise((resolve) => socket.once("close", resolve))
          )
        )
      )
      server.once("error", (error) => resume(Effect.die(error)))
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as Net.AddressInfo
        const url = new URL(`http://127.0.0.1:${port}/mcp`)
        resume(Effect.succeed({ url, server, sockets, closed: Effect.asVoid(closed) }))
      })
    }),
    ({ server, sockets }) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  )

/**
 * A server of `node:http`, without a keep-alive timeout. The scope closes it with its connections. Dies if no port can
 * be opened.
 *
 * @example
 * const { url } = yield* RawServer.http((request, response) => response.writeHead(503).end())
 */
export const http = (listener: Http.RequestListener): Effect.Effect<RawServer<Http.Server>, never, Scope.Scope> =>
  listen(Http.createServer({ keepAliveTimeout: 0 }, listener))

/**
 * A server of `node:net`, whose listener writes bytes. The scope closes it with its connections. Dies if no port can be
 * opened.
 *
 * @example
 * const { url } = yield* RawServer.tcp((socket) => socket.end("HTTP/1.1 200 OK\r\n"))
 */
export const tcp = (listener: (socket: Net.Socket) => void): Effect.Effect<RawServer, never, Scope.Scope> =>
  listen(Net.createServer(listener))

/** Reads the body of a request as UTF-8. Rejects if the client closes the connection before its end. */
export const readBody = async (request: Http.IncomingMessage): Promise<string> => {
  let body = ""
  for await (const chunk of request.setEncoding("utf8")) body += chunk
  return body
}

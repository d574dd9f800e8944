/** Servers of plain `node:http` and `node:net` on a port of loopback, closed with the scope. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Http from "node:http"
import * as Net from "node:net"

export interface Raw<S> {
  readonly url: URL
  readonly server: S
  /** The connections that were ever made, in order. */
  readonly sockets: ReadonlyArray<Net.Socket>
  /** Settles when every connection that was ever made is closed. */
  readonly closed: Effect.Effect<void>
}

const opened = <S extends Net.Server>(server: S): Effect.Effect<Raw<S>, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback((resume) => {
      const sockets: Array<Net.Socket> = []
      server.on("connection", (socket) => {
        sockets.push(socket)
        socket.on("error", () => {})
      })
      const closed = Effect.promise(() =>
        Promise.all(
          sockets.map((socket) =>
            socket.destroyed ? undefined : new Promise((resolve) => socket.once("close", resolve))
          )
        )
      )
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as Net.AddressInfo
        resume(
          Effect.succeed({
            server,
            sockets,
            closed: Effect.asVoid(closed),
            url: new URL(`http://127.0.0.1:${port}/mcp`)
          })
        )
      })
    }),
    ({ server, sockets }) =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  )

/** A server of `node:http`. */
export const http = (handler: Http.RequestListener): Effect.Effect<Raw<Http.Server>, never, Scope.Scope> =>
  opened(Http.createServer({ keepAliveTimeout: 0 }, handler))

/** A server of bytes. */
export const tcp = (handler: (socket: Net.Socket) => void): Effect.Effect<Raw<Net.Server>, never, Scope.Scope> =>
  opened(Net.createServer(handler))

/** The body of a request. */
export const bodyOf = async (request: Http.IncomingMessage): Promise<string> => {
  let body = ""
  for await (const chunk of request.setEncoding("utf8")) body += chunk
  return body
}

/**
 * A TCP proxy on this machine that can cut its connections, to simulate a network failure.
 */
import { once } from "node:events"
import * as net from "node:net"

export interface TcpProxy {
  /** The URL of a server through the proxy. */
  readonly proxied: (url: string) => string
  /** Cuts all connections, and holds new ones back until the returned function is called. */
  readonly cut: () => () => void
  readonly close: () => Promise<void>
}

export const tcpProxy = async (port: number): Promise<TcpProxy> => {
  const sockets = new Set<net.Socket>()
  let open = Promise.resolve()
  const track = (socket: net.Socket, other: net.Socket): void => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => {
      sockets.delete(socket)
      other.destroy()
    })
  }
  const server = net.createServer((client) => {
    const upstream = new net.Socket()
    track(client, upstream)
    track(upstream, client)
    void open.then(() =>
      client.destroyed || upstream.connect(port, "127.0.0.1", () => client.pipe(upstream).pipe(client))
    )
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address() as net.AddressInfo
  const resetAll = (): void => sockets.forEach((socket) => socket.resetAndDestroy())
  return {
    proxied: (url) => Object.assign(new URL(url), { port: String(address.port) }).href,
    cut: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      open = promise
      resetAll()
      return resolve
    },
    close: async () => {
      resetAll()
      server.close()
      await once(server, "close")
    }
  }
}

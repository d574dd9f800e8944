/**
 * A stretch of network between a client and a server on this machine, which can fail.
 */
import { once } from "node:events"
import * as net from "node:net"

export interface Relay {
  /** The address of a server, as it is through the relay. */
  readonly through: (url: string) => string
  /** Cuts every connection, and lets new ones wait until this answer is called. */
  readonly cut: () => () => void
  readonly close: () => Promise<void>
}

export const relay = async (port: number): Promise<Relay> => {
  const sockets = new Set<net.Socket>()
  let open = Promise.resolve()
  const keep = (socket: net.Socket, other: net.Socket): void => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => {
      sockets.delete(socket)
      other.destroy()
    })
  }
  const server = net.createServer((near) => {
    const far = new net.Socket()
    keep(near, far)
    keep(far, near)
    void open.then(() => near.destroyed || far.connect(port, "127.0.0.1", () => near.pipe(far).pipe(near)))
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address() as net.AddressInfo
  const end = (): void => sockets.forEach((socket) => socket.resetAndDestroy())
  return {
    through: (url) => Object.assign(new URL(url), { port: String(address.port) }).href,
    cut: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      open = promise
      end()
      return resolve
    },
    close: async () => {
      end()
      server.close()
      await once(server, "close")
    }
  }
}

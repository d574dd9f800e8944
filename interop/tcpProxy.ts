/**
 * A TCP proxy on this machine that can cut its connections or delay what the server sends, to simulate failures of a network.
 */
import { once } from "node:events"
import * as net from "node:net"
import { pipeline } from "node:stream"
import { setTimeout as sleep } from "node:timers/promises"

export interface TcpProxy {
  /** The URL of a server through the proxy. */
  readonly proxied: (url: string) => string
  /** Cuts all connections, and holds new ones back until the returned function is called. */
  readonly cut: () => () => void
  /** Delays what the server sends, in milliseconds: on the connections of `delayed`, or on all. 0 ends the delay. */
  readonly delay: (milliseconds: number) => void
  readonly close: () => Promise<void>
}

export interface Options {
  /** The address on which it listens, at the port of the server; without it, at any free port of loopback. */
  readonly host?: string
  /** A text that a client sends on the connections that `delay` means. */
  readonly delayed?: string
}

export const tcpProxy = async (port: number, { delayed, host }: Options = {}): Promise<TcpProxy> => {
  const sockets = new Set<net.Socket>()
  let open = Promise.resolve()
  let wait = 0
  const track = (socket: net.Socket, other: net.Socket): void => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => {
      sockets.delete(socket)
      other.destroy()
    })
  }
  /** Passes on what a server sends to a client, in order. */
  const pass = (upstream: net.Socket, client: net.Socket): void => {
    let isDelayed = delayed === undefined
    if (!isDelayed) client.on("data", (sent: Buffer) => void (isDelayed ||= sent.includes(delayed!)))
    client.pipe(upstream)
    const late = async function*(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        if (isDelayed && wait > 0) await sleep(wait, undefined, { ref: false })
        yield chunk
      }
    }
    pipeline(upstream, late, client, () => {})
  }
  const server = net.createServer((client) => {
    const upstream = new net.Socket()
    track(client, upstream)
    track(upstream, client)
    void open.then(() => client.destroyed || upstream.connect(port, "127.0.0.1", () => pass(upstream, client)))
  }).listen(host === undefined ? 0 : port, host ?? "127.0.0.1")
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
    delay: (milliseconds) => {
      wait = milliseconds
    },
    close: async () => {
      resetAll()
      server.close()
      await once(server, "close")
    }
  }
}

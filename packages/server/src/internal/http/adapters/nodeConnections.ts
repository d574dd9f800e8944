/**
 * The connections of a server. At the bound, the address with the most connections gives up one.
 */
import { networkOf } from "@skein/runtime/ClientKey"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { largestBeside } from "../../base/client.ts"

/** The oldest answer of a connection that is not complete. There is no public API; Node's own listener reads it too. */
export const answerOf = (socket: Duplex): ServerResponse | undefined =>
  (socket as { readonly _httpMessage?: ServerResponse | null | undefined })._httpMessage ?? undefined

/**
 * Whether a connection waits for its client: no request is being answered, or the body of the request has not arrived.
 */
export const isIdle = (socket: Socket): boolean => {
  const answer = answerOf(socket)
  return answer === undefined || (!answer.req.complete && !answer.headersSent)
}

/** The connections of a server. Up to `max` may be open. `canClose` reports whether one may be closed for another one. */
export const makeConnections = (max: number, canClose: (socket: Socket) => boolean = isIdle) => {
  /** The open connections, oldest first, with the networks of their clients. */
  const sockets = new Map<Socket, string>()
  const counts = new KeyedCounter()

  /** Adds a new connection, or closes it if none of the others is given up for it. */
  const add = (socket: Socket): void => {
    const network = networkOf(socket.remoteAddress ?? "")
    if (sockets.size >= max && !makeRoom(network)) return void socket.destroy()
    sockets.set(socket, network)
    counts.add(network, 1)
    socket.once("close", () => remove(socket))
  }

  const remove = (socket: Socket): void => {
    const network = sockets.get(socket)
    if (network === undefined) return
    sockets.delete(socket)
    counts.add(network, -1)
  }

  /**
   * Closes the oldest idle connection of the network with the most. A network with at least twice as many as that of the
   * new connection gives up its oldest connection even if none is idle.
   */
  const makeRoom = (network: string): boolean => {
    const larger = largestBeside(counts.entries, counts.of(network))
    const most = larger ?? counts.largest
    let found: Socket | undefined
    for (const [socket, one] of sockets) {
      if (one !== most) continue
      if (canClose(socket)) {
        found = socket
        break
      }
      if (larger !== undefined) found ??= socket
    }
    if (found === undefined) return false
    remove(found)
    found.destroy()
    return true
  }

  return { sockets, add }
}

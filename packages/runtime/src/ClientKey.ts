/**
 * The key of the client that sent a request. Clients share the bounds of a server, and each one may use a part of them:
 * the key distinguishes one client from another.
 */
import type { Origin } from "./Connection.ts"
import * as RandomId from "./RandomId.ts"
import type { RequestContext, SessionPeer } from "./RequestContext.ts"

/**
 * The part of an address that identifies a client. Of an IPv6 address these are the first 64 bits: a single client has
 * the others to itself, and could send each request from another one. An IPv4 address in an IPv6 address counts as IPv4.
 *
 * @example
 * ClientKey.networkOf("2001:db8:1:2:3:4:5:6") // "2001:db8:1:2"
 */
export const networkOf = (address: string): string => {
  if (!address.includes(":")) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped !== null) return mapped[1]!
  const [left = "", right] = address.split("::")
  const groups = left === "" ? [] : left.split(":")
  if (right !== undefined) {
    const after = right === "" ? 0 : right.split(":").length
    while (groups.length + after < 8) groups.push("0")
  }
  return groups.slice(0, 4).join(":").toLowerCase()
}

/**
 * The key of the client behind a message: its principal, which was authenticated, or else the network of its address.
 * `undefined` if the transport has neither. Count such a client in the bound that all clients share, and not under one
 * key for all of them.
 */
export const ofOrigin = (origin: Origin | undefined): string | undefined => {
  if (origin === undefined) return undefined
  const { address, principal } = origin
  if (principal !== undefined) return `principal ${principal.id}`
  return address === undefined ? undefined : `address ${networkOf(address)}`
}

const sessions = new WeakMap<SessionPeer, string>()

const sessionOf = (peer: SessionPeer | undefined): string | undefined => {
  if (peer === undefined) return undefined
  const known = sessions.get(peer)
  if (known !== undefined) return known
  const key = `session ${RandomId.make(8)}`
  sessions.set(peer, key)
  return key
}

/**
 * The key of the client behind a request: its principal, the network of its address, or its session if the transport
 * has neither (stdio, or HTTP in an application that passes no address). `undefined` for a stateless request without a
 * principal and an address: count it in the bound that all clients share.
 *
 * Sessions come last because a client can open many of them.
 *
 * @example
 * const running = new KeyedCounter()
 * const refused = running.acquire(ClientKey.ofRequest(request), 1_000, 20)
 */
export const ofRequest = ({ caller: { principal }, origin, peer }: Pick<RequestContext, "caller" | "origin" | "peer">):
  | string
  | undefined => ofOrigin({ principal: principal ?? origin?.principal, address: origin?.address }) ?? sessionOf(peer)

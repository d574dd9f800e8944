/**
 * The clients that share the bounds of a server: principals, and network addresses for callers without one.
 */
import { cut } from "@skein/protocol/Text"
import * as ClientKey from "@skein/runtime/ClientKey"
import type { Origin } from "@skein/runtime/Connection"

/**
 * The key of the client that sent a message, for shares of a bound that clients have together. Clients that cannot be
 * distinguished have one share.
 */
export const clientOf = (origin: Origin | undefined): string => ClientKey.ofOrigin(origin) ?? ""

/**
 * The address of the client behind this many proxies. Each proxy appends the address that it received the request from
 * to `X-Forwarded-For`, so only the entries of the trusted proxies, at its end, were not written by the client.
 */
export const forwardedAddress = (
  header: string | undefined,
  trustedProxies: number,
  address: string | undefined
): string | undefined => {
  if (trustedProxies < 1 || header === undefined) return address
  const entries = header.split(",")
  const entry = entries[Math.max(0, entries.length - trustedProxies)]!.trim()
  // An IPv6 address may be in brackets, and a port may follow.
  const bare = /^\[([^\]]*)\]/.exec(entry)?.[1] ?? /^([\d.]+):\d+$/.exec(entry)?.[1] ?? entry
  return bare === "" ? address : cut(bare, maxAddressChars)
}

// The longest text of an IPv6 address has 45 characters.
const maxAddressChars = 64

/**
 * Returns the key with the largest count, if that is at least twice the count of another client (`own`) after its next
 * addition: then an entry of the former makes room for one of the latter. Clients with similar counts do not displace
 * each other.
 */
export const largestBeside = (counts: Iterable<readonly [string, number]>, own: number): string | undefined => {
  let largest: string | undefined
  let most = 2 * (own + 1) - 1
  for (const [key, count] of counts) {
    if (count > most) {
      most = count
      largest = key
    }
  }
  return largest
}

/**
 * The clients that share the bounds of a server: principals, and network addresses for callers without one.
 */
import type { Origin } from "@skein/runtime/Connection"

/**
 * The key of the client that sent a message. Its principal, which was authenticated, takes precedence over its address.
 * All clients without either have the same key.
 */
export const clientOf = (origin: Origin | undefined): string => {
  if (origin === undefined) return ""
  const { principal } = origin
  if (principal !== undefined) return `principal ${principal.id}`
  const { address } = origin
  return address === undefined ? "" : `address ${networkOf(address)}`
}

/**
 * The part of an address that identifies a client. Of an IPv6 address these are the first 64 bits: a single client has
 * the others to itself, and could send each request from another one.
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
  return bare === "" ? address : bare.slice(0, maxAddressChars)
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

/** Counts by key. The key `undefined` is not counted, and a key whose count is 0 is not stored. */
export class KeyedCounter {
  readonly #counts = new Map<string, number>()

  get entries(): Iterable<readonly [string, number]> {
    return this.#counts
  }

  /** The key with the largest count, if there is one. */
  get largest(): string | undefined {
    let found: string | undefined
    let most = 0
    for (const [key, count] of this.#counts) {
      if (count <= most) continue
      most = count
      found = key
    }
    return found
  }

  of(key: string | undefined): number {
    return key === undefined ? 0 : this.#counts.get(key) ?? 0
  }

  add(key: string | undefined, more: number): void {
    if (key === undefined) return
    const count = this.of(key) + more
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }
}

/**
 * Which hostnames are this machine, by their text alone: nothing is resolved. Two questions have different answers.
 *
 * - `isLoopback` grants trust, such as http without TLS: it accepts a name only if no other machine can answer to it.
 * - `mayBeLocal` denies, such as a request that another party chose: it includes each name that a resolver or a browser may
 *   take for this machine.
 *
 * An address counts in each spelling that URLs have: `127.1`, `0x7f000001`, `[0:0:0:0:0:0:0:1]`, `::ffff:127.0.0.1`, with
 * or without brackets, in either case. An octet above 255 is not an address.
 */

const octets = /^(\d+)\.\d+\.\d+\.\d+$/

/** The address or the name as URLs have it, without brackets; undefined if it is neither. */
const canonical = (hostname: string): string | undefined => {
  const [, address] = /^\[?([0-9a-f:.]*:[0-9a-f:.]*)\]?$/i.exec(hostname) ?? []
  if (address === undefined && !/^[a-z0-9._-]+$/i.test(hostname)) return undefined
  return URL.parse(`http://${address === undefined ? hostname : `[${address}]`}`)?.hostname.replaceAll(/^\[|\]$/g, "")
}

/** The first octet of an address of IPv4, also of one that an address of IPv6 contains. */
const firstOctet = (address: string): number | undefined => {
  const [, octet] = octets.exec(address) ?? []
  if (octet !== undefined) return Number(octet)
  const [, group] = /^::ffff:([0-9a-f]{1,4}):[0-9a-f]{1,4}$/.exec(address) ?? []
  return group === undefined ? undefined : parseInt(group, 16) >> 8
}

/**
 * Whether a hostname is certainly this machine: `localhost`, and the addresses of the loopback interface, which are
 * 127.0.0.0/8, `::1`, and those of 127.0.0.0/8 inside IPv6 ones. `tea.localhost` and `localhost.` are not: some resolvers
 * ask the network for them. Nor are `0.0.0.0` and `::`, which as an address to listen on are all interfaces.
 *
 * @example
 * Hostname.isLoopback(new URL("http://127.1:3000").hostname) // true
 * Hostname.isLoopback("127.0.0.1.example.com") // false
 */
export const isLoopback = (hostname: string): boolean => {
  const name = canonical(hostname)
  return name !== undefined && (name === "localhost" || name === "::1" || firstOctet(name) === 127)
}

/**
 * Whether a hostname may be this machine: the names and addresses of `isLoopback`, with or without a dot at the end, each
 * name below `localhost` (RFC 6761, 6.3), and the unspecified addresses, which are 0.0.0.0/8 and `::`. Connections to them
 * reach this machine.
 *
 * @example
 * Hostname.mayBeLocal("tea.localhost") // true
 * Hostname.mayBeLocal("0.0.0.0") // true
 */
export const mayBeLocal = (hostname: string): boolean => {
  if (isLoopback(hostname)) return true
  const name = canonical(hostname)
  return name !== undefined && (/(?:^|\.)localhost\.?$/.test(name) || name === "::" || firstOctet(name) === 0)
}

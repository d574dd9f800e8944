import * as NodeHttp from "@skein/client/NodeHttp"
import { lookup, type LookupAddress } from "node:dns"
import { Agent } from "node:https"
import { BlockList, isIP, type LookupFunction } from "node:net"

const inside = new BlockList()
for (const [net, bits] of [["0.0.0.0", 8], ["10.0.0.0", 8], ["127.0.0.0", 8], ["169.254.0.0", 16]] as const) {
  inside.addSubnet(net, bits)
}
for (const [net, bits] of [["100.64.0.0", 10], ["172.16.0.0", 12], ["192.168.0.0", 16]] as const) {
  inside.addSubnet(net, bits)
}
for (const [net, bits] of [["::", 128], ["::1", 128], ["fc00::", 7], ["fe80::", 10], ["64:ff9b::", 96]] as const) {
  inside.addSubnet(net, bits, "ipv6")
}
const isInside = (address: string): boolean => inside.check(address, isIP(address) === 6 ? "ipv6" : "ipv4")

// Checks the address when the socket opens: a name that was checked earlier may resolve to another address by then.
const outside: LookupFunction = (host, options, done) =>
  lookup(host, { ...options, all: true }, (error, addresses: ReadonlyArray<LookupAddress>) => {
    if (error !== null) return done(error, "")
    const allowed = addresses.filter(({ address }) => !isInside(address))
    const [first] = allowed
    if (first === undefined) return done(new Error(`${host} resolves to an address of the internal network`), "")
    return options.all === true ? done(null, [...allowed]) : done(null, first.address, first.family)
  })

const agent = new Agent({ keepAlive: true, lookup: outside })

/** A transport for a URL that a user has entered, or `undefined` for a URL that is not allowed. */
export const typed = (text: string) => {
  const url = URL.parse(text)
  const host = url?.hostname.replaceAll(/^\[|\]$/g, "") ?? ""
  // An IP address in the URL is not resolved, so check it here.
  if (url?.protocol !== "https:" || (isIP(host) > 0 && isInside(host))) return undefined
  return NodeHttp.transport({ url, agent })
}

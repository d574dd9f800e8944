/**
 * A `fetch` over Node's own client whose sockets can be kept away from private addresses. The global `fetch` has no
 * option for the address of its sockets.
 */
import { mayBeLocal } from "@skein/protocol/Hostname"
import { lookup, type LookupAddress } from "node:dns"
import * as http from "node:http"
import * as https from "node:https"
import { BlockList, isIP, type LookupFunction } from "node:net"
import { Readable } from "node:stream"
import type { Fetch } from "../Outbound.ts"

// The special-purpose addresses of RFC 6890 and its updates that are not reachable from everywhere.
const special = new BlockList()
const subnets = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3]
] as const
const subnets6 = [
  ["::", 96],
  // Addresses of IPv4 behind a translator, among them private ones.
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
  ["2001::", 32],
  ["100::", 64],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8]
] as const

const block = (): BlockList => {
  if (special.rules.length > 0) return special
  for (const [net, bits] of subnets) special.addSubnet(net, bits)
  for (const [net, bits] of subnets6) special.addSubnet(net, bits, "ipv6")
  return special
}

/** Whether an address is private or special. The mapped addresses of IPv4 (`::ffff:10.0.0.1`) count as theirs. */
export const isPrivate = (address: string): boolean => block().check(address, isIP(address) === 6 ? "ipv6" : "ipv4")

class AddressRefused extends Error {
  override readonly name = "AddressRefused"
}

const guardedLookup = (resolve: typeof lookup): LookupFunction => (host, options, done) => {
  resolve(host, { ...options, all: true }, (error, addresses: ReadonlyArray<LookupAddress>) => {
    if (error !== null) return done(error, "")
    const allowed = addresses.filter(({ address }) => !isPrivate(address))
    const [first] = allowed
    if (first === undefined) return done(new AddressRefused(`${host} has a private address`), "")
    return options.all === true ? done(null, [...allowed]) : done(null, first.address, first.family)
  })
}

const responseOf = (incoming: http.IncomingMessage): Response => {
  const status = incoming.statusCode ?? 0
  // The constructor would throw, but that of a framework that replaces `Response`, as Hono does, throws only when the
  // response is read.
  if (status < 200 || status > 599) throw new RangeError(`an answer has the status ${status}`)
  const headers = new Headers()
  for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2) {
    headers.append(incoming.rawHeaders[at]!, incoming.rawHeaders[at + 1]!)
  }
  const empty = status === 204 || status === 205 || status === 304
  if (empty) incoming.resume()
  return new Response(empty ? null : Readable.toWeb(incoming) as ReadableStream<Uint8Array>, { status, headers })
}

/** Node's switch for the proxy of the environment (`NODE_USE_ENV_PROXY`, `--use-env-proxy`), which its own agents obey. */
const proxyOf = (module: typeof http | typeof https): object | undefined =>
  (module.globalAgent as { readonly options?: { readonly proxyEnv?: object } }).options?.proxyEnv

/**
 * Makes the `fetch`. Each request has a connection of its own: they are rare, and go to many servers. `resolve` finds
 * the addresses of a name.
 *
 * A request through a proxy of the environment has a socket to the proxy, which resolves the name itself. So a name that
 * is private here is refused before, and a name that is not known here is left to the proxy.
 */
export const makeFetch = (
  refusePrivateAddresses: boolean,
  resolve: typeof lookup = lookup
): Fetch =>
(text, { body, headers, method, signal }) => {
  const url = new URL(text)
  return new Promise((respond, reject) => {
    // A literal address is not looked up.
    const literal = url.hostname.replaceAll(/^\[|\]$/g, "")
    if (refusePrivateAddresses && (mayBeLocal(url.hostname) || (isIP(literal) > 0 && isPrivate(literal)))) {
      return reject(new AddressRefused(`${url.hostname} is a private address`))
    }
    const module = url.protocol === "https:" ? https : http
    const proxyEnv = proxyOf(module)
    const lookup = guardedLookup(resolve)
    const send = () => {
      const sent = module.request(url, {
        method,
        headers: body === undefined ? headers : { ...headers, "content-length": new TextEncoder().encode(body).length },
        signal,
        agent: new module.Agent({ proxyEnv } as http.AgentOptions),
        ...(refusePrivateAddresses ? { lookup } : {})
      }, (incoming) => {
        try {
          respond(responseOf(incoming))
        } catch (cause) {
          // Not caught here, the error would end the process.
          sent.destroy()
          reject(cause)
        }
      })
      sent.on("error", reject)
      // After an answer that changes the protocol (101) there is no error.
      sent.on("close", () => reject(new Error("the connection was closed without an answer")))
      sent.end(body)
    }
    if (proxyEnv === undefined || !refusePrivateAddresses || isIP(literal) > 0) return send()
    lookup(url.hostname, {}, (error) => error instanceof AddressRefused ? reject(error) : send())
  })
}

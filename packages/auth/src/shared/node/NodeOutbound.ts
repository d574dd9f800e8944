/**
 * An `Outbound` for Node that can refuse private addresses. The addresses of metadata and tokens come from servers, so
 * a program that runs inside a network could be made to send requests to its neighbours (server-side request forgery).
 *
 * The address is checked when the socket is opened: a name that was checked earlier may resolve to another address by
 * then. Literal addresses in URLs are checked too.
 *
 * With Node's switch `NODE_USE_ENV_PROXY=1` (Node 24.5 and later) requests use the proxies of `HTTP_PROXY`, `HTTPS_PROXY`
 * and `NO_PROXY`. A proxy resolves names itself: a name that this computer knows as private is refused before, and the
 * proxy decides about the others. `NODE_EXTRA_CA_CERTS` counts as well.
 *
 * @example
 * const outbound = NodeOutbound.make({ refusePrivateAddresses: true })
 * const oauth = yield* OAuth.make({ grant, outbound })
 */
import { makeFetch } from "./guardedFetch.ts"
import * as Outbound from "../Outbound.ts"

/** The options of `make`. */
export interface Options extends Omit<Outbound.Options, "fetch"> {
  /**
   * Whether requests to private, loopback, link-local and other special addresses fail. `true` by default. With `false`,
   * only the rules of `Outbound` apply.
   */
  readonly refusePrivateAddresses?: boolean | undefined
}

/**
 * Makes an `Outbound` over `node:http` and `node:https`. A request to a refused address fails with `DiscoveryFailed` or
 * `TokenRequestFailed`, and its message names `refusePrivateAddresses`.
 *
 * @example
 * const outbound = NodeOutbound.make({ requestTimeout: "5 seconds" })
 */
export const make = (options: Options = {}): Outbound.Outbound =>
  Outbound.make({ ...options, fetch: makeFetch(options.refusePrivateAddresses ?? true) })

/**
 * The one way out for the requests of `OAuth`: metadata, registrations, tokens. It bounds the size and the time of each
 * answer, follows redirects of metadata on their own origin alone (three at most), and sends nothing to a URL that is neither https nor on the loopback interface.
 *
 * The addresses come from servers, so a program that runs on a server should also refuse private addresses. In Node,
 * `NodeOutbound.make({ refusePrivateAddresses: true })` checks them when the socket is opened. Elsewhere, give a `fetch`
 * that does.
 *
 * @example
 * const oauth = yield* OAuth.make({ grant, outbound: Outbound.make({ requestTimeout: "5 seconds" }) })
 */
import * as Settings from "@skein/runtime/Options"
import * as Duration from "effect/Duration"

/** A part of the standard `fetch`: what is sent, and a `Response`. It must not follow redirects. */
export type Fetch = (url: string, init: {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body?: string | undefined
  readonly redirect: "manual"
  readonly signal: AbortSignal
}) => Promise<Response>

/** The bounds of requests, and the function that makes them. */
export interface Options {
  /** Makes the requests. The global `fetch` by default. */
  readonly fetch?: Fetch | undefined
  /**
   * The size of the body of one answer, in bytes. 262,144 by default. A larger one fails the request. Raise it for an
   * authorization server with large metadata.
   */
  readonly maxDocumentBytes?: number | undefined
  /**
   * The time of one request with its whole answer. 10 seconds by default. Then the request fails. Raise it for an
   * authorization server that answers slowly.
   */
  readonly requestTimeout?: Duration.Input | undefined
}

/** The requests that `OAuth` makes. */
export interface Outbound {
  /** Makes the requests. */
  readonly fetch: Fetch
  /** The size of the body of one answer, in bytes. */
  readonly maxDocumentBytes: number
  /** The time of one request with its whole answer. */
  readonly requestTimeout: Duration.Duration
}

// In a browser, requests carry no cookies, and a change of the metadata is not hidden by a cache. Runtimes on servers
// have neither, and some reject the options.
const inBrowser = { credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" } as const

const globalFetch: Fetch = (url, init) =>
  fetch(
    url,
    ("location" in globalThis ? { ...init, ...inBrowser } : init) as RequestInit
  )

/**
 * Makes an `Outbound`. See `Options` for the bounds and their defaults.
 *
 * @example
 * const outbound = Outbound.make({ maxDocumentBytes: 65_536 })
 */
export const make = (options: Options = {}): Outbound => {
  const { requestTimeout, ...rest } = Settings.resolve(
    options,
    { fetch: globalFetch, maxDocumentBytes: 262_144 },
    { requestTimeout: "10 seconds" }
  )
  return { ...rest, requestTimeout: Duration.millis(requestTimeout) }
}

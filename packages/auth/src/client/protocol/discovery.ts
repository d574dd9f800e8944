/**
 * From a server to the metadata of its authorization server: RFC 9728, RFC 8414, OpenID Connect Discovery, and the
 * default endpoints of 2025-03-26.
 */
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { DiscoveryFailed, InsecureUrl, IssuerMismatch, type OAuthError, ResourceMismatch } from "./OAuthError.ts"
import type { Outbound } from "../../shared/Outbound.ts"
import { metadataUrls, parseObject } from "../../shared/web.ts"
import { noChallenge, type OAuthChallenge, oauthChallenge } from "./challenge.ts"
import { discoveryFailed, fail } from "./errors.ts"
import {
  defaultServerMetadata,
  endpoints,
  type ResourceMetadata,
  resourceMetadata,
  type ServerMetadata,
  serverMetadata
} from "./metadata.ts"
import { place, send } from "./send.ts"
import { coversServer, isSecure, parseIssuer, parseSecure, resourceMetadataUrls, sameIssuer } from "./urls.ts"

/** The result of the discovery of a server. */
export interface Discovery {
  /** `undefined` for a server of 2025-03-26, which has none. */
  readonly resource: ResourceMetadata | undefined
  readonly server: ServerMetadata
}

// 2025-03-26: "MCP clients SHOULD include the MCP-Protocol-Version header". Later revisions do not mention it here.
const headers = { accept: "application/json", "mcp-protocol-version": "2025-11-25" }

/**
 * Reads a document. A status of 4xx or 3xx, and a page that is not metadata, mean that there is none: single-page
 * applications answer every path with 200. `pages` receives the URLs of those, because their operator may believe that
 * the document is there. A status of 5xx or 429 fails: the document may be there later.
 */
const document = <A>(
  outbound: Outbound,
  url: URL,
  read: (json: Readonly<Record<string, unknown>>) => A | undefined,
  pages: Array<URL>
): Effect.Effect<A | undefined, OAuthError> =>
  Effect.flatMap(Effect.mapError(send(outbound, url, { headers }), discoveryFailed), ({ status, text }) => {
    if (status >= 500 || status === 429) {
      return fail(new DiscoveryFailed({ message: `Metadata could not be read: ${place(url)} answered ${status}` }))
    }
    if (status !== 200) return Effect.succeed(undefined)
    const json = parseObject(text)
    const value = json === undefined ? undefined : read(json)
    if (value === undefined) pages.push(url)
    return Effect.succeed(value)
  })

/** Names the first of the pages that were found in the place of metadata. */
const describePages = ([first]: ReadonlyArray<URL>): string =>
  first === undefined ? "" : `. ${place(first)} answered 200 with a page that is not metadata`

const checkEndpoints = (server: ServerMetadata): Effect.Effect<ServerMetadata, OAuthError> => {
  for (const name of endpoints) {
    const url = server[name]
    if (url === undefined || parseSecure(url) !== undefined) continue
    return fail(
      new InsecureUrl({
        message: `The ${name} of ${quote(server.issuer)} is ${quote(String(url))}, which is not an https URL`
      })
    )
  }
  return Effect.succeed(server)
}

/** Reads the metadata of an issuer. `undefined` if there is none. `pages` receives the pages in its place. */
export const serverMetadataOf = Effect.fnUntraced(function*(
  outbound: Outbound,
  issuer: string,
  pages: Array<URL> = []
): Effect.fn.Return<ServerMetadata | undefined, OAuthError> {
  const url = parseIssuer(issuer)
  if (url === undefined) {
    return yield* fail(
      new InsecureUrl({ message: `The issuer ${quote(issuer)} is not an https URL without query and fragment` })
    )
  }
  for (const at of metadataUrls(url)) {
    const server = yield* document(outbound, at, serverMetadata, pages)
    if (server === undefined) continue
    if (!sameIssuer(server.issuer, issuer)) {
      return yield* fail(
        new IssuerMismatch({
          message: `${place(at)} is the metadata of ${quote(server.issuer)}, not of ${quote(issuer)}. It is not used`,
          expected: issuer,
          actual: server.issuer
        })
      )
    }
    return yield* checkEndpoints(server)
  }
  return undefined
})

const required = (outbound: Outbound, issuer: string): Effect.Effect<ServerMetadata, OAuthError> => {
  const pages: Array<URL> = []
  return Effect.flatMap(
    serverMetadataOf(outbound, issuer, pages),
    (server) =>
      server === undefined
        ? fail(
          new DiscoveryFailed({
            message: `The authorization server ${quote(issuer)} has no metadata at its well-known URLs ` +
              `(RFC 8414, OpenID Connect Discovery)${describePages(pages)}`
          })
        )
        : Effect.succeed(server)
  )
}

/** At most so many authorization servers of one server are tried. */
const maxIssuers = 3

/**
 * Finds the authorization server of a server. `named` is the `resource_metadata` of its challenge. Of several
 * authorization servers, the first one that is in `preferred` is chosen, else the first that has metadata: it is up to
 * the client (RFC 9728, 7.6). One that is in `preferred` is not replaced while it is down: its tokens are still good.
 */
export const discover = Effect.fnUntraced(function*(
  outbound: Outbound,
  url: URL,
  named: string | undefined,
  preferred: ReadonlyArray<string>
): Effect.fn.Return<Discovery, OAuthError> {
  const pages: Array<URL> = []
  if (!isSecure(url)) {
    return yield* fail(
      new InsecureUrl({
        message:
          `Nobody is signed in at ${place(url)}: a token would be sent over a connection that others can read. ` +
          "Use an https URL"
      })
    )
  }
  for (const at of resourceMetadataUrls(url, named)) {
    const resource = yield* document(outbound, at, resourceMetadata, pages)
    if (resource === undefined) continue
    if (!coversServer(resource.resource, url)) {
      return yield* fail(
        new ResourceMismatch({
          message: `${place(at)} describes ${quote(resource.resource)}, not ${place(url)}. It is not used`,
          resource: resource.resource
        })
      )
    }
    const { authorizationServers } = resource
    const chosen = authorizationServers.find((each) => preferred.some((one) => sameIssuer(one, each)))
    const [first, ...others] = chosen === undefined ? authorizationServers.slice(0, maxIssuers) : [chosen]
    if (first === undefined) {
      return yield* fail(
        new DiscoveryFailed({ message: `${place(at)} names no authorization server (authorization_servers)` })
      )
    }
    // If none has metadata, the failure is that of the first.
    const rest = Effect.firstSuccessOf(others.map((issuer) => required(outbound, issuer)))
    const server = others.length === 0
      ? required(outbound, first)
      : Effect.catch(required(outbound, first), (error) => Effect.mapError(rest, () => error))
    return { resource, server: yield* server }
  }
  // 2025-03-26: the server is its own authorization server, at the root of its origin.
  const server = yield* serverMetadataOf(outbound, url.origin, pages)
  return { resource: undefined, server: server ?? { ...defaultServerMetadata(url), pages: describePages(pages) } }
})

/**
 * Asks a server for its challenge, with a request that does nothing if it is answered. A server that does not refuse it
 * has none, and a failure is one that discovery reports.
 */
export const probe = (outbound: Outbound, url: URL): Effect.Effect<OAuthChallenge> => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" }
  return Effect.match(send(outbound, url, { method: "POST", headers, body }), {
    onFailure: () => noChallenge,
    onSuccess: ({ headers, status }) =>
      oauthChallenge(status === 401 ? headers.get("www-authenticate") ?? undefined : undefined)
  })
}

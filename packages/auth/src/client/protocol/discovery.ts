/**
 * From a server to the metadata of its authorization server: RFC 9728, RFC 8414, OpenID Connect Discovery, and the
 * default endpoints of 2025-03-26.
 */
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { DiscoveryFailed, InsecureUrl, IssuerMismatch, type OAuthError, ResourceMismatch } from "./OAuthError.ts"
import type { Outbound } from "../../shared/Outbound.ts"
import { maxRedirects, metadataUrls, parseObject, redirectTarget, staysOnOrigin } from "../../shared/web.ts"
import { noChallenge, type OAuthChallenge, oauthChallenge } from "./challenge.ts"
import { discoveryFailed, fail, oauthError } from "./errors.ts"
import {
  defaultServerMetadata,
  endpoints,
  type ResourceMetadata,
  resourceMetadata,
  type ServerMetadata,
  serverMetadata
} from "./metadata.ts"
import { place, send } from "./send.ts"
import {
  coversServer,
  isSecure,
  parseIssuer,
  parseSecure,
  resourceMetadataUrls,
  sameIssuer,
  withoutSlash
} from "./urls.ts"

/** The result of the discovery of a server. */
export interface Discovery {
  /** `undefined` for a server of 2025-03-26, which has none. */
  readonly resource: ResourceMetadata | undefined
  readonly server: ServerMetadata
}

// 2025-03-26: "MCP clients SHOULD include the MCP-Protocol-Version header". Later revisions do not mention it here.
const headers = { accept: "application/json", "mcp-protocol-version": "2025-11-25" }

/** The answers that were found in the places of metadata where there is none. */
interface Seen {
  /** Each as a part of a message, because the operator may believe that the document is there. */
  readonly notes: Array<string>
  /** The failure of a place whose document may be there later. */
  failure: OAuthError | undefined
  /** How a document of another origin is allowed, after a note about one. Empty where no option does. */
  remedy: string
}

const nothingSeen = (): Seen => ({ notes: [], failure: undefined, remedy: "" })

const allowMetadata =
  ". If that metadata is to be trusted, set its URL as resourceMetadata of the server in the option " +
  "servers, or in skein with --resource-metadata"

/**
 * Reads a document. A status of 4xx, a redirect to another origin, and a page that is not metadata mean that there is none:
 * single-page applications answer every path with 200. After a status of 5xx or 429 the document may be there later, or in
 * the next place: a proxy in front of a server answers so for paths that it does not know. `seen` receives all of these.
 *
 * A redirect of the same origin is followed, as frameworks add a slash to a path. Each is a request of its own, with the
 * same checks of its address.
 */
const document = <A>(
  outbound: Outbound,
  url: URL,
  read: (json: Readonly<Record<string, unknown>>) => A | undefined,
  seen: Seen,
  redirects = 0
): Effect.Effect<A | undefined, OAuthError> =>
  Effect.flatMap(
    Effect.mapError(send(outbound, url, { headers }), discoveryFailed),
    ({ headers, status, text }) => {
      const note = (what: string) => Effect.sync(() => void seen.notes.push(`${place(url)} ${what}`))
      if (status >= 500 || status === 429) {
        seen.failure ??= oauthError(
          new DiscoveryFailed({ message: `Metadata could not be read: ${place(url)} answered ${status}` })
        )
        return Effect.succeed(undefined)
      }
      if (status >= 300 && status < 400) {
        const target = redirectTarget(status, headers, url)
        if (target === undefined) return note(`answered ${status}, a redirect that cannot be followed`)
        if (!staysOnOrigin(target, url)) {
          return note(
            `answered ${status} and leads to ${place(target)}, which is of another origin and is not read${seen.remedy}`
          )
        }
        return redirects < maxRedirects
          ? document(outbound, target, read, seen, redirects + 1)
          : note(`is behind more than ${maxRedirects} redirects`)
      }
      if (status !== 200) return status === 404 ? Effect.succeed(undefined) : note(`answered ${status}`)
      const json = parseObject(text)
      const value = json === undefined ? undefined : read(json)
      return value === undefined ? note("answered 200 with a page that is not metadata") : Effect.succeed(value)
    }
  )

/** Says what was found in the place of metadata. */
const describeSeen = ({ notes }: Seen): string => notes.map((note) => `. ${note}`).join("")

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

/** Reads the metadata of an issuer. `undefined` if there is none. `seen` receives what is in its place. */
export const serverMetadataOf = Effect.fnUntraced(function*(
  outbound: Outbound,
  issuer: string,
  seen: Seen = nothingSeen()
): Effect.fn.Return<ServerMetadata | undefined, OAuthError> {
  const url = parseIssuer(issuer)
  if (url === undefined) {
    return yield* fail(
      new InsecureUrl({ message: `The issuer ${quote(issuer)} is not an https URL without query and fragment` })
    )
  }
  for (const at of metadataUrls(url)) {
    const server = yield* document(outbound, at, serverMetadata, seen)
    if (server === undefined) continue
    if (!sameIssuer(server.issuer, issuer)) {
      return yield* fail(
        new IssuerMismatch({
          message: `${place(at)} is the metadata of ${quote(server.issuer)}, not of ${quote(issuer)}. It is not used` +
            (withoutSlash(server.issuer) === withoutSlash(issuer)
              ? ": they differ by a slash at the end, and have to be identical (RFC 8414, 3.3)"
              : ""),
          expected: issuer,
          actual: server.issuer
        })
      )
    }
    return yield* checkEndpoints(server)
  }
  return seen.failure === undefined ? undefined : yield* Effect.fail(seen.failure)
})

const required = (outbound: Outbound, issuer: string): Effect.Effect<ServerMetadata, OAuthError> => {
  const seen = nothingSeen()
  return Effect.flatMap(
    serverMetadataOf(outbound, issuer, seen),
    (server) =>
      server === undefined
        ? fail(
          new DiscoveryFailed({
            message: `The authorization server ${quote(issuer)} has no metadata at its well-known URLs ` +
              `(RFC 8414, OpenID Connect Discovery)${describeSeen(seen)}`
          })
        )
        : Effect.succeed(server)
  )
}

/** At most so many authorization servers of one server are tried. */
const maxIssuers = 3

/** Where the protected resource metadata is: `named` by the challenge of the server, or `configured` for it. */
export interface MetadataPlace {
  readonly named: string | undefined
  readonly configured?: string | undefined
}

/**
 * Finds the authorization server of a server. Of several
 * authorization servers, the first one that is in `preferred` is chosen, else the first that has metadata: it is up to
 * the client (RFC 9728, 7.6). One that is in `preferred` is not replaced while it is down: its tokens are still good. For the
 * same reason, metadata of a further place counts only with one that is in `preferred` while a place before it is down.
 */
export const discover = Effect.fnUntraced(function*(
  outbound: Outbound,
  url: URL,
  { configured, named }: MetadataPlace,
  preferred: ReadonlyArray<string>
): Effect.fn.Return<Discovery, OAuthError> {
  const seen: Seen = { ...nothingSeen(), remedy: allowMetadata }
  if (!isSecure(url)) {
    return yield* fail(
      new InsecureUrl({
        message:
          `Nobody is signed in at ${place(url)}: a token would be sent over a connection that others can read. ` +
          "Use an https URL"
      })
    )
  }
  const places = configured === undefined ? resourceMetadataUrls(url, named) : [new URL(configured)]
  const elsewhere = configured === undefined && named !== undefined ? URL.parse(named) : null
  if (elsewhere !== null && !staysOnOrigin(elsewhere, url)) {
    seen.notes.push(
      `The server names its metadata at ${place(elsewhere)}, which is of another origin and is not read${seen.remedy}`
    )
  }
  for (const at of places) {
    const resource = yield* document(outbound, at, resourceMetadata, seen)
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
    if (seen.failure !== undefined && preferred.length > 0 && chosen === undefined) break
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
  if (seen.failure !== undefined) return yield* Effect.fail(seen.failure)
  if (configured !== undefined) {
    return yield* fail(
      new DiscoveryFailed({
        message: `There is no metadata at ${quote(configured)}, the resourceMetadata of ${place(url)}${
          describeSeen(seen)
        }`
      })
    )
  }
  // 2025-03-26: the server is its own authorization server, at the root of its origin.
  seen.remedy = ""
  const server = yield* serverMetadataOf(outbound, url.origin, seen)
  const notes = describeSeen(seen)
  return { resource: undefined, server: { ...server ?? defaultServerMetadata(url), seen: notes } }
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

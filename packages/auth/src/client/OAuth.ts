/**
 * Credentials that obtain and renew their tokens themselves: an OAuth 2.1 client for MCP servers.
 *
 * Give an `OAuth` to a transport. The first refusal starts the sign-in: the authorization server is discovered, the
 * client is registered where needed, and the grant obtains a token, which is stored, renewed, and extended by the
 * scopes that servers require. All revisions and all grants take this one path.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }) })
 *   const client = yield* Client.make(NodeHttp.transport({ url, credentials: oauth }))
 *   return yield* client.callTool("brew")
 * })
 * const main = Effect.provide(Effect.scoped(program), [Loopback.layer(), FileTokenStore.layer({ app: "teahouse" })])
 */
import type { Credentials } from "@skein/client/Credentials"
import * as Digest from "@skein/runtime/Digest"
import * as Clock from "effect/Clock"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type * as Context from "effect/Context"
import * as Option from "effect/Option"
import * as PubSub from "effect/PubSub"
import * as Stream from "effect/Stream"
import type { Definition, Grant } from "./grants/Grant.ts"
import { knownClient } from "./flow/clients.ts"
import { probe, serverMetadataOf } from "./protocol/discovery.ts"
import {
  type Environment,
  FlowBounds,
  fromServices,
  resolvePolicy,
  type ServerOptions,
  type SignInChange,
  type TokenPolicy
} from "./flow/environment.ts"
import { fail } from "./protocol/errors.ts"
import { complete, find } from "./flow/personSignIn.ts"
import type { SavedTokens } from "./flow/records.ts"
import { makeServerTokens, type ServerTokens } from "./flow/serverTokens.ts"
import { revoke } from "./protocol/tokenEndpoint.ts"
import { grantClient } from "./flow/tokens.ts"
import { parseSecure, serverUrl } from "./protocol/urls.ts"
import { InvalidAuthorizationResponse, InvalidOptions, type OAuthError } from "./protocol/OAuthError.ts"
import * as Outbound from "../shared/Outbound.ts"
import { TokenStore } from "./stores/TokenStore.ts"

export type { ServerOptions, SignInChange, TokenPolicy } from "./flow/environment.ts"

/** The options of `make`. */
export interface Options<R = never> extends TokenPolicy {
  /** How tokens are obtained. */
  readonly grant: Grant<R>
  /**
   * The scopes to request. By default those of the server's challenge, else all that its metadata lists. A step-up adds
   * the scopes that the server requires.
   */
  readonly scopes?: ReadonlyArray<string> | undefined
  /**
   * Deviations of single servers from the specification, by their URLs: `resource` and `assumePkce`, which take precedence
   * over the options of these names. Each use is logged. Empty by default. A key that is not a URL fails with
   * `InvalidOptions`.
   *
   * @example
   * const oauth = yield* OAuth.make({ grant, servers: { "https://tea.example/mcp": { resource: "omit" } } })
   */
  readonly servers?: Readonly<Record<string, ServerOptions>> | undefined
  /**
   * The `resource` parameter (RFC 8707) for the servers that are not in `servers`, sent byte for byte. By default the
   * `resource` of the server's metadata, and the URL of a server without metadata. `omit` leaves it out, for
   * authorization servers that refuse it, as Microsoft Entra does (AADSTS9010010): set it here only if all servers of
   * this `OAuth` have such a one, and in `servers` otherwise.
   */
  readonly resource?: string | undefined
  /** The way out of requests for metadata and tokens. `Outbound.make()` by default. */
  readonly outbound?: Outbound.Outbound | undefined
}

/** The state of the tokens for a server. It contains no token. */
export interface SignInState {
  /** The issuer of the tokens, as text. */
  readonly issuer: string
  /** The scopes that were granted. */
  readonly scopes: ReadonlyArray<string>
  /** When the access token expires, in milliseconds since the epoch. `undefined` if its issuer does not say. */
  readonly expiresAt: number | undefined
  /** Whether the tokens can be renewed without a person. */
  readonly isRenewable: boolean
  /** The id of your program at the issuer. */
  readonly clientId: string
  /** How the client became known: configured, by its metadata document, or by a dynamic registration. */
  readonly registration: "given" | "document" | "dynamic"
  /**
   * The person who signed in, by the ID token of the sign-in. Show it, and do not base a permission on it. `undefined`
   * without an ID token; servers of OpenID Connect issue one for the scope `openid`. Access tokens are not read, because
   * they are meant for the server only.
   */
  readonly person: { readonly subject: string; readonly name?: string } | undefined
}

type CredentialsService = Credentials["Service"]

/**
 * Credentials of a transport, and the ways to sign in and out.
 *
 * A server is identified by the URL that its transport was given, with its query and without its fragment. Its tokens are
 * stored under it, and all requests of the transport carry them: also those to the endpoint that a server of HTTP+SSE
 * names for its session, and those after a redirect, which never leave the origin. Pass the same text to `signIn`,
 * `signOut` and `state`: `https://tea.example/mcp`, `https://tea.example/mcp/` and `https://tea.example/mcp?team=1` are
 * three servers.
 */
export interface OAuth extends CredentialsService {
  /**
   * Signs in now, instead of at the first refusal. Tokens that are stored already are replaced. Fails with
   * `SignInRequired` if a person has to be redirected.
   */
  readonly signIn: (url: URL | string) => Effect.Effect<void, OAuthError>
  /**
   * Removes the tokens for a server, and revokes them where the authorization server supports it (RFC 7009). A failed
   * revocation is logged, and does not fail.
   */
  readonly signOut: (url: URL | string) => Effect.Effect<void, OAuthError>
  /** Returns the state of the tokens for a server: none if no person has signed in there. */
  readonly state: (url: URL | string) => Effect.Effect<Option.Option<SignInState>, OAuthError>
  /** The events of all servers from now on, for a list of servers in a user interface. Slow readers lose the oldest. */
  readonly changes: Stream.Stream<SignInChange>
  /**
   * Ends a sign-in with the parameters of the redirect URI, in any process that shares the store. Returns the URL of the
   * server. Each sign-in can be finished once, and only by the `account` that began it: bind the account to the session
   * of the browser. Otherwise an attacker could sign another person in to the account of the attacker.
   *
   * @example
   * const url = yield* oauth.finish(new URL(request.url).searchParams)
   */
  readonly finish: (params: URLSearchParams) => Effect.Effect<URL, OAuthError>
}

/** Changes that wait for a slow reader. */
const maxChanges = 64

const parse = (url: URL | string): Effect.Effect<URL, OAuthError> => {
  const parsed = URL.parse(String(url))
  if (parsed === null) return fail(new InvalidOptions({ message: "The URL of the server cannot be parsed" }))
  parsed.hash = ""
  return Effect.succeed(parsed)
}

const byServer = (
  servers: Readonly<Record<string, ServerOptions>>
): Effect.Effect<ReadonlyMap<string, ServerOptions>, OAuthError> =>
  Effect.map(
    Effect.forEach(Object.entries(servers), ([url, options]) =>
      Effect.gen(function*() {
        const { resourceMetadata } = options
        if (resourceMetadata !== undefined && parseSecure(resourceMetadata) === undefined) {
          return yield* fail(
            new InvalidOptions({ message: `resourceMetadata is not an https URL: ${quote(resourceMetadata)}` })
          )
        }
        return [serverUrl(yield* parse(url)), options] as const
      })),
    (entries) => new Map(entries)
  )

const check = (definition: Definition): Effect.Effect<void, OAuthError> => {
  if (definition._tag === "ClientCredentials") {
    const { clientSecret, privateKey } = definition.options
    return (clientSecret === undefined) === (privateKey === undefined)
      ? fail(new InvalidOptions({ message: "Grant.clientCredentials needs one of clientSecret and privateKey" }))
      : Effect.void
  }
  if (definition._tag !== "AuthorizationCode") {
    const { clientSecret, issuer } = definition.options
    // The server names the authorization server, and so where the secret would go.
    return clientSecret === undefined || issuer !== undefined ? Effect.void : fail(
      new InvalidOptions({
        message:
          "A clientSecret needs the issuer of the authorization server that knows it, or \"discovered\" to send it " +
          "to the one that each server names"
      })
    )
  }
  const { clientMetadataUrl } = definition.options
  if (clientMetadataUrl === undefined) return Effect.void
  const url = URL.parse(clientMetadataUrl)
  // 2025-11-25: "The client_id URL MUST use the "https" scheme and contain a path component".
  return url?.protocol === "https:" && url.pathname !== "/" && url.hash === "" && url.username === ""
    ? Effect.void
    : fail(new InvalidOptions({ message: "clientMetadataUrl must be an https URL with a path and without fragment" }))
}

/** Finds the tokens of a server, which become the ones that were used last. */
type FindServer = (url: URL) => ServerTokens

/** Makes the tokens of each server when it is found first. Of more than `maxServers`, the least recently used one leaves. */
const makeServers = (environment: Environment): FindServer => {
  const { maxServers } = environment.settings
  const servers = new Map<string, ServerTokens>()
  return (url) => {
    const key = url.href
    let server = servers.get(key)
    if (server !== undefined && servers.size === 1) return server
    if (server === undefined) {
      const [oldest] = servers.keys()
      if (oldest !== undefined && servers.size >= maxServers) servers.delete(oldest)
      const own = new URL(url)
      own.hash = ""
      server = makeServerTokens(environment, own)
    } else servers.delete(key)
    servers.set(key, server)
    return server
  }
}

/**
 * Makes an `OAuth`. It has to be made once per account and grant, and serves any number of servers and transports.
 * Requires the services of its grant and a `TokenStore`.
 *
 * @example
 * const oauth = yield* OAuth.make({
 *   grant: Grant.clientCredentials({ clientId: "job", clientSecret, issuer: "https://login.example" }),
 *   scopes: ["tea:read"]
 * })
 */
export const make = <R>(
  options: Options<R>
): Effect.Effect<OAuth, OAuthError, TokenStore | R> =>
  Effect.gen(function*() {
    const definition = options.grant.definition as Definition
    yield* check(definition)
    const services = yield* Effect.context<R>()
    const store = yield* TokenStore
    const changes = yield* PubSub.sliding<SignInChange>(maxChanges)
    const environment: Environment = {
      ...fromServices(services as Context.Context<never>),
      definition,
      store,
      changes,
      clock: yield* Clock.Clock,
      outbound: options.outbound ?? Outbound.make(),
      settings: {
        ...resolvePolicy(options),
        ...yield* FlowBounds,
        scopes: options.scopes,
        resource: options.resource,
        servers: yield* byServer(options.servers ?? {})
      }
    }
    return fromServers(environment, makeServers(environment))
  })

/** The extensions that the grants implement, by their identifiers. Clients declare them. */
const extensionsOf = ({ _tag }: Definition): OAuth["extensions"] => {
  switch (_tag) {
    case "ClientCredentials":
      return { "io.modelcontextprotocol/oauth-client-credentials": {} }
    case "IdentityAssertion":
      return { "io.modelcontextprotocol/enterprise-managed-authorization": {} }
    default:
      return undefined
  }
}

/**
 * Identifies who has signed in: by the ID token, else by the grant, which a refresh keeps. A grant without a person is
 * identified by its client. Tokens that cannot be read count as none: requests report that failure.
 */
const contextOf = (
  { definition, settings }: Environment,
  tokens: Effect.Effect<SavedTokens | undefined, OAuthError>
): Effect.Effect<string | undefined> =>
  Effect.matchEffect(tokens, {
    onFailure: () => Effect.undefined,
    onSuccess: (saved) => {
      if (saved === undefined) return Effect.undefined
      const { clientId, grantedAt, issuer, person } = saved
      const grant = definition._tag === "AuthorizationCode" ? grantedAt : undefined
      return Digest.sha256Base64Url(JSON.stringify([settings.account, issuer, clientId, person?.subject ?? grant]))
    }
  })

const fromServers = (environment: Environment, serverOf: FindServer): OAuth => ({
  extensions: extensionsOf(environment.definition),
  authorizationContext: (url) => contextOf(environment, serverOf(url).read),
  headers: (request) => serverOf(request.server ?? request.url).headers(request),
  refused: (challenge) => {
    const server = serverOf(challenge.server ?? challenge.url)
    server.nonce(challenge.header("dpop-nonce"))
    return server.refused(challenge, challenge.authorization?.replace(/^\S+ +/, ""))
  },
  replied: ({ header, server, url }) => {
    const nonce = environment.settings.dpop === "never" ? undefined : header("dpop-nonce")
    if (nonce !== undefined) serverOf(server ?? url).nonce(nonce)
  },
  signIn: Effect.fnUntraced(function*(url) {
    const parsed = yield* parse(url)
    const { resourceMetadata, scope } = yield* probe(environment.outbound, parsed)
    yield* serverOf(parsed).signIn(resourceMetadata, scope)
  }),
  signOut: Effect.fnUntraced(function*(url) {
    const server = serverOf(yield* parse(url))
    const tokens = yield* server.clear()
    if (tokens === undefined) return
    yield* Effect.catch(
      revokeTokens(environment, tokens),
      ({ message }) => Effect.logWarning("tokens were removed and not revoked", message)
    )
    yield* server.publish("signed-out")
  }),
  state: Effect.fnUntraced(function*(url) {
    const tokens = yield* serverOf(yield* parse(url)).read
    return tokens === undefined ? Option.none() : Option.some(stateOf(environment.definition, tokens))
  }),
  changes: Stream.fromPubSub(environment.changes),
  finish: Effect.fnUntraced(function*(params) {
    const { definition } = environment
    const state = params.get("state")
    if (definition._tag !== "AuthorizationCode" || state === null) {
      return yield* fail(
        new InvalidAuthorizationResponse({ message: "The answer has no state, so it belongs to no sign-in" })
      )
    }
    const url = new URL((yield* find(environment, state)).url)
    const server = serverOf(url)
    // The record is taken in the lock: a caller that does not get the lock can try again with the same answer.
    yield* server.replace(complete(environment, definition.options, state, params))
    yield* server.publish("signed-in")
    return url
  })
})

const stateOf = (definition: Definition, tokens: SavedTokens): SignInState => ({
  issuer: tokens.issuer,
  scopes: tokens.grantedScopes,
  expiresAt: tokens.expiresAt,
  isRenewable: tokens.refreshToken !== undefined || definition._tag !== "AuthorizationCode",
  clientId: tokens.clientId,
  registration: tokens.registration,
  person: tokens.person
})

/**
 * Revokes the refresh token, which ends the grant, and then the access token. Servers whose access tokens are JWTs may be
 * unable to revoke them (`unsupported_token_type`: RFC 7009, 2.2.1): with the grant ended, that is not a failure.
 */
const revokeTokens = Effect.fnUntraced(function*(
  environment: Environment,
  tokens: SavedTokens
): Effect.fn.Return<void, OAuthError> {
  const { definition, outbound } = environment
  // The tokens go to their own issuer, whatever the server names now.
  const server = yield* serverMetadataOf(outbound, tokens.issuer)
  if (server?.revocation_endpoint === undefined) return
  const client = definition._tag === "AuthorizationCode"
    ? yield* knownClient(environment, definition.options, server, tokens.clientId)
    : yield* grantClient(environment, server, definition)
  const access = revoke(outbound, server, client, tokens.accessToken, "access_token")
  if (tokens.refreshToken === undefined) return yield* access
  // The access token is revoked even if the refresh token was not.
  const grant = yield* Effect.exit(revoke(outbound, server, client, tokens.refreshToken, "refresh_token"))
  yield* Effect.catch(
    access,
    (error) =>
      error.reason._tag === "TokenRequestFailed" && error.reason.error === "unsupported_token_type"
        ? Effect.void
        : Effect.fail(error)
  )
  yield* grant
})

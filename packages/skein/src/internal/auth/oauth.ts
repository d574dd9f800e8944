/**
 * Credentials that obtain and renew their tokens themselves: an OAuth 2.1 client for MCP servers.
 */
import * as Core from "@skein/auth/OAuth"
import * as CoreOutbound from "@skein/auth/Outbound"
import type * as CoreSignIn from "@skein/auth/SignIn"
import type * as CoreStore from "@skein/auth/TokenStore"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { layerOf } from "../base/definition.ts"
import type { Credentials } from "../base/http.ts"
import type { Duration } from "../base/types.ts"
import { asksPerson, coreGrant } from "./core.ts"
import type { OAuthError } from "./errors.ts"
import type { PersonGrant, ProgramGrant } from "./grant.ts"
import type { SignIn } from "./signIn.ts"
import { memoryTokenStore, type TokenStore } from "./tokenStore.ts"

/** An event of one server. */
export interface SignInChange {
  readonly url: URL
  /**
   * `signing-in`: a person is asked. `refreshing`: tokens are renewed without a person. `signed-in`: tokens were obtained or
   * renewed. `failed`: they were not; the last `signed-in` may still be valid. `signed-out`: they were removed.
   */
  readonly status: "signing-in" | "refreshing" | "signed-in" | "failed" | "signed-out"
  /** The reason of `failed`. */
  readonly error?: OAuthError | undefined
}

/** Deviations of one server from the specification. */
export interface ServerOptions {
  /** The URL of its protected resource metadata, also of another origin. Found from its challenge and its own URL by default. */
  readonly resourceMetadata?: string | undefined
  /** The `resource` parameter of requests for this server, byte for byte; `omit` leaves it out. */
  readonly resource?: string | undefined
  /** Whether its authorization server supports PKCE with S256 although it does not announce it. `false` by default. */
  readonly assumePkce?: boolean | undefined
}

/** A part of the standard `fetch`. It must not follow redirects. */
export type OutboundFetch = (url: string, init: {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body?: string
  readonly redirect: "manual"
  readonly signal: AbortSignal
}) => Promise<Response>

/** The requests for metadata, registrations and tokens. */
export interface OutboundOptions {
  /** Makes the requests. The global `fetch` by default. */
  readonly fetch?: OutboundFetch | undefined
  /**
   * Whether requests to private, loopback and other special addresses fail, on Node. The addresses of metadata come from servers,
   * so set it in a program that runs on a server. False by default. Not together with `fetch`.
   */
  readonly refusePrivateAddresses?: boolean | undefined
  /** The size of the body of one answer, in bytes. 262,144 by default. A larger one fails the request. */
  readonly maxDocumentBytes?: number | undefined
  /** The time of one request with its whole answer. 10 seconds by default. Then the request fails. */
  readonly requestTimeout?: Duration | undefined
}

/** The options of `OAuth.make` that every grant has. */
export interface OAuthPolicy {
  /** The place for tokens: the memory of this process by default. */
  readonly store?: TokenStore | undefined
  /** The id of the user in your application, where several users share a store. `""` by default. */
  readonly account?: string | undefined
  /** The scopes to request. By default those of the server's challenge, else all that its metadata lists. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /** Whether to request a refresh token (`offline_access`) where the authorization server lists it. `true` by default. */
  readonly offlineAccess?: boolean | undefined
  /**
   * Whether tokens are bound to a key (DPoP, RFC 9449): `auto` by default, where both the server and the authorization server ask
   * for it; `always`; or `never`.
   */
  readonly dpop?: "auto" | "always" | "never" | undefined
  /** The issuers of authorization servers that support PKCE with S256 and do not announce it. Empty by default. */
  readonly assumePkce?: ReadonlyArray<string> | undefined
  /** A token with a shorter remaining lifetime is refreshed before a request: 30 seconds by default. */
  readonly minTokenLifetime?: Duration | undefined
  /** The time for which a person is not asked again: 1 minute by default. `signIn` asks at any time. */
  readonly signInInterval?: Duration | undefined
  /** The time in which a sign-in can be finished with its answer: 10 minutes by default. */
  readonly signInTimeout?: Duration | undefined
  /** Deviations of single servers from the specification, by their URLs. Empty by default. */
  readonly servers?: Readonly<Record<string, ServerOptions>> | undefined
  /**
   * The `resource` parameter (RFC 8707) for the servers that are not in `servers`. By default the `resource` of the server's
   * metadata. `omit` leaves it out, for authorization servers that refuse it.
   */
  readonly resource?: string | undefined
  /** The requests for metadata and tokens. */
  readonly outbound?: OutboundOptions | undefined
}

/** Options of `OAuth.make`: a grant, with a way to ask a person if it needs one. */
export type OAuthOptions =
  & OAuthPolicy
  & (
    | {
      /** How tokens are obtained. */
      readonly grant: PersonGrant
      /** How a person is asked: `loopback`, `pasteSignIn`, `webSignIn` or `customSignIn`. */
      readonly signIn: SignIn
    }
    | { readonly grant: ProgramGrant; readonly signIn?: undefined }
  )

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
  /** The person who signed in, by the ID token of the sign-in. Show it, and do not base a permission on it. */
  readonly person: { readonly subject: string; readonly name?: string } | undefined
}

/**
 * Credentials of a client over HTTP, and the ways to sign in and out. Its promises reject with `OAuthError`.
 *
 * A server is identified by the URL that its client was given: pass the same text to `signIn`, `signOut` and `state`.
 */
export interface OAuth extends Credentials, AsyncDisposable {
  /** Signs in now, instead of at the first refusal. Rejects with `SignInRequired` if a person has to be redirected. */
  readonly signIn: (url: URL | string) => Promise<void>
  /** Removes the tokens for a server, and revokes them where the authorization server supports it (RFC 7009). */
  readonly signOut: (url: URL | string) => Promise<void>
  /** Returns the state of the tokens for a server: undefined if no person has signed in there. */
  readonly state: (url: URL | string) => Promise<SignInState | undefined>
  /** The events of all servers from now on, until `close`. Slow readers lose the oldest: 64 wait for them. */
  readonly changes: AsyncIterable<SignInChange>
  /**
   * Ends a sign-in with the parameters of the redirect URI, in any process that shares the store. Returns the URL of the server.
   * Each sign-in can be finished once, and only by the `account` that began it: bind the account to the session of the browser.
   *
   * @example
   * const url = await oauth.finish(new URL(request.url).searchParams)
   */
  readonly finish: (params: URLSearchParams) => Promise<URL>
  /** Releases its store. Close the clients that use it before. */
  readonly close: () => Promise<void>
}

/** The stores that are open: programs with one store value share its locks and its connections. */
const memoMap = Layer.makeMemoMapUnsafe()

const outboundOf = async (options: OutboundOptions | undefined): Promise<CoreOutbound.Outbound | undefined> => {
  if (options?.refusePrivateAddresses !== true) return options && CoreOutbound.make(options as CoreOutbound.Options)
  if (options.fetch !== undefined) {
    throw new TypeError("outbound: refusePrivateAddresses checks the addresses of its own requests, so leave out fetch")
  }
  const { make } = await import("@skein/auth/NodeOutbound")
  return make({ ...options, refusePrivateAddresses: true })
}

const make = async (options: OAuthOptions): Promise<OAuth> => {
  const { grant, outbound, signIn, store = memoryTokenStore(), ...policy } = options
  if (asksPerson(grant) && signIn === undefined) {
    throw new TypeError("Grant.authorizationCode asks a person, so it needs a way to do so: signIn: loopback()")
  }
  const services = Layer.mergeAll(
    layerOf(store) as Layer.Layer<CoreStore.TokenStore, unknown>,
    signIn === undefined ? Layer.empty : layerOf(signIn) as Layer.Layer<CoreSignIn.SignIn>
  )
  const scope = Scope.makeUnsafe()
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  try {
    const context = await Effect.runPromise(Layer.buildWithMemoMap(services, memoMap, scope))
    // stdout may carry the messages of a server on stdio.
    const run = Effect.runPromiseWith(Context.add(context, References.LogToStderr, true))
    const core = await run(Core.make({ ...policy, grant: coreGrant(grant), outbound: await outboundOf(outbound) }))
    const closed = Deferred.makeUnsafe<void>()
    await run(Scope.addFinalizer(scope, Deferred.succeed(closed, undefined)))
    const { authorizationContext, extensions, headers, replied } = core
    // A client calls it, whose logs go to stdout.
    const refused: typeof core.refused = (challenge) =>
      Effect.provideService(core.refused(challenge), References.LogToStderr, true)
    const oauth = {
      signIn: (url: URL | string) => run(core.signIn(url)),
      signOut: (url: URL | string) => run(core.signOut(url)),
      state: async (url: URL | string) => Option.getOrUndefined(await run(core.state(url))),
      changes: Stream.toAsyncIterable(Stream.interruptWhen(core.changes, Deferred.await(closed))),
      finish: (params: URLSearchParams) => run(core.finish(params)),
      close,
      [Symbol.asyncDispose]: close
    }
    // A transport reads these members.
    const credentials = { authorizationContext, extensions, headers, refused, replied }
    return Object.assign(oauth, credentials) as unknown as OAuth
  } catch (error) {
    await close()
    throw error
  }
}

/** Makes `OAuth`s. */
export const OAuth: {
  /**
   * Makes an `OAuth`, once per account and grant, for any number of servers and clients. Give it to a client as the `credentials`
   * of its server. The first refusal starts the sign-in: the authorization server is discovered, the client is registered where
   * needed, and the grant obtains a token, which is stored, renewed, and extended by the scopes that servers require. Rejects with
   * `OAuthError`, or with the `TokenStoreError` of a store that cannot be opened.
   *
   * @example
   * const oauth = await OAuth.make({
   *   grant: Grant.authorizationCode({ clientName: "Tea House" }),
   *   signIn: loopback({ name: "Tea House" }),
   *   store: fileTokenStore({ app: "teahouse" })
   * })
   * const client = await AsyncClient.connect({ url, credentials: oauth })
   */
  readonly make: (options: OAuthOptions) => Promise<OAuth>
} = { make }

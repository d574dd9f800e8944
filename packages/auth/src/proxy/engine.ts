/**
 * The authorization server of the proxy and of the development server: `oidc-provider` with what MCP needs switched on,
 * and without sessions, pages and console output of its own.
 */
import type { EventEmitter } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import type {
  Client,
  Configuration,
  errors as Errors,
  InteractionResults,
  JWKS,
  KoaContextWithOIDC,
  Provider
} from "oidc-provider"
import { clip } from "@skein/protocol/Text"
import { isRedirectLoopback, textOf } from "../shared/web.ts"
import { type AdapterOptions, makeAdapter } from "./adapter.ts"
import { html, page, pageHeaders } from "./html.ts"

/** Where people answer: `<path>/<interaction>`. */
export const interactionPath = "/interaction/"

/** The rights that a verified assertion gives. */
export interface VerifiedAssertion {
  readonly accountId: string
  /** The resource that the assertion names. */
  readonly resource: string | undefined
  /** The scopes that the token may have. */
  readonly scopes: ReadonlyArray<string>
}

export interface EngineOptions extends AdapterOptions {
  readonly issuer: string
  readonly jwks: JWKS
  readonly alg: "ES256" | "RS256" | "PS256" | "EdDSA"
  readonly scopes: ReadonlyArray<string>
  /** The scopes of a request without `scope` (RFC 6749, 3.3). The engine would refuse it, and MCP clients may omit it. */
  readonly defaultScopes: ReadonlyArray<string>
  readonly cookieKeys: ReadonlyArray<string>
  readonly accessTokenSeconds: number
  readonly refreshTokenSeconds: number
  readonly signInSeconds: number
  /** The resource of a request without `resource` (RFC 8707). */
  readonly defaultResource: string | undefined
  readonly isResource: (resource: string) => boolean
  readonly accessTokenFormat: "jwt" | "opaque"
  /** Differs from server to server, since cookies do not tell ports apart. */
  readonly cookiePrefix: string
  /**
   * Throws if the metadata of a client is refused, and may correct it. Runs for every client: registered, stored, or of a
   * document.
   */
  readonly checkClient?: ((metadata: Record<string, unknown>) => void) | undefined
  /**
   * Verifies an assertion of another issuer for a client that is authenticated. Fails with an error of the engine. Without
   * it the JWT bearer grant is not supported.
   */
  readonly verifyAssertion?: ((assertion: string, client: Client) => Promise<VerifiedAssertion>) | undefined
  /** The engine's own options that the two servers choose differently. */
  readonly configuration: Partial<Configuration> & { readonly features: NonNullable<Configuration["features"]> }
  /** Logs a problem. `detail` never contains a token. */
  readonly onProblem: (event: string, detail: Readonly<Record<string, unknown>>) => void
}

export interface Engine {
  readonly provider: Provider
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
}

const problem = (error: unknown): Readonly<Record<string, unknown>> => {
  const { error: code, error_description: description, error_detail: detail } = error as Errors.OIDCProviderError
  if (code !== undefined) return { error: code, description, detail }
  return { error: error instanceof Error ? error.stack ?? error.message : String(error) }
}

/** The names of the engine's events that report a refusal. */
const refusals = [
  "authorization.error",
  "grant.error",
  "registration_create.error",
  "revocation.error",
  "introspection.error",
  "userinfo.error",
  "server_error"
]

/** The longest redirect URI, in characters: the whole of it is shown to the person. */
const maxRedirectChars = 2_048

/**
 * Whether a redirect URI is one text for all who read it. `URL` drops tabs, line ends and outer spaces, takes a backslash
 * for a slash, and adds slashes after `https:`. So another URI would be stored and sent than the one that was checked.
 * `URL` also compares the ports of loopback URIs, so this holds for the URI of each request too.
 */
const isPlainRedirect = (uri: string): boolean =>
  uri.length <= maxRedirectChars && /^[\x21-\x5b\x5d-\x7e]*$/.test(uri) && !/^https?:(?!\/\/[^/])/i.test(uri)

const notPlain =
  `it is longer than ${maxRedirectChars} characters, or has spaces, backslashes or characters that are not ASCII`

/** The text of an error page. Texts of the request are escaped, and a description of the engine names no secret. */
const errorPage = (out: Readonly<Record<string, unknown>>): string => {
  const described = typeof out["error_description"] === "string" ? out["error_description"] : "no further description"
  const isUnknown = out["error"] === "invalid_client"
  return page(
    "This request cannot be answered",
    html`<h1>This request cannot be answered</h1>
<p>The application sent an authorization request that this server refuses. ${
      isUnknown
        ? "It is not registered here, or no longer. Cancel the sign-in there, and start it again."
        : "You can close this page and start again in the application."
    }</p>
<dl><dt>Error</dt><dd><code>${clip(String(out["error"]))}</code></dd><dt>Description</dt><dd>${
      clip(described, maxRedirectChars)
    }</dd></dl>`
  )
}

/**
 * Removes the engine's session cookie from a request, so that each authorization request asks the person, and a second
 * person in the same browser is not taken for the first.
 */
const withoutSession = (request: IncomingMessage, name: string): void => {
  const { cookie } = request.headers
  if (cookie === undefined) return
  const rest = cookie.split("; ").filter((pair) => !pair.startsWith(`${name}=`) && !pair.startsWith(`${name}.sig=`))
  if (rest.length === 0) delete request.headers.cookie
  else request.headers.cookie = rest.join("; ")
}

/** The configuration of the engine for the tokens of a resource. */
const resourceServerOf = (
  { accessTokenFormat, accessTokenSeconds, alg, scopes }: EngineOptions,
  resource: string
): ConstructorParameters<Provider["ResourceServer"]>[1] => ({
  scope: scopes.join(" "),
  audience: resource,
  accessTokenFormat,
  accessTokenTTL: accessTokenSeconds,
  ...accessTokenFormat === "jwt" && { jwt: { sign: { alg } } }
})

/** The name of the JWT bearer grant. */
export const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

/**
 * Adds the JWT bearer grant (RFC 7523, 2.1), which the engine does not have: an assertion of another issuer becomes an
 * access token. The tokens have no grant, and no refresh token: the client presents another assertion.
 */
const addAssertionGrant = (
  provider: Provider,
  options: EngineOptions,
  verify: NonNullable<EngineOptions["verifyAssertion"]>
): void => {
  const { errors } = options.library
  const handler = async (ctx: KoaContextWithOIDC) => {
    const { client, params } = ctx.oidc
    if (client === undefined) throw new errors.InvalidClient("client authentication is required")
    const assertion = textOf(params?.["assertion"])
    if (assertion === undefined) throw new errors.InvalidRequest("missing required parameter(s): assertion")
    const allowed = await verify(assertion, client)
    const resource = textOf(params?.["resource"]) ?? allowed.resource ?? options.defaultResource
    if (
      resource === undefined || !options.isResource(resource) ||
      (allowed.resource !== undefined && allowed.resource !== resource)
    ) {
      throw new errors.InvalidTarget("the resource is missing or unknown, or is not that of the assertion")
    }
    const wanted = textOf(params?.["scope"])?.split(" ") ?? allowed.scopes
    const scopes = options.scopes.filter((one) => wanted.includes(one) && allowed.scopes.includes(one))
    if (scopes.length === 0) {
      throw new errors.InvalidScope("the assertion allows none of the requested scopes", wanted.join(" "))
    }
    const scope = scopes.join(" ")
    const token = new provider.AccessToken({ accountId: allowed.accountId, client, gty: jwtBearer, scope } as never)
    const server = resourceServerOf({ ...options, accessTokenFormat: "jwt" }, resource)
    token.resourceServer = new provider.ResourceServer(resource, server)
    const value = await token.save()
    ctx.body = { access_token: value, expires_in: token.expiration, scope, token_type: "Bearer" }
  }
  provider.registerGrantType(jwtBearer, handler, ["assertion", "scope", "resource"], [])
}

/** Makes an authorization server. It has no port of its own. */
export const makeEngine = (options: EngineOptions): Engine => {
  const { accessTokenSeconds, configuration, cookiePrefix, defaultResource, isResource, issuer, scopes } = options
  const { errors, interactionPolicy } = options.library
  const secure = issuer.startsWith("https:")
  const session = `${cookiePrefix}session`
  const renderError = (ctx: Pick<KoaContextWithOIDC, "body" | "set">, out: object): void => {
    for (const [name, value] of Object.entries(pageHeaders)) ctx.set(name, value)
    ctx.body = errorPage(out as Readonly<Record<string, unknown>>)
  }
  const policy = interactionPolicy.base()
  // Every authorization request asks. A remembered consent is what an attacker's request would ride on (confused deputy).
  policy.get("login")!.checks.add(
    new interactionPolicy.Check("asked", "the person is asked each time", (ctx) => ctx.oidc.result?.login === undefined)
  )
  const provider = new options.library.Provider(issuer, {
    adapter: makeAdapter(options),
    jwks: options.jwks,
    clientDefaults: {
      id_token_signed_response_alg: options.alg,
      // A native application may use any port of loopback (RFC 8252, 7.3), and clients before 2026-07-28 and documents
      // name no type.
      application_type: "native",
      grant_types: ["authorization_code"],
      response_types: ["code"]
    },
    // Resources check their own scopes. They are listed here too, for the metadata.
    scopes: ["openid", "offline_access", ...scopes],
    extraClientMetadata: {
      // Without a property the validator does not run.
      properties: ["checked"],
      validator: (_ctx, _name, _value, metadata) => {
        // Both official SDKs register with the scopes of the first challenge. The engine would bind the client to them
        // and refuse every step-up, and refuse a registration with a scope that it does not know. The scopes of
        // the server and the person decide about the scopes of a client. A server may replace requested metadata (RFC
        // 7591, 2).
        delete metadata["scope"]
        for (const uri of [metadata["redirect_uris"] ?? []].flat()) {
          if (typeof uri !== "string" || !isPlainRedirect(uri)) {
            throw new errors.InvalidClientMetadata(`a redirect URI is refused: ${notPlain}`)
          }
        }
        options.checkClient?.(metadata)
      }
    },
    // OAuth 2.1 has no implicit grant, which the engine would offer for ID tokens.
    responseTypes: ["code"],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed("refresh_token"),
    expiresWithSession: () => false,
    interactions: { policy, url: (_ctx, interaction) => interactionPath + interaction.uid },
    cookies: {
      keys: [...options.cookieKeys],
      names: { session, interaction: `${cookiePrefix}interaction`, resume: `${cookiePrefix}resume` },
      long: { httpOnly: true, sameSite: "lax", secure, signed: true },
      short: { httpOnly: true, sameSite: "lax", secure, signed: true }
    },
    // A browser of any origin may ask for tokens: it needs a code, its verifier, and no cookie.
    clientBasedCORS: () => true,
    renderError,
    ttl: {
      AccessToken: accessTokenSeconds,
      ClientCredentials: accessTokenSeconds,
      AuthorizationCode: 60,
      IdToken: 3600,
      RefreshToken: options.refreshTokenSeconds,
      Grant: options.refreshTokenSeconds,
      Interaction: options.signInSeconds,
      Session: options.signInSeconds
    },
    ...configuration,
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => defaultResource ?? [],
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => {
          if (!isResource(resource)) throw new errors.InvalidTarget(`the resource is unknown here: ${resource}`)
          return resourceServerOf(options, resource)
        }
      },
      ...configuration.features
    }
  })
  provider.use(async (ctx, next) => {
    if (ctx.path === "/auth") {
      const redirectUris = [ctx.query["redirect_uri"] ?? []].flat()
      if (!redirectUris.every(isPlainRedirect)) {
        ctx.status = 400
        return renderError(ctx, { error: "invalid_redirect_uri", error_description: notPlain })
      }
      if ((ctx.query["scope"] ?? "") === "") ctx.query = { ...ctx.query, scope: options.defaultScopes.join(" ") }
    }
    await next()
  })
  // A page of any origin may register, as every program may. The engine answers pages at its other endpoints only.
  provider.use(async (ctx, next) => {
    if (ctx.path !== "/reg") return next()
    ctx.set("access-control-allow-origin", "*")
    if (ctx.method !== "OPTIONS") return next()
    ctx.set("access-control-allow-methods", "POST")
    ctx.set("access-control-allow-headers", "content-type")
    ctx.set("access-control-max-age", "3600")
    ctx.status = 204
  })
  if (options.verifyAssertion !== undefined) addAssertionGrant(provider, options, options.verifyAssertion)
  // The types of the provider name each event with its own arguments. Those of all refusals are a context and an error.
  const emitter = provider as unknown as EventEmitter
  for (const event of refusals) {
    emitter.on(event, (_ctx: unknown, error: unknown) => options.onProblem(event, problem(error)))
  }
  // Without a listener Koa writes the errors of its middleware to the console.
  emitter.on("error", (error: unknown) => options.onProblem("error", problem(error)))
  let handle: ReturnType<Provider["callback"]> | undefined
  return {
    provider,
    handle: (request, response) => {
      withoutSession(request, session)
      // Not earlier: middleware that is added later would not run.
      handle ??= provider.callback()
      void handle(request, response)
    }
  }
}

/** The parameters of an authorization request, as the engine stores them. */
export interface RequestParams {
  readonly client_id: string
  readonly redirect_uri: string
  readonly scope?: string | undefined
  readonly resource?: string | ReadonlyArray<string> | undefined
  readonly login_hint?: string | undefined
}

/** The interaction of a person. Fails without its cookie, which only the browser has that began it. */
export const interactionOf = async (provider: Provider, request: IncomingMessage, response: ServerResponse) => {
  const { params, uid } = await provider.interactionDetails(request, response)
  return {
    uid,
    params: params as unknown as RequestParams,
    /** Whether the request is for the page of this interaction. */
    isRequested: (request.url ?? "").split("?")[0] === interactionPath + uid,
    finish: (result: InteractionResults) =>
      provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }
}

/** The result of an interaction whose person did not agree. */
export const denied: InteractionResults = {
  error: "access_denied",
  error_description: "the user did not agree"
}

/** The scopes of the resource that a request asks for. */
export const requestedScopes = ({ scope }: RequestParams, scopes: ReadonlyArray<string>): ReadonlyArray<string> => {
  const requested = (scope ?? "").split(" ")
  return scopes.filter((one) => requested.includes(one))
}

/** Grants a request what it asked for, and returns the id of the grant. */
export const grantRequest = async (
  provider: Provider,
  params: RequestParams,
  accountId: string,
  options: Pick<EngineOptions, "scopes" | "defaultResource">
): Promise<string> => {
  const requested = (params.scope ?? "").split(" ")
  const grant = new provider.Grant({ accountId, clientId: params.client_id })
  // A scope of a resource is one of the server's own too (see `scopes` above), so it is granted as both.
  grant.addOIDCScope(["openid", "offline_access", ...options.scopes].filter((one) => requested.includes(one)).join(" "))
  const resources = params.resource ?? options.defaultResource
  for (const resource of typeof resources === "string" ? [resources] : resources ?? []) {
    const scope = requestedScopes(params, options.scopes).join(" ")
    if (scope !== "") grant.addResourceScope(resource, scope)
  }
  return grant.save()
}

/** Where a redirect URI leads, in words for a person. */
export const describeRedirect = (redirectUri: string): { readonly where: string; readonly local: boolean } => {
  const url = URL.parse(redirectUri)
  if (url === null) return { where: redirectUri, local: false }
  const local = url.protocol === "http:" && isRedirectLoopback(url.hostname)
  return { where: url.host === "" ? url.protocol : `${url.protocol}//${url.host}`, local }
}

/** The longest name of a client on a page, in characters. */
const maxClientNameChars = 80

/** The name of a client, as it registered it, shortened. It is the client's claim, not a fact. */
export const clientNameOf = async (provider: Provider, clientId: string): Promise<string> =>
  clip((await provider.Client.find(clientId))?.clientName ?? clientId, maxClientNameChars)

/**
 * The scope of a request as its person has to know it. The engine removes `offline_access` from requests without
 * `prompt=consent`, and such clients get refresh tokens too.
 */
export const scopeToShow = async (provider: Provider, { client_id, scope = "" }: RequestParams): Promise<string> =>
  (await provider.Client.find(client_id))?.grantTypeAllowed("refresh_token") === true
    ? `${scope} offline_access`
    : scope

/** The engine of a proxy: `oidc-provider` with the clients, scopes and tokens of its options. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { IncomingMessage } from "node:http"
import type { ClientMetadata, JWK } from "oidc-provider"
import { isRedirectLoopback } from "../shared/web.ts"
import { documentProblem, isDocumentId, type makeClientDocuments } from "./clientDocuments.ts"
import { type Engine, jwtBearer, makeEngine } from "./engine.ts"
import { makeIdentityAssertions } from "./identityAssertions.ts"
import type { Library } from "./library.ts"
import type { Options, RegisteredClient } from "./proxyOptions.ts"
import type { Resolved } from "./resolveOptions.ts"
import type { SealedStore } from "./sealedRecords.ts"
import type { Sealing } from "./sealing.ts"
import type { ProxyStoreError } from "./store.ts"

/** The bytes of the key set of a client. */
const maxKeysBytes = 65_536

export interface EngineParts {
  readonly documents: ReturnType<typeof makeClientDocuments>
  /** Whether the sender of a request may have another document fetched. */
  readonly allowsDocument: (request: IncomingMessage | undefined) => boolean
  /** Whether a grant still has its upstream. */
  readonly exists: (grant: string) => Effect.Effect<boolean, ProxyStoreError>
  readonly library: Library
  readonly key: JWK
  readonly resolved: Resolved
  readonly sealing: Sealing
  readonly store: SealedStore
  readonly onProblem: (event: string, detail: Readonly<Record<string, unknown>>) => void
}

/** The prefix of the cookies of a proxy. It names the port, since cookies do not tell ports apart. */
export const cookiePrefixOf = ({ originUrl }: Resolved): string => `skein_${originUrl.port}_`

/** Schemes that a browser or a system runs, or reads files with. */
const dangerous = new Set([
  ...["javascript:", "data:", "vbscript:", "file:", "blob:", "about:", "filesystem:", "view-source:"],
  ...["ftp:", "ws:", "wss:", "mailto:", "tel:", "chrome:", "ms-appinstaller:", "search-ms:"]
])

/**
 * Why a redirect URI is not allowed, or `undefined`. `allowed` has exact addresses, and `loopback` for every port and
 * path of this computer.
 */
export const redirectProblem = (uri: string, allowed: ReadonlyArray<string> | undefined): string | undefined => {
  const url = URL.parse(uri)
  if (url === null) return "it is not a URL"
  if (url.hash !== "" || url.username !== "" || url.password !== "") return "it has a fragment or a user name"
  const local = url.protocol === "http:" && isRedirectLoopback(url.hostname)
  if (url.protocol === "http:" && !local) return "http is for loopback only"
  if (dangerous.has(url.protocol)) return `the scheme ${url.protocol} is not allowed`
  if (allowed === undefined) return undefined
  return allowed.includes(uri) || (local && allowed.includes("loopback")) ? undefined : "this server does not allow it"
}

/**
 * Whether a redirect URI is https on this computer: of a web application that is being developed. The engine does not
 * accept it of native applications.
 */
const isLocalHttps = (uri: string): boolean => {
  const url = URL.parse(uri)
  return url !== null && url.protocol === "https:" && isRedirectLoopback(url.hostname)
}

/** The metadata of a client that was registered by hand. */
const metadataOf = (clientId: string, client: RegisteredClient, canAssert: boolean): ClientMetadata => {
  const { clientName, clientSecret, jwks, redirectUris = [] } = client
  const authentication = jwks !== undefined
    ? "private_key_jwt"
    : clientSecret === undefined
    ? "none"
    : client.tokenEndpointAuthMethod ?? "client_secret_basic"
  const signsIn = redirectUris.length > 0
  return {
    client_id: clientId,
    client_name: clientName,
    ...clientSecret !== undefined && { client_secret: Redacted.value(clientSecret) },
    ...jwks !== undefined && { jwks: jwks as never },
    redirect_uris: [...redirectUris],
    response_types: signsIn ? ["code"] : [],
    grant_types: [
      ...signsIn ? ["authorization_code", "refresh_token"] : [],
      ...canAssert && authentication !== "none" ? [jwtBearer] : []
    ],
    token_endpoint_auth_method: authentication
  }
}

/** Makes the engine of a proxy. */
export const engineOf = (options: Options, parts: EngineParts): Engine => {
  const { allowsDocument, documents, exists, key, library, onProblem, resolved, sealing, store } = parts
  const { clientIdMetadataDocuments: hosts, clients = {}, identityProviders = [] } = options
  const canAssert = identityProviders.length > 0
  return makeEngine({
    ...resolved,
    library,
    onProblem,
    records: store.records,
    issuer: resolved.origin,
    jwks: { keys: [key] },
    alg: "ES256",
    scopes: options.scopes,
    cookieKeys: sealing.cookieKeys,
    defaultResource: options.resource,
    isResource: (resource) => resource === options.resource,
    accessTokenFormat: "jwt",
    cookiePrefix: cookiePrefixOf(resolved),
    checkClient: (metadata) => {
      const redirectUris = [metadata["redirect_uris"] ?? []].flat().map(String)
      if (redirectUris.some(isLocalHttps)) metadata["application_type"] = "web"
      if (isDocumentId(String(metadata["client_id"])) && typeof metadata["client_name"] !== "string") {
        throw new library.errors.InvalidClientMetadata("the document has no client_name")
      }
      for (const uri of redirectUris) {
        const problem = redirectProblem(uri, options.redirectUris)
        if (problem !== undefined) {
          throw new library.errors.InvalidClientMetadata(`a redirect URI is refused: ${problem}`)
        }
      }
    },
    verifyAssertion: canAssert
      ? makeIdentityAssertions({
        library,
        store,
        issuer: resolved.origin,
        scopes: options.scopes,
        providers: identityProviders
      })
      : undefined,
    configuration: {
      clients: Object.entries(clients).map(([id, client]) => metadataOf(id, client, canAssert)),
      findAccount: (_ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
      // "validate third-party token status before honoring" (2025-03-26, third-party authorization flow): a client whose
      // upstream is gone gets `invalid_grant` and signs in again. A new token would only be refused.
      extraTokenClaims: async (_ctx, token) => {
        const grant = "grantId" in token ? token.grantId : undefined
        if (grant === undefined) return {}
        if (!await Effect.runPromise(exists(grant))) throw new library.errors.InvalidGrant("the sign-in has ended")
        return { grant }
      },
      claims: { openid: ["sub"] },
      fetch: (url, init) => documents.fetch(url, init as RequestInit),
      fetchResponseBodyLimits: { jwks_uri: maxKeysBytes, sector_identifier_uri: maxKeysBytes },
      features: {
        registration: { enabled: options.dynamicRegistration ?? true },
        clientIdMetadataDocument: {
          enabled: hosts !== false,
          ack: "draft-02",
          allowFetch: (ctx, clientId) => {
            const problem = documentProblem(clientId, typeof hosts === "object" ? hosts : undefined) ??
              (allowsDocument(ctx?.req) ? undefined : "too many documents: maxSignInsPerMinute")
            if (problem !== undefined) onProblem("client document", { url: clientId, error: problem })
            return problem === undefined
          }
        },
        dPoP: { enabled: options.dpop !== undefined },
        userinfo: { enabled: false }
      }
    }
  })
}

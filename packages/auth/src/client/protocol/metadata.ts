/**
 * The members that are read of the two metadata documents. Other members are dropped, and a member of another type
 * counts as absent.
 */

/** Protected resource metadata (RFC 9728, 2). */
export interface ResourceMetadata {
  readonly resource: string
  readonly authorizationServers: ReadonlyArray<string>
  readonly scopesSupported: ReadonlyArray<string> | undefined
  readonly dpopRequired: boolean
}

/** Authorization server metadata (RFC 8414, 2, and OpenID Connect Discovery 1.0, 3), with its names. */
export interface ServerMetadata extends Endpoints, Lists, Flags {
  readonly issuer: string
  /** These are the default endpoints of 2025-03-26: there is no metadata. */
  readonly isDefault?: boolean
  /** The answers that were found in the place of the metadata of the server, as a part of a message. */
  readonly seen?: string
}

type Endpoints = { readonly [name in typeof endpoints[number]]?: string }
type Lists = { readonly [name in typeof lists[number]]?: ReadonlyArray<string> }
type Flags = { readonly [name in typeof flags[number]]?: boolean }

type Json = Readonly<Record<string, unknown>>

const strings = (value: unknown): ReadonlyArray<string> | undefined =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : undefined

/** Reads protected resource metadata. `undefined` if `resource` is missing. */
export const resourceMetadata = (json: Json): ResourceMetadata | undefined => {
  const { authorization_servers, dpop_bound_access_tokens_required, resource, scopes_supported } = json
  return typeof resource !== "string" ? undefined : {
    resource,
    authorizationServers: strings(authorization_servers) ?? [],
    scopesSupported: strings(scopes_supported),
    dpopRequired: dpop_bound_access_tokens_required === true
  }
}

/** The endpoints that requests and people are sent to. */
export const endpoints = [
  "authorization_endpoint",
  "token_endpoint",
  "registration_endpoint",
  "revocation_endpoint"
] as const

const lists = [
  "scopes_supported",
  "code_challenge_methods_supported",
  "token_endpoint_auth_methods_supported",
  "revocation_endpoint_auth_methods_supported",
  "dpop_signing_alg_values_supported"
] as const

const flags = ["client_id_metadata_document_supported", "authorization_response_iss_parameter_supported"] as const

/** Reads authorization server metadata. `undefined` if `issuer` is missing. */
export const serverMetadata = (json: Json): ServerMetadata | undefined => {
  const { issuer } = json
  if (typeof issuer !== "string") return undefined
  const read: Record<string, unknown> = { issuer }
  // A boolean that a server writes as text would turn off a check: `"true"` counts as true.
  for (const name of flags) if (json[name] === true || json[name] === "true") read[name] = true
  for (const name of lists) {
    const list = strings(json[name])
    if (list !== undefined) read[name] = list
  }
  for (const name of endpoints) if (json[name] != null) read[name] = json[name]
  return read as unknown as ServerMetadata
}

/**
 * The endpoints of a server of 2025-03-26 that has no metadata (2025-03-26, Fallbacks for Servers without Metadata
 * Discovery). PKCE is required there, and cannot be announced.
 */
export const defaultServerMetadata = (server: URL): ServerMetadata => ({
  issuer: server.origin,
  authorization_endpoint: new URL("/authorize", server).href,
  token_endpoint: new URL("/token", server).href,
  registration_endpoint: new URL("/register", server).href,
  code_challenge_methods_supported: ["S256"],
  isDefault: true
})

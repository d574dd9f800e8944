/**
 * The dynamic registration of a client at an authorization server (RFC 7591). 2026-07-28 deprecates it: a client ID metadata
 * document is used where the program has one and the authorization server accepts it.
 */
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type { Outbound } from "../../shared/Outbound.ts"
import { parseObject, seconds, textOf } from "../../shared/web.ts"
import { fail, oauthError, quoteWithout } from "./errors.ts"
import type { ServerMetadata } from "./metadata.ts"
import { type OAuthError, RegistrationFailed } from "./OAuthError.ts"
import { type Answer, send } from "./send.ts"

/** A client that is about to be registered. */
export interface ClientToRegister {
  readonly clientName: string
  readonly clientUri: string | undefined
  readonly redirectUri: string
  readonly scopes: ReadonlyArray<string>
  /** 2026-07-28: "MCP clients MUST specify an appropriate application_type". */
  readonly applicationType: "native" | "web"
  /** Whether the client has a metadata document, which the authorization server does not support. For messages. */
  readonly hasDocument: boolean
}

/** A client that was registered. */
export interface NewRegistration {
  readonly clientId: string
  readonly clientSecret: string | undefined
  /** `token_endpoint_auth_method` of the answer. */
  readonly authenticationMethod: string | undefined
  /** In milliseconds since the epoch. */
  readonly secretExpiresAt: number | undefined
  readonly redirectUri: string
  readonly scopes: ReadonlyArray<string>
}

/** Fails with `RegistrationFailed`. */
export const registrationFailed = (
  { isDefault, issuer, seen = "" }: ServerMetadata,
  problem: string,
  status?: number,
  error?: string
): Effect.Effect<never, OAuthError> =>
  fail(
    new RegistrationFailed({
      message: `This client could not be registered with ${quote(issuer)}: ${problem}. ` +
        (isDefault === true
          ? "The server has no metadata for authorization, so the default endpoints of 2025-03-26 were tried. " +
            `It may require no sign-in, or credentials of another kind${seen}`
          : `Register a client there by hand and configure it (Grant.authorizationCode, client)${seen}`),
      issuer,
      status,
      error,
      seen
    })
  )

/** A longer client id does not fit into the URL of the sign-in, and would be stored for all later ones. */
const maxClientIdChars = 2_048

/** RFC 6749, A.1. */
const isClientId = (value: unknown): value is string =>
  typeof value === "string" && value.length <= maxClientIdChars && /^[\u0020-\u007e]+$/.test(value)

const isAccepted = ({ status }: Answer): boolean => status === 200 || status === 201

/** Whether a registration may have been refused because of its redirect URIs for its `application_type`. */
const isAboutRedirectUris = ({ status, text }: Answer): boolean => {
  const error = status === 400 ? parseObject(text)?.["error"] : undefined
  return error === "invalid_redirect_uri" || error === "invalid_client_metadata"
}

/**
 * Registers a client, and retries with the other `application_type` if its redirect URIs may have been refused for it. The
 * library demands the status 201 and `client_secret_expires_at`, which servers leave out, so it is not used.
 */
export const register = Effect.fnUntraced(function*(
  outbound: Outbound,
  server: ServerMetadata,
  { applicationType: type, clientName, clientUri, hasDocument, redirectUri, scopes }: ClientToRegister
): Effect.fn.Return<NewRegistration, OAuthError> {
  const { issuer, registration_endpoint } = server
  if (registration_endpoint === undefined) {
    return yield* registrationFailed(
      server,
      hasDocument
        ? "it supports neither client ID metadata documents nor dynamic registration"
        : "it offers no dynamic registration"
    )
  }
  const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"]
  const method = ["none", "client_secret_basic", "client_secret_post"].find((each) => methods.includes(each))
  const request = (applicationType: string) =>
    Effect.mapError(
      send(outbound, new URL(registration_endpoint), {
        method: "POST",
        headers: { accept: "application/json", "content-type": "application/json" },
        body: JSON.stringify({
          client_name: clientName,
          ...(clientUri === undefined ? {} : { client_uri: clientUri }),
          redirect_uris: [redirectUri],
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
          token_endpoint_auth_method: method ?? "none",
          application_type: applicationType,
          ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") })
        })
      }),
      (error) => oauthError(new RegistrationFailed({ message: `No client was registered: ${error.message}`, issuer }))
    )
  let answer = yield* request(type)
  let tried = ""
  if (isAboutRedirectUris(answer)) {
    // 2026-07-28: "Clients MAY retry registration with an adjusted application_type".
    const other = type === "native" ? "web" : "native"
    const second = yield* request(other)
    if (isAccepted(second)) answer = second
    else tried = ` (application_type ${quote(type)}, and ${quote(other)} was refused as well)`
  }
  const { status } = answer
  const json = parseObject(answer.text)
  if (!isAccepted(answer)) {
    const { error, error_description: description } = json ?? {}
    const code = typeof error === "string" ? error : undefined
    const text = typeof description === "string" ? `: ${quoteWithout(description, [])}` : ""
    return yield* registrationFailed(
      server,
      `it answered ${status}${code === undefined ? "" : ` ${quote(code)}`}${text}${tried}`,
      status,
      code
    )
  }
  const { client_id, client_secret, client_secret_expires_at: expires, token_endpoint_auth_method } = json ?? {}
  if (!isClientId(client_id)) {
    return yield* registrationFailed(server, "its answer has no client_id that can be used", status)
  }
  const expiry = seconds(expires)
  return {
    clientId: client_id,
    clientSecret: textOf(client_secret),
    authenticationMethod: typeof token_endpoint_auth_method === "string" ? token_endpoint_auth_method : undefined,
    // 0 means that it does not expire (RFC 7591, 3.2.1).
    secretExpiresAt: expiry === undefined || expiry === 0 || expiry >= 1e12 ? undefined : expiry * 1_000,
    redirectUri,
    scopes
  }
})

/**
 * Makes the errors of `OAuth` from those of its parts.
 */
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { OAuthError, type Reason, StoreFailed } from "./OAuthError.ts"
import * as Reasons from "./OAuthError.ts"
import type { TokenStoreError } from "../stores/TokenStoreError.ts"
import { formEncode } from "../../shared/web.ts"
import type { SendError } from "./send.ts"

/** An error with a reason. */
export const oauthError = (reason: Reason): OAuthError => new OAuthError({ reason })

/** A failed effect with a reason. */
export const fail = (reason: Reason): Effect.Effect<never, OAuthError> => Effect.fail(oauthError(reason))

/** The error of a store. */
export const storeFailed = (cause: TokenStoreError): OAuthError =>
  oauthError(new StoreFailed({ message: `The token store failed: ${cause.message}`, cause }))

/** The error of a request for metadata. */
export const discoveryFailed = (error: SendError): OAuthError =>
  oauthError(
    error.insecure
      ? new Reasons.InsecureUrl({ message: `Metadata names a URL that is refused: ${error.message}` })
      : new Reasons.DiscoveryFailed({ message: `Metadata could not be read: ${error.message}` })
  )

/** A text of the other side without the secrets that were sent to it, as they are and as they were written in a form. */
export const without = (text: string, secrets: ReadonlyArray<string>): string =>
  secrets
    .flatMap((secret) => [secret, formEncode(secret), encodeURIComponent(secret)])
    .reduce((text, secret) => secret === "" ? text : text.replaceAll(secret, "<redacted>"), text)

// RFC 6749, 4.1.2.1 and 5.2; RFC 7009, 2.2.1; RFC 7591, 3.2.2; RFC 8707, 2; RFC 9449, 5; RFC 6750, 3.1; GitHub.
const codes = new Set([
  "access_denied",
  "bad_refresh_token",
  "insufficient_scope",
  "invalid_client",
  "invalid_client_metadata",
  "invalid_dpop_proof",
  "invalid_grant",
  "invalid_redirect_uri",
  "invalid_request",
  "invalid_scope",
  "invalid_target",
  "invalid_token",
  "server_error",
  "slow_down",
  "temporarily_unavailable",
  "unauthorized_client",
  "unsupported_grant_type",
  "unsupported_token_type",
  "use_dpop_nonce"
])

/**
 * An error code of the other side without the secrets. A code that is known is not secret, even if a secret is a part of it,
 * and decides what to do: with a part cut out, a refresh token that is dead would be used again.
 */
export const codeWithout = (code: string, secrets: ReadonlyArray<string>): string =>
  codes.has(code) ? code : without(code, secrets)

/** Quotes a text of the other side, which may repeat in its error the secrets that were sent to it. */
export const quoteWithout = (text: string, secrets: ReadonlyArray<string>): string => quote(without(text, secrets))

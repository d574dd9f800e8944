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

/** Quotes a text of the other side, which may repeat in its error the secrets that were sent to it. */
export const quoteWithout = (text: string, secrets: ReadonlyArray<string>): string => quote(without(text, secrets))

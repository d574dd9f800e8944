/**
 * The errors of `OAuth`: a token was not obtained, renewed or revoked.
 *
 * The messages name servers, endpoints and options. They never contain a token, a code, a secret or a key. A part that
 * the authorization server wrote is quoted and shortened.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The members of a reason without details of its own. */
export interface MessageAndCause {
  readonly message: string
  readonly cause?: unknown
}

/**
 * The metadata of the server or of its authorization server could not be read: a network failure, a status, a timeout,
 * a document that is too large or incomplete. The user was not asked, and nothing was forgotten. Try again later.
 */
export class DiscoveryFailed extends PrintableError.tagged("DiscoveryFailed")<MessageAndCause> {}

/** The metadata that was found describes another resource than the server (RFC 9728, 3.3). It is not used. */
export class ResourceMismatch extends PrintableError.tagged("ResourceMismatch")<
  MessageAndCause & {
    /** The `resource` of the metadata. */
    readonly resource: string
  }
> {}

/**
 * An issuer is not the expected one: in the metadata of an authorization server (RFC 8414, 3.3), or because the
 * configured credentials belong to another authorization server. Nothing was sent to it.
 */
export class IssuerMismatch extends PrintableError.tagged("IssuerMismatch")<
  MessageAndCause & {
    readonly expected: string
    readonly actual: string
  }
> {}

/** The metadata does not promise PKCE with S256, so the code of the person could be stolen. See `assumePkce`. */
export class PkceUnsupported extends PrintableError.tagged("PkceUnsupported")<
  MessageAndCause & {
    readonly issuer: string
  }
> {}

/** A URL is neither https nor http on the loopback interface. Nothing was sent to it, and no person was sent there. */
export class InsecureUrl extends PrintableError.tagged("InsecureUrl")<MessageAndCause> {}

/** The client has no registration with the authorization server, and none could be made. */
export class RegistrationFailed extends PrintableError.tagged("RegistrationFailed")<
  MessageAndCause & {
    readonly issuer: string
    /** The HTTP status of a refused registration. */
    readonly status?: number | undefined
    /** The error code of a refused registration (RFC 7591, 3.2.2): `invalid_redirect_uri`, for example. */
    readonly error?: string | undefined
    /**
     * The answers in the places of metadata where there is none, in words, at the end of `message` too: sentences, each
     * after ". ".
     */
    readonly seen?: string | undefined
  }
> {}

/** The person has to open `url`. `OAuth.finish` ends the sign-in, in this process or another one. */
export class SignInRequired extends PrintableError.tagged("SignInRequired")<
  MessageAndCause & {
    readonly url: URL
  }
> {}

/** The person was not reached or did not come back. The `cause` is the `SignInError`. */
export class SignInFailed extends PrintableError.tagged("SignInFailed")<MessageAndCause> {}

/** The authorization server answered the person's sign-in with an error, `access_denied` for example. */
export class AuthorizationDenied extends PrintableError.tagged("AuthorizationDenied")<
  MessageAndCause & {
    /** The error code (RFC 6749, 4.1.2.1). */
    readonly error: string
  }
> {}

/**
 * An answer came back that does not belong to the sign-in: another `state`, another `iss`, a sign-in that is finished,
 * expired or of another account. Nothing in it was used.
 */
export class InvalidAuthorizationResponse
  extends PrintableError.tagged("InvalidAuthorizationResponse")<MessageAndCause>
{}

/**
 * The token endpoint gave no token, or the revocation endpoint did not revoke one. After a failure that is `retryable`
 * requests for tokens of the same server fail with it for a while, and the token endpoint is left alone (`maxRetryDelay`).
 */
export class TokenRequestFailed extends PrintableError.tagged("TokenRequestFailed")<
  MessageAndCause & {
    /** The error code (RFC 6749, 5.2): `invalid_grant`, for example. */
    readonly error?: string | undefined
    /** The HTTP status, if there was an answer. */
    readonly status?: number | undefined
    /** Whether a later attempt may succeed: a network failure, a timeout, or a status of 5xx or 429. */
    readonly retryable: boolean
    /** How long the authorization server asks to wait before another attempt, in milliseconds (`Retry-After`). */
    readonly retryAfter?: number | undefined
  }
> {}

/** The server refused a token that was issued for it a moment ago. A new sign-in would not help. */
export class TokenRefused extends PrintableError.tagged("TokenRefused")<MessageAndCause> {}

/**
 * The server requires scopes that were requested before and not granted, does not name the scopes it requires, or
 * requires more than 200, or new ones three times within `signInInterval`.
 */
export class InsufficientScope extends PrintableError.tagged("InsufficientScope")<
  MessageAndCause & {
    /** The scopes of the challenge. */
    readonly scopes: ReadonlyArray<string>
  }
> {}

/** A secret, a key or an assertion of the grant could not be obtained or read. */
export class CredentialUnavailable extends PrintableError.tagged("CredentialUnavailable")<MessageAndCause> {}

/** The token store failed. The `cause` is the `TokenStoreError`. */
export class StoreFailed extends PrintableError.tagged("StoreFailed")<MessageAndCause> {}

/** An option of `OAuth.make` or of a grant is invalid. */
export class InvalidOptions extends PrintableError.tagged("InvalidOptions")<MessageAndCause> {}

/** The reasons of an `OAuthError`. */
export type Reason =
  | DiscoveryFailed
  | ResourceMismatch
  | IssuerMismatch
  | PkceUnsupported
  | InsecureUrl
  | RegistrationFailed
  | SignInRequired
  | SignInFailed
  | AuthorizationDenied
  | InvalidAuthorizationResponse
  | TokenRequestFailed
  | TokenRefused
  | InsufficientScope
  | CredentialUnavailable
  | StoreFailed
  | InvalidOptions

/**
 * The failure of an `OAuth`. In a call of a client it is the `cause` of a `ClientError` with the reason `Unauthorized`.
 *
 * @example
 * oauth.signIn(url).pipe(
 *   Effect.catchReason("OAuthError", "SignInRequired", ({ url }) => redirectTo(url))
 * )
 */
export class OAuthError extends PrintableError.tagged("OAuthError")<{
  readonly reason: Reason
  readonly cause?: unknown
}> {
  constructor(fields: { readonly reason: Reason }) {
    const { cause, message } = fields.reason
    super({ reason: fields.reason, message, ...(cause === undefined ? {} : { cause }) })
  }
}

/**
 * The errors of `OAuth` and of token stores. Each is the class of `@skein/auth`, with a type without Effect. Their messages never
 * contain a token, a code, a secret or a key.
 */
import * as CoreOAuth from "@skein/auth/OAuthError"
import * as CoreSignIn from "@skein/auth/SignIn"
import * as CoreStore from "@skein/auth/TokenStoreError"

/** A reason by its tag, with further members. */
type Tagged<Tag extends string, Members = {}> = {
  readonly _tag: Tag
  readonly message: string
  readonly cause?: unknown
} & Members

/**
 * Why an `OAuth` failed:
 *
 * - `DiscoveryFailed`: the metadata of the server or of its authorization server could not be read. Try again later.
 * - `ResourceMismatch`: the metadata that was found describes another resource than the server.
 * - `IssuerMismatch`: an issuer is not the expected one. Nothing was sent to it.
 * - `PkceUnsupported`: the metadata does not promise PKCE with S256. See `assumePkce`.
 * - `InsecureUrl`: a URL is neither https nor http on the loopback interface.
 * - `RegistrationFailed`: the client has no registration with the authorization server, and none could be made.
 * - `SignInRequired`: the person has to open `url`. `finish` ends the sign-in.
 * - `SignInFailed`: the person was not reached or did not come back.
 * - `AuthorizationDenied`: the authorization server answered the sign-in with `error`, `access_denied` for example.
 * - `InvalidAuthorizationResponse`: an answer came back that does not belong to the sign-in.
 * - `TokenRequestFailed`: no token was issued, or none was revoked. A later attempt may succeed if it is `retryable`.
 * - `TokenRefused`: the server refused a token that was issued for it a moment ago.
 * - `InsufficientScope`: the server requires scopes that were requested before and not granted, or too many.
 * - `CredentialUnavailable`: a secret, a key or an assertion of the grant could not be obtained or read.
 * - `StoreFailed`: the token store failed. The `cause` is the `TokenStoreError`.
 * - `InvalidOptions`: an option of `OAuth.make` or of a grant is invalid.
 */
export type OAuthErrorReason =
  | Tagged<"DiscoveryFailed">
  | Tagged<"ResourceMismatch", { readonly resource: string }>
  | Tagged<"IssuerMismatch", { readonly expected: string; readonly actual: string }>
  | Tagged<"PkceUnsupported", { readonly issuer: string }>
  | Tagged<"InsecureUrl">
  | Tagged<"RegistrationFailed", {
    readonly issuer: string
    /** The HTTP status of a refused registration. */
    readonly status?: number | undefined
    /** The error code of a refused registration (RFC 7591, 3.2.2). */
    readonly error?: string | undefined
    /** The answers in the places of metadata where there is none, in words. */
    readonly seen?: string | undefined
  }>
  | Tagged<"SignInRequired", { readonly url: URL }>
  | Tagged<"SignInFailed">
  | Tagged<"AuthorizationDenied", {
    /** The error code (RFC 6749, 4.1.2.1). */
    readonly error: string
  }>
  | Tagged<"InvalidAuthorizationResponse">
  | Tagged<"TokenRequestFailed", {
    /** The error code (RFC 6749, 5.2). */
    readonly error?: string | undefined
    /** The HTTP status, if there was an answer. */
    readonly status?: number | undefined
    readonly retryable: boolean
    /** How long the authorization server asks to wait before another attempt, in milliseconds. */
    readonly retryAfter?: number | undefined
  }>
  | Tagged<"TokenRefused">
  | Tagged<"InsufficientScope", { readonly scopes: ReadonlyArray<string> }>
  | Tagged<"CredentialUnavailable">
  | Tagged<"StoreFailed">
  | Tagged<"InvalidOptions">

/** The failure of an `OAuth`. In a call of a client it is the `cause` of an error with the reason `Unauthorized`. */
export interface OAuthError extends Error {
  readonly _tag: "OAuthError"
  readonly reason: OAuthErrorReason
}

/** A class that programs do not construct. */
interface ErrorClass<E> {
  readonly [Symbol.hasInstance]: (value: unknown) => value is E
}

/**
 * The class of `OAuthError`, for `instanceof`.
 *
 * @example
 * if (error.cause instanceof OAuthError && error.cause.reason._tag === "SignInRequired") return redirectTo(error.cause.reason.url)
 */
export const OAuthError: ErrorClass<OAuthError> = CoreOAuth.OAuthError as never

/**
 * Why a token store failed:
 *
 * - `LockTimeout`: the lock was not obtained within `lockTimeout`.
 * - `LockLost`: the lock was lost, because the process was stopped for longer than the lease of the lock.
 * - `StoreUnavailable`: the store cannot be read or written: no permission, no space, no connection.
 * - `InvalidEntry`: a stored value is incomplete, or another program wrote it. The message says what to delete.
 * - `KeyError`: the keys of the encryption are missing or too short, or none of them decrypts a value.
 * - `ValueTooLarge`: a value to write has more than 1 MiB.
 */
export type TokenStoreErrorReason =
  | Tagged<"LockTimeout">
  | Tagged<"LockLost">
  | Tagged<"StoreUnavailable">
  | Tagged<"InvalidEntry">
  | Tagged<"KeyError">
  | Tagged<"ValueTooLarge">

/** A token store could not read or write, or a lock was not obtained in time. Nothing was changed. */
export interface TokenStoreError extends Error {
  readonly _tag: "TokenStoreError"
  readonly reason: TokenStoreErrorReason
}

/** The class of `TokenStoreError`, for `instanceof`. */
export const TokenStoreError: ErrorClass<TokenStoreError> = CoreStore.TokenStoreError as never

/** The person was not reached or did not return: no browser, no free port, no answer, or the window was closed. */
export interface SignInError extends Error {
  readonly _tag: "SignInError"
}

/**
 * The class of `SignInError`, which a sign-in of your own throws.
 *
 * @example
 * throw new SignInError({ message: "The window was closed" })
 */
export const SignInError: {
  new(fields: { readonly message: string; readonly cause?: unknown }): SignInError
  readonly prototype: SignInError
} = CoreSignIn.SignInError

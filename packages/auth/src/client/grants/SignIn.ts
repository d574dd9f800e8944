/**
 * How a person is asked to sign in: a page of the authorization server is opened, and the answer comes back to a
 * redirect URI (RFC 6749, 4.1).
 *
 * `Loopback` opens a browser on this computer, `PasteSignIn` lets a person without one paste the answer, and
 * `WebSignIn` redirects the user of a web application. A host with a window of its own provides this service itself.
 *
 * @example
 * const Embedded = Layer.succeed(SignIn.SignIn, {
 *   open: () => Effect.succeed({ redirectUri: "teahouse://callback", authorize: (url) => showWindow(url) })
 * })
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * The person was not reached or did not return: there was no browser or no free port, no answer arrived within the
 * timeout, or the window was closed.
 */
export class SignInError extends PrintableError.tagged("SignInError")<{
  readonly cause?: unknown
}> {}

/**
 * The person has to open `url`; the sign-in is finished elsewhere, by `OAuth.finish`. `WebSignIn` fails with it, and a
 * web application answers with a redirect to `url`.
 */
export class RedirectRequired extends PrintableError.tagged("RedirectRequired")<{
  readonly url: URL
}> {}

/** The purpose of a sign-in that is about to start. */
export interface OpenOptions {
  /**
   * The redirect URIs that this client is registered with: by hand, or by an earlier dynamic registration. Empty if it
   * is not registered yet. A sign-in that can use one of them does.
   */
  readonly redirectUris: ReadonlyArray<string>
  /**
   * Whether the redirect URI must be one of `redirectUris`: the client was registered by hand or has a metadata
   * document. A loopback URI without a port stands for every port (RFC 8252, 7.3). Without any URI, the options of the
   * service decide.
   */
  readonly fixed: boolean
  /** The server to sign in at, to name it to the person. */
  readonly resource: string
}

/** A place that a person can come back to. It is closed with its scope. */
export interface OpenSignIn {
  /** The redirect URI of this sign-in. */
  readonly redirectUri: string
  /**
   * Sends the person to `url` and waits for the parameters of the redirect URI. Only an answer with `state` counts;
   * others are ignored. It does not judge the answer: an `error` in it is a success of this effect.
   */
  readonly authorize: (
    url: URL,
    state: string
  ) => Effect.Effect<URLSearchParams, SignInError | RedirectRequired>
}

/** The way to ask a person of this program. */
export class SignIn extends Context.Service<SignIn, {
  /** Prepares a sign-in: opens a port, for example. It runs before the client is registered. */
  readonly open: (options: OpenOptions) => Effect.Effect<OpenSignIn, SignInError, Scope.Scope>
  /** The `application_type` of a dynamic registration: `native` by default; `web` for web applications. */
  readonly applicationType?: "native" | "web" | undefined
}>()("@skein/auth/SignIn") {}

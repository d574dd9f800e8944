/**
 * How a person is asked to sign in: a page of the authorization server is opened, and the answer comes back to a redirect URI.
 */
import * as Core from "@skein/auth/SignIn"
import * as WebSignIn from "@skein/auth/WebSignIn"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { lazily, type Opaque, opaque } from "../base/definition.ts"
import type { Awaitable, Duration } from "../base/types.ts"
import { SignInError } from "./errors.ts"

/** A way to ask a person: the option `signIn` of `OAuth.make`. */
export interface SignIn extends Opaque<"SignIn"> {}

/** Options of `loopback`. */
export interface LoopbackOptions {
  /** The name of your program, which the pages show. "The program" by default. */
  readonly name?: string | undefined
  /**
   * The host of the redirect URI. `127.0.0.1` by default. Use `localhost` for authorization servers that accept only the name.
   */
  readonly host?: "127.0.0.1" | "localhost" | "[::1]" | undefined
  /** The path of the redirect URI of a client that is not registered yet. `/callback` by default. */
  readonly path?: string | undefined
  /** The ports to try, after the port that the client is registered with. Then any free port is used. Empty by default. */
  readonly ports?: ReadonlyArray<number> | undefined
  /** The time that the person has: 5 minutes by default. Then the sign-in fails. */
  readonly signInTimeout?: Duration | undefined
  /** Opens the sign-in page: in a browser by default. When it fails, the URL is printed. `false` prints it at once. */
  readonly open?: ((url: URL) => Awaitable<void>) | false | undefined
  /** Prints a text with the URL for a person whose browser was not opened. To stderr by default. */
  readonly print?: ((text: string) => Awaitable<void>) | undefined
}

/**
 * Signs a person in with the browser of this computer. The answer comes back to a server on the loopback interface (RFC 8252),
 * which listens only while a sign-in is open.
 *
 * The browser is the first of the programs in the variable `BROWSER`, or else the one of the system. Without one
 * (`BROWSER=none`, no display), the URL is printed to stderr.
 *
 * @example
 * const oauth = await OAuth.make({ grant, signIn: loopback({ name: "Tea House" }) })
 */
export const loopback = (options?: LoopbackOptions): SignIn =>
  opaque(lazily(() => import("@skein/auth/Loopback"), ({ layer }) => layer(options)))

/**
 * Whether there is a program that may open a browser: not on a computer without a display, in a shell over SSH for example, and
 * not with `BROWSER=none`. Use `pasteSignIn` there.
 *
 * @example
 * const signIn = await hasBrowser() ? loopback() : pasteSignIn()
 */
export const hasBrowser = async (): Promise<boolean> => (await import("@skein/auth/Loopback")).hasBrowser()

/**
 * Opens a URL in the browser of this computer, without a shell. Rejects with `SignInError` if the URL is not `http` or `https`,
 * or no browser was started.
 *
 * @example
 * await openBrowser(new URL("https://tea.example/sign-up"))
 */
export const openBrowser = async (url: URL): Promise<void> =>
  Effect.runPromise((await import("@skein/auth/Loopback")).openBrowser(url))

/** A terminal with a person who reads and types. */
export interface Terminal {
  /** Writes a line, without the line break at its end. */
  readonly writeLine: (line: string) => Awaitable<void>
  /**
   * Shows the prompt and returns the line that was typed, or `undefined` when the input has ended. The signal aborts when the
   * sign-in has ended before the person typed.
   */
  readonly readLine: (prompt: string, signal: AbortSignal) => Awaitable<string | undefined>
}

/** Options of `pasteSignIn`. */
export interface PasteSignInOptions {
  /**
   * The redirect URI. By default one that the client is registered with, else `http://127.0.0.1:49817/callback`. Nothing needs to
   * listen there.
   */
  readonly redirectUri?: string | undefined
  /** The time that the person has: 5 minutes by default. Then the sign-in fails. */
  readonly signInTimeout?: Duration | undefined
  /** The terminal to ask on. The one of this process by default: stdin and stderr. */
  readonly terminal?: Terminal | undefined
}

/**
 * Signs a person in without a browser on this computer: the person opens the sign-in page anywhere, and pastes the address that
 * their browser was redirected to. It reads from stdin only if that is a terminal.
 *
 * @example
 * const oauth = await OAuth.make({ grant, signIn: pasteSignIn({ signInTimeout: "10 minutes" }) })
 */
export const pasteSignIn = (options?: PasteSignInOptions): SignIn =>
  opaque(lazily(() => import("@skein/auth/PasteSignIn"), ({ layer }) => layer(options)))

/** Options of `webSignIn`. */
export interface WebSignInOptions {
  /** The URL of the route that users come back to, exactly as it is registered: `https`, or `http` on the loopback interface. */
  readonly redirectUri: string
}

/**
 * Signs in the users of a web application: the application redirects the user to the sign-in page, and the user comes back to a
 * route of the application. A call that needs a sign-in fails with the reason `SignInRequired`: answer with a redirect to its
 * `url`. The route calls `finish` with the parameters of its request, in any process that shares the store.
 *
 * The route must take the `account` from the session of the browser, never from the request: otherwise an attacker sends a link
 * with an answer of their own, and the victim works in the attacker's account (login CSRF, RFC 9700, 4.7).
 *
 * @example
 * const oauth = await OAuth.make({ grant, account, store, signIn: webSignIn({ redirectUri: "https://app.example/oauth/callback" }) })
 */
export const webSignIn = (options: WebSignInOptions): SignIn => opaque(WebSignIn.layer(options))

/** The purpose of a sign-in that is about to start. */
export interface OpenOptions {
  /** The redirect URIs that this client is registered with. Empty if it is not registered yet. */
  readonly redirectUris: ReadonlyArray<string>
  /** Whether the redirect URI must be one of `redirectUris`, if there are any. */
  readonly fixed: boolean
  /** The server to sign in at, to name it to the person. */
  readonly resource: string
}

/** A place that a person can come back to. */
export interface OpenSignIn {
  /** The redirect URI of this sign-in. */
  readonly redirectUri: string
  /**
   * Sends the person to `url` and returns the parameters of the redirect URI. Only an answer with `state` counts; ignore others.
   * The signal aborts when the answer is no longer wanted. Rejects with a `SignInError`.
   */
  readonly authorize: (url: URL, state: string, signal: AbortSignal) => Awaitable<URLSearchParams>
  /** Closes the place, after the sign-in or its failure. */
  readonly close?: (() => Awaitable<void>) | undefined
}

/** Options of `customSignIn`. */
export interface CustomSignInOptions {
  /** Prepares a sign-in: opens a port, for example. It runs before the client is registered. */
  readonly open: (options: OpenOptions) => Awaitable<OpenSignIn>
  /** The `application_type` of a dynamic registration: `native` by default; `web` for web applications. */
  readonly applicationType?: "native" | "web" | undefined
}

/**
 * A sign-in of your own, in an application with a window. Show only `http` and `https` pages, in a window without access to your
 * application.
 *
 * @example
 * const signIn = customSignIn({
 *   open: () => ({ redirectUri: "teahouse://callback", authorize: (url, state, signal) => showWindow(url, state, signal) })
 * })
 */
export const customSignIn = ({ applicationType, open }: CustomSignInOptions): SignIn =>
  opaque(Layer.succeed(Core.SignIn, {
    applicationType,
    open: (options) =>
      Effect.map(
        Effect.acquireRelease(
          attempt(async () => open(options)),
          ({ close }) => Effect.promise(async () => close?.())
        ),
        ({ authorize, redirectUri }) => ({
          redirectUri,
          authorize: (url, state) => attempt(async (signal) => authorize(url, state, signal))
        })
      )
  }))

const attempt = <A>(run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, Core.SignInError> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      cause instanceof SignInError
        ? cause as Core.SignInError
        : new Core.SignInError({ message: "The sign-in of the application failed.", cause })
  })

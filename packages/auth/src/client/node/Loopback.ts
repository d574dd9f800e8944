/**
 * Signs a person in with the browser of this computer. The answer comes back to a server on the loopback interface (RFC
 * 8252), which listens only while a sign-in is open.
 *
 * **When to use.** In programs that run where the person is: command line tools, desktop applications, editors. Use
 * `PasteSignIn` in a shell of another computer, and `WebSignIn` in a web application.
 *
 * The browser is the first of: the programs in the variable `BROWSER`, and `open` on macOS, `rundll32` on Windows, or
 * `xdg-open` elsewhere. Without one (`BROWSER=none`, no display), the URL is printed to stderr, and the person opens it.
 *
 * @example
 * const program = Effect.provide(main, [Loopback.layer({ name: "Tea House" }), FileTokenStore.layer({ app: "teahouse" })])
 */
import { printable, quote } from "@skein/protocol/Text"
import * as Awaitable from "@skein/runtime/Awaitable"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { SignInBounds, withinTimeout } from "./bounds.ts"
import * as Browser from "./browser.ts"
import { type LoopbackServer, start } from "./loopbackServer.ts"
import { type LoopbackHost, parseLoopback } from "../protocol/redirectUri.ts"
import { type OpenOptions, SignIn, SignInError } from "../grants/SignIn.ts"

/** The options of `layer` and `make`. */
export interface Options {
  /** The name of your program, which the pages show. "The program" by default. */
  readonly name?: string | undefined
  /**
   * The host of the redirect URI. `127.0.0.1` by default. Use `localhost` for authorization servers that accept only
   * the name: the server then listens on both loopback addresses. A client that is registered with one host only uses
   * that one.
   */
  readonly host?: LoopbackHost | undefined
  /** The path of the redirect URI of a client that is not registered yet. `/callback` by default. */
  readonly path?: string | undefined
  /**
   * The ports to try, in this order, after the port that the client is registered with. Then any free port is used: the
   * operating system chooses. Empty by default.
   */
  readonly ports?: ReadonlyArray<number> | undefined
  /**
   * The time that the person has: 5 minutes by default. Then the sign-in fails with `SignInError`. Raise it for sign-ins
   * that need an approval. A connection that needs the sign-in waits for at most 15 minutes.
   */
  readonly signInTimeout?: Duration.Input | undefined
  /**
   * Opens the sign-in page, by an effect or a function that may return a promise. `openBrowser` by default. When it fails,
   * the URL is printed. `false` prints it at once. An effect is interrupted when the person has come back.
   */
  readonly open?: ((url: URL) => Effect.Effect<unknown, unknown> | PromiseLike<unknown> | void) | false | undefined
  /**
   * Prints a text with the URL for a person whose browser was not opened. To stderr by default: on a stdio server
   * stdout carries protocol messages only.
   */
  readonly print?: ((text: string) => Effect.Effect<void> | PromiseLike<void> | void) | undefined
}

/**
 * Opens a URL in the browser of this computer, without a shell. Fails with `SignInError` if the URL is not `http` or
 * `https`, or no browser was started. A browser that is not running yet may be a child of this process: the effect then
 * ends when the browser is closed.
 *
 * @example
 * const embedded = Effect.forkScoped(Loopback.openBrowser(url))
 */
export const openBrowser = (url: URL): Effect.Effect<void, SignInError> => Browser.open(url)

/**
 * Whether there is a program that may open a browser: `false` on a computer without a display, in a shell over SSH for
 * example, and with `BROWSER=none`. Use `PasteSignIn` there.
 *
 * @example
 * const SignInLive = Loopback.hasBrowser() ? Loopback.layer() : PasteSignIn.layer()
 */
export const hasBrowser = (): boolean => Browser.commands("", process.env, process.platform).length > 0

/** A port to try, and the redirect URI that belongs to a port. 0 is any free port. */
interface Candidate {
  readonly host: LoopbackHost
  readonly port: number
  readonly redirectUri: (port: number) => string
}

/** The ports to try. Empty if the client is registered with other redirect URIs only. */
const candidates = (options: Options, { fixed, redirectUris }: OpenOptions): ReadonlyArray<Candidate> => {
  const { host = "127.0.0.1", path = "/callback", ports = [] } = options
  const own = (port: number): Candidate => ({
    host,
    port,
    redirectUri: (chosen) => `http://${host}:${chosen}${path}`
  })
  const registered = redirectUris.flatMap((uri) => {
    const parsed = parseLoopback(uri)
    return parsed === undefined ? [] : [parsed]
  })
  if (!fixed) {
    const same = registered.filter((each) => each.host === host && each.path === path)
    return [...new Set([...same.flatMap(({ port }) => port ?? []), ...ports, 0])].map(own)
  }
  // A client whose redirect URIs were not given: its ports, or any (RFC 8252, 7.3).
  if (redirectUris.length === 0) return (ports.length === 0 ? [0] : ports).map(own)
  return registered
    .toSorted((a, b) => Number(b.host === host) - Number(a.host === host))
    .flatMap(({ host, port, withPort }) =>
      (port === undefined ? [...ports, 0] : [port]).map((port) => ({ host, port, redirectUri: withPort }))
    )
}

const elsewhere = (redirectUris: ReadonlyArray<string>): SignInError =>
  new SignInError({
    message: `The client is registered with ${redirectUris.map((uri) => quote(uri)).join(", ")}, ` +
      "which a browser does not find on this computer. Register http://127.0.0.1/callback as well, without a port."
  })

const allTaken = (
  tried: ReadonlyArray<Candidate>,
  { redirectUris }: OpenOptions,
  cause: NodeJS.ErrnoException
): SignInError => {
  const [{ host, redirectUri } = { host: "127.0.0.1", redirectUri: () => "" }] = tried
  const ports = tried.map(({ port }) => port)
  const path = parseLoopback(redirectUri(1))?.path ?? "/"
  const message = ports.includes(0)
    ? `No port of ${host} could be opened for the answer of the browser: ${cause.message}`
    : redirectUris.length === 0
    ? `No port for the answer of the browser is free (${ports.join(", ")}): ${cause.message}. ` +
      "End the program that uses it, or choose another port."
    : `No port of the registered redirect URIs is free (${ports.join(", ")}): ${cause.message}. ` +
      `End the program that uses it, or register a redirect URI without a port: http://${host}${path}`
  return new SignInError({ message, cause })
}

/** Releases what a failed attempt has acquired, instead of holding it until the sign-in ends. */
const closedIfFailed = <A, E>(attempt: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E, Scope.Scope> =>
  Effect.flatMap(Effect.flatMap(Effect.scope, Scope.fork), (scope) =>
    Effect.onExit(
      Scope.provide(attempt, scope),
      (exit) => Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit)
    ))

/** Opens the first port that is free. */
const bind = (
  tried: ReadonlyArray<Candidate>,
  options: Options,
  opening: OpenOptions,
  bounds: SignInBounds
): Effect.Effect<{ readonly server: LoopbackServer; readonly redirectUri: string }, SignInError, Scope.Scope> => {
  const name = options.name ?? "The program"
  const each = tried.map(({ host, port, redirectUri }) => {
    const started = closedIfFailed(start(host, port, name, bounds))
    // Any free port of one address of `localhost` may be taken at the other one.
    return Effect.map(
      port === 0 ? Effect.retry(started, { times: 4 }) : started,
      (server) => ({ server, redirectUri: redirectUri(server.port) })
    )
  })
  return Effect.mapError(Effect.firstSuccessOf(each), (cause) => allTaken(tried, opening, cause))
}

const toStderr = (text: string): Effect.Effect<void> => Effect.sync(() => void process.stderr.write(text))

const invitation = (url: URL, resource: string, redirectUri: string): string => {
  const { hostname, port } = new URL(redirectUri)
  return `To sign in at ${
    printable(resource, 512)
  }, open this URL in a browser on this computer:\n\n  ${url.href}\n\n` +
    `A browser on another computer needs a tunnel to this one: ssh -L ${port}:${hostname}:${port} <this computer>\n`
}

/**
 * Makes the service. Use {@link layer} unless you combine several.
 *
 * @example
 * const signIn = Loopback.make({ ports: [33418] })
 */
export const make = (options: Options = {}): SignIn["Service"] => ({
  applicationType: "native",
  open: Effect.fnUntraced(function*(opening) {
    const { open = openBrowser, print = toStderr } = options
    const tried = candidates(options, opening)
    if (tried.length === 0) return yield* elsewhere(opening.redirectUris)
    const { redirectUri, server } = yield* bind(tried, options, opening, yield* SignInBounds)
    return {
      redirectUri,
      authorize: (url, state) => {
        const printed = Effect.mapError(
          Awaitable.call<void, unknown>(() => print(invitation(url, opening.resource, redirectUri))),
          (cause) => new SignInError({ message: "The URL of the sign-in page could not be printed.", cause })
        )
        const shown = open === false
          ? printed
          : Effect.catchCause(Awaitable.call<unknown, unknown>(() => open(url)), () => printed)
        const answered = Effect.raceFirst(server.answer(redirectUri, state), Effect.andThen(shown, Effect.never))
        return withinTimeout(
          Effect.andThen(Browser.check(url), answered),
          options,
          `The sign-in at ${printable(opening.resource, 512)} was not completed in the browser`
        )
      }
    }
  })
})

/**
 * Provides `SignIn` with the browser of this computer.
 *
 * @example
 * const program = Effect.provide(main, Loopback.layer({ name: "Tea House", ports: [33418, 33419] }))
 */
export const layer = (options?: Options): Layer.Layer<SignIn> => Layer.sync(SignIn, () => make(options))

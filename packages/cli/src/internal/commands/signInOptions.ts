/**
 * The options of commands that can sign a person in.
 */
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type { ValueOptions } from "./commandLine.ts"
import { invalid, last, toggle } from "./commandLine.ts"

/** The variable with the secret of `--client-id`. Arguments are visible to all users of a computer; this one is not. */
export const secretVariable = "SKEIN_CLIENT_SECRET"

/** How a person signs in. */
export interface SignInOptions {
  /** The id of a client that was registered by hand, and the issuer of the authorization server that knows it. */
  readonly clientId: string | undefined
  readonly issuer: string | undefined
  /** The redirect URI that this client is registered with. Any on this computer by default. */
  readonly redirectUri: string | undefined
  readonly scopes: ReadonlyArray<string> | undefined
  /** Whether the `resource` parameter is left out, for this server. */
  readonly omitResource: boolean
  /** Whether the authorization server of this server supports PKCE although it does not announce it. */
  readonly assumePkce: boolean
  /** The port that the browser comes back to. */
  readonly port: number | undefined
  /** Whether the person pastes the answer. */
  readonly paste: boolean
  /** Whether the person opens the URL. */
  readonly noBrowser: boolean
}

const maxPort = 65_535

const flags = {
  "client-id": Flag.String("client-id").pipe(
    Flag.withMetavar("<id>"),
    Flag.withDescription(
      `Sign in with a client that you registered by hand; its secret, if it has one, is read from ${secretVariable}, ` +
        "because the arguments of a command are visible to other users and stay in the history of the shell"
    ),
    last
  ),
  issuer: Flag.String("issuer").pipe(
    Flag.withMetavar("<url>"),
    Flag.withDescription(
      "The authorization server where the client of --client-id is registered; no other one gets its secret"
    ),
    last
  ),
  "redirect-uri": Flag.String("redirect-uri").pipe(
    Flag.withMetavar("<uri>"),
    Flag.withDescription(
      "The redirect URI of the client of --client-id, if it is not http://127.0.0.1/callback with any port"
    ),
    last
  ),
  scope: Flag.String("scope").pipe(
    Flag.withMetavar("<scopes>"),
    Flag.withDescription("The scopes to request, separated by spaces; by default those that the server names"),
    Flag.mapEffect((text) => {
      const scopes = text.split(" ").filter((scope) => scope !== "")
      // RFC 6749, appendix A.4.
      return scopes.length > 0 && scopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
        ? Effect.succeed(scopes)
        : invalid(`--scope needs scopes separated by spaces: ${JSON.stringify(text)}`)
    }),
    last
  ),
  port: Flag.String("port").pipe(
    Flag.withMetavar("<port>"),
    Flag.withDescription("The port of this computer to which the browser returns; any free one by default"),
    Flag.mapEffect((text) => {
      const port = Number(text)
      return /^\d+$/.test(text) && port > 0 && port <= maxPort
        ? Effect.succeed(port)
        : invalid(`--port must be a number from 1 to ${maxPort}: ${JSON.stringify(text)}`)
    }),
    last
  )
}

/** The options of {@link signInFlags} that are followed by a value. */
export const signInValueOptions: ValueOptions = /* @__PURE__ */ new Set(Object.keys(flags))

/** The options as members of a command. */
export const signInFlags = {
  clientId: flags["client-id"],
  issuer: flags.issuer,
  redirectUri: flags["redirect-uri"],
  scopes: flags.scope,
  port: flags.port,
  paste: toggle(
    "paste",
    "Print the URL, and paste the address that the browser goes to: for a shell on another computer"
  ),
  noBrowser: toggle("no-browser", "Print the URL instead of opening it"),
  omitResource: toggle(
    "omit-resource",
    "Do not send the resource parameter, which some authorization servers refuse (Microsoft Entra: AADSTS9010010); " +
      "only for the server of this command"
  ),
  assumePkce: toggle(
    "assume-pkce",
    "Sign in although the authorization server does not announce PKCE; only for the server of this command, and only " +
      "if the documentation of its authorization server says that it supports PKCE with S256"
  )
}

/** Fails if the options contradict each other. */
export const checkSignIn = (
  { clientId, issuer, noBrowser, paste, port, redirectUri }: SignInOptions
): ReturnType<typeof invalid> | Effect.Effect<void> => {
  if (clientId !== undefined && issuer === undefined) {
    return invalid("--client-id needs --issuer: the authorization server where the client is registered")
  }
  if (clientId === undefined && issuer !== undefined) return invalid("--issuer needs --client-id")
  if (clientId === undefined && redirectUri !== undefined) return invalid("--redirect-uri needs --client-id")
  if (paste && noBrowser) return invalid("--paste and --no-browser exclude each other")
  return paste && port !== undefined ? invalid("--port cannot be used with --paste: no port is opened") : Effect.void
}

/** Whether any option is given. */
export const isGiven = (options: SignInOptions): boolean =>
  options.paste || options.noBrowser || options.omitResource || options.assumePkce ||
  [options.clientId, options.issuer, options.redirectUri, options.scopes, options.port].some((each) =>
    each !== undefined
  )

/** Whether headers of the person authorize the requests, so that stored tokens are not used. */
export const hasAuthorization = (headers: Readonly<Record<string, string>>): boolean =>
  Object.keys(headers).some((name) => name.toLowerCase() === "authorization")

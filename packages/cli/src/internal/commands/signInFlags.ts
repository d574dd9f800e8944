/**
 * The options of commands that can sign a person in.
 */
import * as Effect from "effect/Effect"
import { secretVariable, type SignInOptions } from "../accounts/signInOptions.ts"
import { invalid, option, portNumber, text, toggle } from "./commandLine.ts"

/** The options as members of a command. */
export const signInFlags = {
  clientId: text(
    "client-id",
    "<id>",
    `Sign in with a client that you registered by hand; its secret, if it has one, is read from ${secretVariable}, ` +
      "because the arguments of a command are visible to other users and stay in the history of the shell"
  ),
  issuer: text(
    "issuer",
    "<url>",
    "The authorization server where the client of --client-id is registered; no other one gets its secret"
  ),
  redirectUri: text(
    "redirect-uri",
    "<uri>",
    "The redirect URI of the client of --client-id, if it is not http://127.0.0.1/callback with any port"
  ),
  scopes: option(
    "scope",
    "<scopes>",
    "The scopes to request, separated by spaces; by default those that the server names",
    (text) => {
      const scopes = text.split(" ").filter((scope) => scope !== "")
      // RFC 6749, appendix A.4.
      return scopes.length > 0 && scopes.every((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
        ? Effect.succeed(scopes)
        : invalid(`--scope needs scopes separated by spaces: ${JSON.stringify(text)}`)
    }
  ),
  port: portNumber("<port>", "The port of this computer to which the browser returns; any free one by default", 1),
  paste: toggle(
    "paste",
    "Print the URL, and paste the address that the browser goes to: for a shell on another computer"
  ),
  noBrowser: toggle("no-browser", "Print the URL instead of opening it"),
  resourceMetadata: option(
    "resource-metadata",
    "<url>",
    "The metadata of the server for its sign-in, where the server names one of another host that you trust; only for " +
      "the server of this command",
    (text) =>
      URL.canParse(text) ? Effect.succeed(text) : invalid(`--resource-metadata needs a URL: ${JSON.stringify(text)}`)
  ),
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

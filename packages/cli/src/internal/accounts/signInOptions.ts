/**
 * How a person signs in: the part of a parsed command line that commands with a sign-in share. Loads no package.
 */
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
  /** The URL of the protected resource metadata of this server, also of another origin. */
  readonly resourceMetadata: string | undefined
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

/** Whether headers of the person authorize the requests, so that stored tokens are not used. */
export const hasAuthorization = (headers: Readonly<Record<string, string>>): boolean =>
  Object.keys(headers).some((name) => name.toLowerCase() === "authorization")

/** Whether any option is given. */
export const isGiven = (options: SignInOptions): boolean =>
  options.paste || options.noBrowser || options.omitResource || options.assumePkce ||
  [
    options.clientId,
    options.issuer,
    options.redirectUri,
    options.scopes,
    options.resourceMetadata,
    options.port
  ].some((each) => each !== undefined)

/**
 * The sign-in of a person in this program: the client, how the person is asked, and the tokens in files.
 */
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as Grant from "@skein/auth/Grant"
import * as Loopback from "@skein/auth/Loopback"
import * as OAuth from "@skein/auth/OAuth"
import type { OAuthError } from "@skein/auth/OAuthError"
import * as PasteSignIn from "@skein/auth/PasteSignIn"
import { SignIn, SignInError } from "@skein/auth/SignIn"
import { TokenStore } from "@skein/auth/TokenStore"
import type { TokenStoreError } from "@skein/auth/TokenStoreError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { quoteLine, sanitize } from "../base/format.ts"
import { type CommandFailed, failed, Process } from "../base/process.ts"
import { secretVariable, type SignInOptions } from "./signInOptions.ts"

/** A client that was registered by hand. It is stored without its secret, so that later calls can renew the tokens. */
const ManualClient = Schema.Struct({
  clientId: Schema.String,
  issuer: Schema.String,
  redirectUri: Schema.optionalKey(Schema.String),
  hasSecret: Schema.Boolean
})
export type ManualClient = typeof ManualClient.Type

/** The URL as keys and messages have it: without a fragment. */
export const placeOf = ({ origin, pathname, search }: URL): string => `${origin}${pathname}${search}`

/** The values that a person names for a sign-in. They are stored, so that later calls renew the tokens in the same way. */
const Named = Schema.Struct({
  /** The client, if it was registered by hand. */
  client: Schema.optionalKey(ManualClient),
  /** Where the protected resource metadata of the server is. */
  resourceMetadata: Schema.optionalKey(Schema.String)
})
export type Named = typeof Named.Type

/** The last sign-in of a person at a server. */
const Login = Schema.Struct({
  /** In milliseconds since the epoch. */
  at: Schema.Number,
  ...Named.fields
})

/** The key of the last sign-in at a server, and of the lock that a sign-in holds. */
export const loginKey = (url: URL): string => `skein login ${placeOf(url)}`

const decodeLogin = Schema.decodeUnknownOption(Schema.fromJsonString(Login))

/** The last sign-in at a server. */
export const loadLogin = (
  store: TokenStore["Service"],
  url: URL
): Effect.Effect<typeof Login.Type | undefined, TokenStoreError> =>
  Effect.map(
    store.get(loginKey(url)),
    (text) => Option.getOrUndefined(Option.flatMap(text, (text) => decodeLogin(Redacted.value(text))))
  )

/** Stores that a person has signed in, and how. */
export const saveLogin = (
  store: TokenStore["Service"],
  url: URL,
  named: Named
): Effect.Effect<void, TokenStoreError> =>
  Effect.flatMap(Clock.currentTimeMillis, (at) => {
    const login: typeof Login.Type = { ...named, at }
    return store.set(loginKey(url), Redacted.make(JSON.stringify(login)))
  })

/** The values that the command line names. */
export const namedBy = (
  { clientId, issuer, redirectUri, resourceMetadata }: SignInOptions,
  { env }: Process["Service"]
): Named => ({
  ...(clientId === undefined || issuer === undefined ? {} : {
    client: {
      clientId,
      issuer,
      ...(redirectUri === undefined ? {} : { redirectUri }),
      hasSecret: (env[secretVariable] ?? "") !== ""
    }
  }),
  ...(resourceMetadata === undefined ? {} : { resourceMetadata })
})

const grantOf = (client: ManualClient | undefined, { env }: Process["Service"]) => {
  if (client === undefined) return Grant.authorizationCode({ clientName: "Skein" })
  const { clientId, hasSecret, issuer, redirectUri } = client
  const clientSecret = Effect.suspend(() => {
    const secret = env[secretVariable] ?? ""
    return secret === ""
      ? Effect.fail(new SignInError({ message: `Set ${secretVariable} to the secret of the client ${clientId}` }))
      : Effect.succeed(Redacted.make(secret))
  })
  return Grant.authorizationCode({
    clientName: "Skein",
    client: {
      clientId,
      issuer,
      redirectUris: redirectUri === undefined ? [] : [redirectUri],
      ...(hasSecret ? { clientSecret } : {})
    }
  })
}

/** Asks the person, as the options say: in the browser of this computer, or by pasting on the terminal. */
export const interactive = (
  { noBrowser, paste, port }: SignInOptions,
  { console: { warn }, terminal }: Process["Service"]
): Effect.Effect<SignIn["Service"], CommandFailed> => {
  if (paste && terminal === undefined) {
    return Effect.fail(failed(2, "--paste needs a terminal to paste on"))
  }
  // A shell on another computer: the browser of the person does not find a port of this one.
  const isRemote = !noBrowser && port === undefined && !Loopback.hasBrowser()
  if (terminal !== undefined && (paste || isRemote)) return Effect.succeed(PasteSignIn.make({ terminal }))
  const signIn = Loopback.make({
    name: "Skein",
    ports: port === undefined ? [] : [port],
    print: (text) => Effect.sync(() => warn(sanitize(text.trimEnd()))),
    open: noBrowser || !Loopback.hasBrowser() ? false : (url) =>
      Effect.andThen(
        Effect.sync(() => warn(`Opening ${quoteLine(url.host)} in the browser to sign in. Ctrl-C cancels.`)),
        Loopback.openBrowser(url)
      )
  })
  // A port that the person names is the only one: a tunnel leads to it, for example.
  const open: SignIn["Service"]["open"] = port === undefined
    ? signIn.open
    : (opening) => signIn.open(opening.fixed ? opening : { ...opening, redirectUris: [], fixed: true })
  return Effect.succeed({ ...signIn, open })
}

/** Refuses to sign in: the command line has no `--login`. */
const refusing = (url: URL): SignIn["Service"] => ({
  open: () =>
    Effect.fail(
      new SignInError({
        message: `the tokens cannot be renewed without a person. Sign in with: skein login ${placeOf(url)}`
      })
    )
})

const storeFailed = ({ message }: TokenStoreError): CommandFailed => failed(3, message)

/** The tokens of this user. */
export const openStore = (folder: string): Effect.Effect<TokenStore["Service"], CommandFailed> =>
  Effect.mapError(FileTokenStore.make({ folder }), storeFailed)

/** Runs an operation on the store. */
export const inStore = <A, R>(effect: Effect.Effect<A, TokenStoreError, R>): Effect.Effect<A, CommandFailed, R> =>
  Effect.mapError(effect, storeFailed)

/** The credentials of this user for a server. Without `options` the user is not asked to sign in. */
export const makeOAuth = (
  url: URL,
  store: TokenStore["Service"],
  signIn: SignIn["Service"],
  { client, resourceMetadata }: Named,
  options?: Pick<SignInOptions, "assumePkce" | "omitResource" | "scopes">
): Effect.Effect<OAuth.OAuth, CommandFailed, Process | Scope.Scope> =>
  Effect.flatMap(Process, (process) =>
    OAuth.make({
      grant: grantOf(client, process),
      scopes: options?.scopes,
      servers: {
        [placeOf(url)]: {
          resourceMetadata,
          assumePkce: options?.assumePkce,
          ...(options?.omitResource === true ? { resource: "omit" } : {})
        }
      }
    }).pipe(
      Effect.provideService(TokenStore, store),
      Effect.provideService(SignIn, signIn),
      Effect.mapError(oauthFailed)
    ))

/** The stored sign-in at a server, without asking anybody. */
export const storedSignIn = Effect.fnUntraced(function*(url: URL, store: TokenStore["Service"]) {
  const login = yield* inStore(loadLogin(store, url))
  const oauth = yield* makeOAuth(url, store, refusing(url), login ?? {})
  const state = yield* Effect.mapError(oauth.state(url), oauthFailed)
  return { oauth, state: Option.getOrUndefined(state) }
})

// Failures of reaching a person, a server or the store. The others are refusals of a server.
const notReached: ReadonlySet<OAuthError["reason"]["_tag"]> = /* @__PURE__ */ new Set(
  ["DiscoveryFailed", "SignInFailed", "SignInRequired", "StoreFailed", "CredentialUnavailable"] as const
)

/** The message of a failure, with the options of this program instead of those of a library. */
const report = ({ message, reason }: OAuthError): string => {
  switch (reason._tag) {
    case "RegistrationFailed": {
      const issuer = quoteLine(reason.issuer)
      const answer = reason.error ?? reason.status
      return `Skein could not be registered with ${issuer}${
        answer === undefined ? "" : ` (${quoteLine(String(answer))})`
      }. ` +
        "Try skein call first: the server may require no sign-in. Otherwise register a client there by hand, and " +
        `pass it with --client-id <id> --issuer ${issuer}${reason.seen ?? ""}`
    }
    case "PkceUnsupported":
      return `The metadata of ${
        quoteLine(reason.issuer)
      } does not announce PKCE with S256. If its documentation says ` +
        "that it supports it, sign in with --assume-pkce"
    case "AuthorizationDenied":
      return `${message}. Sign in again to try it with another account or other scopes (--scope)`
    case "DiscoveryFailed":
      return `${message}. Check the URL, and whether the server runs`
    case "ResourceMismatch":
      return `${message}. If you mean that server, use its URL`
    default:
      return message
  }
}

/** The failure of a sign-in as that of a command. */
export const oauthFailed = (error: OAuthError): CommandFailed => {
  const { reason } = error
  const isTemporary = notReached.has(reason._tag) || (reason._tag === "TokenRequestFailed" && reason.retryable)
  return failed(isTemporary ? 3 : 4, report(error))
}

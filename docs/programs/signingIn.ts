import * as EncryptedTokenStore from "@skein/auth/EncryptedTokenStore"
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as Grant from "@skein/auth/Grant"
import * as Loopback from "@skein/auth/Loopback"
import * as OAuth from "@skein/auth/OAuth"
import { OAuthError } from "@skein/auth/OAuthError"
import * as PasteSignIn from "@skein/auth/PasteSignIn"
import * as SignIn from "@skein/auth/SignIn"
import * as SqlTokenStore from "@skein/auth/SqlTokenStore"
import * as TokenStore from "@skein/auth/TokenStore"
import * as WebSignIn from "@skein/auth/WebSignIn"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { readFile } from "node:fs/promises"

// #region person
export const brew = (url: string) =>
  Effect.gen(function*() {
    const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }) })
    const client = yield* Client.make(NodeHttp.transport({ url, credentials: oauth }))
    return yield* client.callTool("brew")
  }).pipe(Effect.scoped)

export const program = (url: string) =>
  Effect.provide(brew(url), [Loopback.layer({ name: "Tea House" }), FileTokenStore.layer({ app: "teahouse" })])
// #endregion

export const show = (url: string) =>
  Effect.gen(function*() {
    const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }) })
    yield* oauth.signIn(url)
    const state = yield* oauth.state(url)
    yield* oauth.signOut(url)
    return Option.map(state, ({ issuer, scopes }) => `${issuer}: ${scopes.join(" ")}`)
  }).pipe(Effect.scoped)

// #region ports
export const registered = Loopback.layer({ name: "Tea House", host: "localhost", ports: [33418, 33419] })
// #endregion

// #region shell
export const anywhere = Loopback.hasBrowser() ? Loopback.layer({ name: "Tea House" }) : PasteSignIn.layer()
// #endregion

// #region web
const redirectTo = (url: URL | string) => new Response(null, { status: 303, headers: { location: String(url) } })

/** A request of a browser. The account comes from the session of the browser, never from the request itself. */
export const handle = (request: Request, account: string, url: string) =>
  Effect.gen(function*() {
    const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }), account })
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === "/oauth/callback") {
      yield* oauth.finish(searchParams)
      return redirectTo("/brew")
    }
    const client = yield* Client.make(NodeHttp.transport({ url, credentials: oauth }))
    return Response.json(yield* client.callTool("brew"))
  }).pipe(
    Effect.catchReason("ClientError", "Unauthorized", (error) =>
      error.cause instanceof OAuthError && error.cause.reason._tag === "SignInRequired"
        ? Effect.succeed(redirectTo(error.cause.reason.url))
        : Effect.fail(error)),
    Effect.scoped,
    Effect.provide(WebSignIn.layer({ redirectUri: "https://app.example/oauth/callback" }))
  )
// #endregion

// #region job
export const job = (url: string, issuer: string) =>
  Effect.gen(function*() {
    const grant = Grant.clientCredentials({
      clientId: "brew-at-five",
      clientSecret: Config.Redacted("MCP_CLIENT_SECRET"),
      issuer
    })
    const oauth = yield* OAuth.make({ grant, scopes: ["tea:read"] })
    const client = yield* Client.make(NodeHttp.transport({ url, credentials: oauth }))
    return yield* client.callTool("brew")
  }).pipe(Effect.scoped, Effect.provide(TokenStore.layerMemory))
// #endregion

/** A pod of Kubernetes presents its own token, which Kubernetes replaces in the file. */
export const workload = Grant.jwtBearer({
  clientId: "pod",
  assertion: () =>
    Effect.map(
      Effect.tryPromise(() => readFile("/var/run/secrets/tokens/mcp", "utf8")),
      (token) => Redacted.make(token.trim())
    )
})

/** A person who is signed in at the identity provider of the company is not asked again. */
export const employee = (idToken: Redacted.Redacted) =>
  Grant.identityAssertion({
    clientId: "agent-at-tea",
    clientSecret: Config.Redacted("TEA_CLIENT_SECRET"),
    issuer: "https://login.tea.example",
    identityProvider: { issuer: "https://idp.acme.example", clientId: "agent", idToken }
  })

// #region stores
/** `TOKEN_KEYS="<new key>,<old key>"`, each from `openssl rand -base64 32`: the first one writes, all of them read. */
export const shared = Layer.provide(EncryptedTokenStore.layerConfig("TOKEN_KEYS"), SqlTokenStore.layer())
// #endregion

export const embedded = (showWindow: (url: URL) => Effect.Effect<URLSearchParams, SignIn.SignInError>) =>
  Layer.succeed(SignIn.SignIn, {
    open: () => Effect.succeed({ redirectUri: "teahouse://callback", authorize: (url) => showWindow(url) })
  })

/**
 * The parameters that each provider needs in a registration, an authorization, a token request, a refresh and a
 * revocation. Each script
 * refuses a client that does not send it. `docs/identity-providers.md` has a row for each.
 */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Providers from "@skein/auth/Providers"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { readFileSync } from "node:fs"
import { person, request } from "../oauth/scriptedServers.ts"
import { makeWorld, type Reply, type Sent, type World } from "./scriptedProviders.ts"

const resource = "https://tea.example/mcp"
const prm = "https://tea.example/.well-known/oauth-protected-resource/mcp"
const clientMetadataUrl = "https://client.example/client.json"
const secret = "the secret of the client"

/** The requirements of a provider. */
interface Row {
  /** The name in the table. */
  readonly name: string
  readonly provider: Providers.Provider
  readonly metadataUrl: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly client: "secret" | "public" | "document" | "dynamic"
  /** Returns the problem of an authorization request. */
  readonly authorization: (query: URLSearchParams) => string | undefined
  /** Whether a refresh without `scope` is refused. */
  readonly refreshNeedsScope?: boolean
  /** Whether each refresh token is used once. */
  readonly rotates: boolean
  /** The tokens that its revocation endpoint accepts. */
  readonly revokes: "both" | "refresh" | "none"
  /** How the token endpoint writes its answers. */
  readonly write?: (json: Readonly<Record<string, unknown>>) => Reply
}

const missing = (query: URLSearchParams, wanted: Readonly<Record<string, string | undefined>>): string | undefined => {
  const wrong = Object.entries(wanted).find(([name, value]) => (query.get(name) ?? undefined) !== value)
  return wrong === undefined ? undefined : `${wrong[0]} is ${query.get(wrong[0])}`
}

const tenant = "9122040d-6c67-4c5b-b112-36a304b66dad"
const entra = Providers.entra({ tenant, clientId: "api", scopes: ["tea.read"] })
const google = Providers.google({ scopes: ["profile"] })
const auth0 = Providers.auth0({ domain: "acme.eu.auth0.com", audience: "https://tea.example/api" })
const basic = ["client_secret_basic", "client_secret_post", "none"]

const rows: ReadonlyArray<Row> = [
  {
    name: "GitHub",
    provider: Providers.github({ scopes: ["read:user", "repo"] }),
    metadataUrl: "https://github.com/.well-known/oauth-authorization-server/login/oauth",
    metadata: { code_challenge_methods_supported: undefined },
    client: "secret",
    authorization: (query) => missing(query, { scope: "read:user repo" }),
    rotates: true,
    revokes: "none",
    // It separates scopes by commas, and its errors have the status 200.
    write: ({ error, ...json }) =>
      error === undefined ? { body: { ...json, scope: "read:user,repo" } } : { body: { error } }
  },
  {
    name: "Google",
    provider: google,
    metadataUrl: "https://accounts.google.com/.well-known/openid-configuration",
    metadata: { token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic"] },
    client: "secret",
    authorization: (query) =>
      missing(query, { access_type: "offline", prompt: "consent", resource: undefined, scope: "openid profile" }),
    // The answer to a refresh has no refresh token: the first one stays.
    rotates: false,
    revokes: "both"
  },
  {
    name: "Entra",
    provider: entra,
    metadataUrl: `https://login.microsoftonline.com/${tenant}/v2.0/.well-known/openid-configuration`,
    metadata: { code_challenge_methods_supported: undefined, scopes_supported: ["openid", "offline_access"] },
    client: "public",
    authorization: (query) =>
      missing(query, {
        prompt: "select_account",
        resource: undefined,
        scope: "api://api/tea.read offline_access"
      }),
    refreshNeedsScope: true,
    rotates: true,
    revokes: "none"
  },
  {
    name: "Okta",
    provider: Providers.okta({ domain: "acme.okta.com" }),
    metadataUrl: "https://acme.okta.com/.well-known/oauth-authorization-server/oauth2/default",
    metadata: { scopes_supported: ["offline_access"] },
    client: "secret",
    authorization: (query) => missing(query, { scope: "tea:read offline_access" }),
    rotates: true,
    revokes: "both"
  },
  {
    name: "Auth0",
    provider: auth0,
    metadataUrl: "https://acme.eu.auth0.com/.well-known/openid-configuration",
    metadata: { scopes_supported: ["offline_access"] },
    client: "dynamic",
    authorization: (query) => missing(query, { audience: "https://tea.example/api", scope: "tea:read offline_access" }),
    rotates: true,
    // Its access tokens are JWTs, which it cannot revoke.
    revokes: "refresh"
  },
  {
    name: "Cognito",
    provider: Providers.cognito({ region: "eu-central-1", userPoolId: "eu-central-1_AbC", clients: ["client"] }),
    metadataUrl: "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC/.well-known/openid-configuration",
    metadata: {
      code_challenge_methods_supported: undefined,
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"]
    },
    client: "secret",
    authorization: (query) => missing(query, { scope: "tea:read" }),
    rotates: false,
    revokes: "refresh"
  },
  {
    name: "Keycloak",
    provider: Providers.keycloak({ url: "https://login.example", realm: "tea" }),
    metadataUrl: "https://login.example/realms/tea/.well-known/openid-configuration",
    client: "dynamic",
    authorization: (query) => missing(query, { scope: "tea:read" }),
    rotates: true,
    revokes: "both"
  },
  {
    name: "WorkOS AuthKit",
    provider: Providers.workos({ domain: "acme.authkit.app" }),
    metadataUrl: "https://acme.authkit.app/.well-known/oauth-authorization-server",
    metadata: { client_id_metadata_document_supported: true },
    client: "document",
    authorization: (query) => missing(query, { client_id: clientMetadataUrl, resource, scope: "tea:read" }),
    rotates: true,
    revokes: "none"
  }
]

/** Adds a provider and a server that it protects. Returns the tokens that were revoked, and the refreshes that were sent. */
const addProvider = (world: World, row: Row) => {
  const { issuer } = row.provider
  const { write = (json) => "error" in json ? { status: 400, body: json } : { body: json } } = row
  const revoked: Array<string> = []
  const refreshes: Array<Readonly<Record<string, string>>> = []
  const accepted = new Set<string>()
  let serial = 0
  let current = ""
  const at = (path: string) => `https://provider.example/${path}`
  const isClient = ({ form, headers }: Sent): boolean => {
    const given = headers.authorization === undefined
      ? `${form.get("client_id")}:${form.get("client_secret") ?? ""}`
      : decodeURIComponent(Buffer.from(headers.authorization.slice(6), "base64").toString().replaceAll("+", " "))
    const id = row.client === "document" ? clientMetadataUrl : "client"
    return given === `${id}:${row.client === "secret" ? secret : ""}`
  }
  const issue = (withRefresh: boolean): Reply => {
    accepted.add(`a${++serial}`)
    if (withRefresh) current = `r${serial}`
    return write({
      access_token: `a${serial}`,
      token_type: "Bearer",
      expires_in: 600,
      ...(withRefresh ? { refresh_token: current } : {})
    })
  }
  const answers: Readonly<Record<string, (sent: Sent) => Reply>> = {
    [`POST ${resource}`]: ({ headers }) =>
      accepted.has(headers.authorization?.slice(7) ?? "")
        ? {}
        : { status: 401, headers: { "www-authenticate": `Bearer resource_metadata="${prm}", scope="tea:read"` } },
    [`GET ${prm}`]: () => ({ body: { resource, authorization_servers: [issuer] } }),
    [`GET ${row.metadataUrl}`]: () => ({
      body: {
        issuer,
        authorization_endpoint: at("authorize"),
        token_endpoint: at("token"),
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: basic,
        ...(row.client === "dynamic" ? { registration_endpoint: at("register") } : {}),
        ...(row.revokes === "none" ? {} : { revocation_endpoint: at("revoke") }),
        ...row.metadata
      }
    }),
    [`POST ${at("register")}`]: () => ({ status: 201, body: { client_id: "client" } }),
    [`GET ${at("authorize")}`]: ({ url: { searchParams } }) => {
      const location = new URL(searchParams.get("redirect_uri")!)
      const wrong = row.authorization(searchParams)
      const answer = wrong === undefined ? { code: "code" } : { error: "invalid_request", error_description: wrong }
      for (const [name, value] of Object.entries({ ...answer, state: searchParams.get("state")! })) {
        location.searchParams.set(name, value)
      }
      return { status: 302, headers: { location: location.href } }
    },
    [`POST ${at("token")}`]: (sent) => {
      if (!isClient(sent)) return write({ error: "invalid_client" })
      if (sent.form.get("grant_type") === "authorization_code") return issue(true)
      refreshes.push(Object.fromEntries(sent.form))
      if (row.refreshNeedsScope === true && !sent.form.has("scope")) return write({ error: "invalid_request" })
      return sent.form.get("refresh_token") === current ? issue(row.rotates) : write({ error: "invalid_grant" })
    },
    [`POST ${at("revoke")}`]: (sent) => {
      if (!isClient(sent)) return { status: 401, body: { error: "invalid_client" } }
      if (row.revokes === "refresh" && sent.form.get("token_type_hint") === "access_token") {
        return { status: 400, body: { error: "unsupported_token_type" } }
      }
      revoked.push(sent.form.get("token")!)
      return {}
    }
  }
  for (const [route, answer] of Object.entries(answers)) world.routes.set(route, answer)
  return { revoked, refreshes, expire: () => accepted.clear() }
}

const clientOf = ({ client, provider }: Row): Partial<Grant.AuthorizationCodeOptions> => {
  if (client === "dynamic") return {}
  if (client === "document") return { clientMetadataUrl }
  const { issuer } = provider
  return {
    client: { clientId: "client", issuer, ...(client === "secret" ? { clientSecret: Redacted.make(secret) } : {}) }
  }
}

const table = readFileSync(new URL("../../../../docs/identity-providers.md", import.meta.url), "utf8")

describe("what each provider needs", () => {
  for (const row of rows) {
    it.effect(`signs in, refreshes and signs out at ${row.name}`, () => {
      const { asked, layer } = person()
      return Effect.gen(function*() {
        const world = yield* makeWorld
        const { expire, refreshes, revoked } = addProvider(world, row)
        const grant = Grant.authorizationCode({ clientName: "Tea", ...row.provider.grant, ...clientOf(row) })
        const oauth = yield* OAuth.make({
          assumePkce: row.metadata !== undefined && "code_challenge_methods_supported" in row.metadata
            ? [row.provider.issuer]
            : [],
          ...row.provider.oauth,
          grant
        })
        const url = new URL(resource)
        assert.strictEqual(yield* request(oauth, url), 200)
        for (const round of [1, 2]) {
          expire()
          yield* TestClock.adjust("10 minutes")
          assert.strictEqual(yield* request(oauth, url), 200, `refresh ${round}`)
        }
        const used = [...new Set(refreshes.map((form) => form["refresh_token"]))]
        assert.deepEqual(used, row.rotates ? ["r1", "r2"] : ["r1"])
        assert.strictEqual(refreshes.length, row.refreshNeedsScope === true ? 4 : 2)
        assert.strictEqual(asked.length, 1)
        assert.isTrue(Option.getOrThrow(yield* oauth.state(url)).isRenewable)
        yield* oauth.signOut(url)
        const last = row.rotates ? "r3" : "r1"
        assert.deepEqual(revoked, row.revokes === "both" ? [last, "a3"] : row.revokes === "refresh" ? [last] : [])
        assert.isTrue(Option.isNone(yield* oauth.state(url)))
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })

    it(`has a row for ${row.name} in the guide`, () => {
      const found = table.split("## What each request needs")[1]?.split("\n").find((line) =>
        line.startsWith(`| ${row.name} `)
      )
      assert.isDefined(found)
      const cells = found!.split("|").map((cell) => cell.trim())
      assert.include(
        cells[2],
        { secret: "by hand", public: "by hand", dynamic: "dynamic", document: "document" }[row.client]
      )
      assert.include(cells[5], row.refreshNeedsScope === true ? "`scope`" : row.rotates ? "new" : "stays")
      assert.include(cells[6], { both: "both", refresh: "refresh token only", none: "none" }[row.revokes])
    })
  }
})

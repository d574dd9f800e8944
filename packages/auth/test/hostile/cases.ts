/** The table of cases: what the servers do. `outcomes.ts` has what the client does about it. */
import * as AuthorizationScenario from "@skein/testing/AuthorizationScenario"
import type { Endpoint, Fault, Rule } from "@skein/testing/AuthorizationScenario"
import { type Case, planted } from "./kit.ts"

const { members, respond, rule } = AuthorizationScenario

/** Bodies that are not a document, and how their endpoint ends. */
const documents: ReadonlyArray<readonly [string, Fault]> = [
  ["is an HTML page with 200", respond(200, "<!doctype html><title>Sign in</title>", { "content-type": "text/html" })],
  ["is an array", respond(200, [])],
  ["is null", respond(200, "null", { "content-type": "application/json" })],
  ["is empty", respond(200, "")],
  ["is not UTF-8", { _tag: "Respond", status: 200, body: "{\"issuer\":\"\u00e9\u00ff\"}", encoding: "latin1" }],
  ["is nested 100,000 deep", { _tag: "DeepBody", depth: 100_000 }],
  ["has 8 MB", { _tag: "LargeBody", bytes: 8_000_000 }],
  ["never ends", { _tag: "EndlessBody" }],
  ["is never sent", { _tag: "Stall", after: "request" }],
  ["stops after its first byte", { _tag: "Stall", after: "head" }],
  ["is not sent, because the connection is closed", { _tag: "Cut" }],
  ["is answered with 500", respond(500, "<h1>Internal Server Error</h1>")],
  ["is answered with 429", respond(429, "", { "retry-after": "100000" })],
  ["redirects with 302", respond(302, "", { location: "{other}/x" })],
  ["redirects with 307", respond(307, "", { location: "{other}/x" })],
  ["redirects with 308 to a private address", respond(308, "", { location: "http://169.254.169.254/latest" })],
  ["redirects to a file", respond(302, "", { location: "file:///etc/passwd" })]
]

const each = (on: Endpoint, name: string, more: Partial<Case> = {}): ReadonlyArray<Case> =>
  documents.map(([title, fault]) => ({
    title: `${name} ${title}`,
    faults: [rule(on, fault)],
    ...(fault._tag === "Stall" ? { stallsAt: on } : {}),
    ...more
  }))

const changed = (
  on: Endpoint,
  title: string,
  set: Record<string, unknown>,
  remove: ReadonlyArray<string> = []
): Case => ({
  title,
  faults: [rule(on, members(set as never, remove))]
})

const challenge = (status: number, header: string | ReadonlyArray<string>, when = {}): Rule =>
  rule("server", respond(status, "", { "www-authenticate": header }), when)

const hostileText = `\u001b[2J\u202e\r\nSet-Cookie: a=b ${"x".repeat(100_000)}`

const resource = (title: string, resource: string): Case =>
  changed("resource metadata", `the resource is ${title}`, { resource })
const servers = (title: string, authorization_servers: unknown): Case =>
  changed("resource metadata", `authorization_servers ${title}`, { authorization_servers })
const endpoint = (name: string, url: unknown): Case =>
  changed("server metadata", `the ${name} is ${JSON.stringify(url)}`, { [name]: url })
const issuer = (title: string, issuer: unknown): Case => changed("server metadata", `the issuer ${title}`, { issuer })
const answer = (title: string, set: Record<string, unknown>, remove?: ReadonlyArray<string>): Case =>
  changed("authorization", `the answer to the sign-in ${title}`, set, remove)
const token = (title: string, set: Record<string, unknown>, remove?: ReadonlyArray<string>): Case =>
  changed("token", `the token answer ${title}`, set, remove)
const registration = (title: string, set: Record<string, unknown>, remove?: ReadonlyArray<string>): Case =>
  changed("registration", `the registration ${title}`, set, remove)
const refused = (title: string, rules: ReadonlyArray<Rule>, more: Partial<Case> = {}): Case => ({
  title: `the server ${title}`,
  faults: rules,
  ...more
})
const dpop = rule("server metadata", members({ dpop_signing_alg_values_supported: ["ES256"] }))

/** Each document and answer that cannot be read. */
export const documentCases: ReadonlyArray<Case> = [
  ...each("resource metadata", "the metadata of the server"),
  ...each("server metadata", "the metadata of the issuer"),
  ...each("registration", "the registration"),
  ...each("token", "the token answer"),
  ...each("refresh", "the refresh", { isSignedIn: true })
]

/** All other cases. */
export const cases: ReadonlyArray<Case> = [
  resource("a sibling path", "{origin}/mcp2"),
  resource("a longer path", "{server}/more"),
  resource("of another origin", "{other}/mcp"),
  resource("the path in other case", "{origin}/MCP"),
  resource("a host that begins like the server", "{origin}.evil.example/mcp"),
  resource("a host behind the server as user name", "http://127.0.0.1@evil.example/mcp"),
  resource("not a URL", "tea"),
  resource("with a fragment", "{server}#x"),
  servers("is empty", []),
  servers("is a text", "{issuer}"),
  servers("has a file", ["file:///etc/passwd"]),
  servers("has a script", ["javascript:alert(1)"]),
  servers("has an http URL that is not loopback", ["http://login.example"]),
  servers("has a loopback look-alike", ["http://127.0.0.1.evil.example"]),
  servers("has a user name", ["http://user:pw@127.0.0.1:1/"]),
  servers("has a query", ["{issuer}?x=1"]),
  servers("has a broken server first", ["http://127.0.0.1:1", "{issuer}"]),
  servers("has a file first", ["file:///etc/passwd", "{issuer}"]),
  servers("has 1,000 broken servers", Array.from({ length: 1_000 }, () => "http://127.0.0.1:1")),
  servers("has a slash more", ["{issuer}/"]),
  changed("resource metadata", "scopes_supported has 10,000 scopes", {
    scopes_supported: Array.from({ length: 10_000 }, (_, index) => `scope-${index}`)
  }),
  changed("resource metadata", "scopes_supported has scopes with control characters", {
    scopes_supported: ["tea\u0000", "a\"b", "c d", "", "\u202e"]
  }),
  refused("names metadata of another origin", [
    challenge(401, "Bearer resource_metadata=\"{other}/.well-known/oauth-protected-resource\"", { times: 1 })
  ]),
  refused("names a file as metadata", [
    challenge(401, "Bearer resource_metadata=\"file:///etc/passwd\"", { times: 1 })
  ]),

  issuer("is in other case", "HTTP://127.0.0.1"),
  issuer("has a path more", "{issuer}/x"),
  issuer("has a slash more", "{issuer}/"),
  issuer("is another server", "{other}"),
  issuer("is a number", 1),
  changed("server metadata", "PKCE is missing", {}, ["code_challenge_methods_supported"]),
  changed("server metadata", "PKCE is plain", { code_challenge_methods_supported: ["plain"] }),
  endpoint("authorization_endpoint", "file:///etc/passwd"),
  endpoint("authorization_endpoint", "javascript:alert(1)"),
  endpoint("authorization_endpoint", "data:text/html,x"),
  endpoint("authorization_endpoint", "http://login.example/authorize"),
  endpoint("authorization_endpoint", "/authorize"),
  endpoint("authorization_endpoint", 1),
  endpoint("token_endpoint", "file:///etc/passwd"),
  endpoint("token_endpoint", "http://127.0.0.1.evil.example/token"),
  endpoint("token_endpoint", "http://user:pw@127.0.0.1/token"),
  endpoint("token_endpoint", ["{issuer}/token"]),
  endpoint("registration_endpoint", "http://169.254.169.254/register"),
  endpoint("revocation_endpoint", "data:,x"),
  changed("server metadata", "the authorization_endpoint is missing", {}, ["authorization_endpoint"]),
  changed("server metadata", "the token_endpoint is missing", {}, ["token_endpoint"]),
  changed("server metadata", "the registration_endpoint is missing", {}, ["registration_endpoint"]),

  registration("has no client_id", {}, ["client_id"]),
  registration("has a client_id that is a number", { client_id: 7 }),
  registration("has a client_id of 100,000 characters with line ends", { client_id: hostileText }),
  registration("has another redirect URI", { redirect_uris: ["{other}/callback"] }),
  registration("has a secret that is expired", {
    client_secret: `${planted}-secret`,
    client_secret_expires_at: 1,
    token_endpoint_auth_method: "client_secret_post"
  }),
  registration("has an address of an attacker", {
    registration_client_uri: "{other}/client",
    registration_access_token: `${planted}-access`
  }),
  registration("has an unknown authentication method", {
    client_secret: `${planted}-secret`,
    token_endpoint_auth_method: "tea"
  }),
  { title: "the registration is answered with 200", faults: [rule("registration", respond(200, { client_id: "c" }))] },
  {
    title: "the registration is refused with a hostile text",
    faults: [rule("registration", respond(400, { error: hostileText, error_description: hostileText }))]
  },

  answer("has another iss", { iss: "{other}" }),
  answer("has the iss with a slash", { iss: "{issuer}/" }),
  answer("has no iss", {}, ["iss"]),
  answer("has another state", { state: "x" }),
  answer("has no state", {}, ["state"]),
  answer("has no code", {}, ["code"]),
  answer("has an empty code", { code: "" }),
  answer("has the code of an attacker", { code: "attacker" }),
  answer("has a token", { access_token: "x", token_type: "Bearer" }),
  answer("is an error", { error: "access_denied", error_description: hostileText.slice(0, 4_000) }, ["code"]),
  answer("is an error of another iss", { error: "access_denied", iss: "{other}" }, ["code"]),
  {
    title: "the answer to the sign-in is that of the one before",
    faults: [rule("refresh", respond(400, { error: "invalid_grant" }))],
    isSignedIn: true,
    isReplayed: true
  },
  { title: "the sign-in page is an error", faults: [rule("authorization", respond(500, "<h1>error</h1>"))] },

  { title: "the token answer is 503", faults: [rule("token", respond(503, "", { "retry-after": "1" }))] },
  { title: "the token answer is a page with 404", faults: [rule("token", respond(404, "<h1>404</h1>"))] },
  { title: "the token answer is an error with 200", faults: [rule("token", respond(200, { error: "invalid_grant" }))] },
  {
    title: "the token answer is an error with a hostile text",
    faults: [rule("token", respond(400, { error: "invalid_request", error_description: hostileText }))]
  },
  {
    title: "the token answer is an error that is hostile",
    faults: [rule("token", respond(400, { error: hostileText }))]
  },
  { title: "the token answer is an error that is a number", faults: [rule("token", respond(400, { error: 1 }))] },
  {
    title: "the token has 16,385 bytes",
    faults: [rule("token", members({ access_token: "x".repeat(16_385) }))]
  },
  {
    title: "maxScopes · the server lists three scopes",
    bounds: { maxScopes: 2 },
    faults: [rule("resource metadata", members({ scopes_supported: ["a", "b", "c"] }))]
  },
  refused("requires another scope each time (maxStepUps)", [
    challenge(403, "Bearer error=\"insufficient_scope\", scope=\"s{n}\"")
  ], { isSignedIn: true, isTokenValid: true, bounds: { maxStepUps: 1 } }),
  {
    title: "the token answer repeats the request as its error code",
    faults: [rule("token", respond(400, { error: "{body}" }))]
  },
  {
    title: "a job gets an error that repeats its secret",
    grant: "job",
    faults: [
      rule("server metadata", members({ token_endpoint_auth_methods_supported: ["client_secret_post"] })),
      rule("token", respond(400, { error: "{body}", error_description: "{body}" }))
    ]
  },
  {
    title: "the token answer repeats the request in its error",
    faults: [rule("token", respond(400, { error: "invalid_grant", error_description: "{body}" }))]
  },
  {
    title: "the refresh repeats the request in its error",
    isSignedIn: true,
    faults: [rule("refresh", respond(400, { error: "{body}", error_description: "{body}" }))]
  },
  { title: "the token answer is lost", faults: [rule("token", { _tag: "Cut", isHandled: true })] },
  token("has no access_token", {}, ["access_token"]),
  token("has an empty access_token", { access_token: "" }),
  token("has an access_token that is a number", { access_token: 7 }),
  token("has an access_token with spaces", { access_token: `${planted} ${planted}` }),
  token("has an access_token with a line end", { access_token: `${planted}\r\nx-admin: 1` }),
  token("has an access_token with control characters", { access_token: `${planted}\u0000\u007f` }),
  token("has an access_token outside of ASCII", { access_token: `${planted}\u2603` }),
  token("has an access_token of 100,000 characters", { access_token: `${planted}${"x".repeat(100_000)}` }),
  token("has no token_type", {}, ["token_type"]),
  token("has the token_type mac", { token_type: "mac" }),
  token("has the token_type N_A", { token_type: "N_A" }),
  token("has the token_type DPoP, which was not requested", { token_type: "DPoP" }),
  token("has no expires_in", {}, ["expires_in"]),
  token("has a negative expires_in", { expires_in: -1 }),
  token("has an expires_in of 0", { expires_in: 0 }),
  token("has a huge expires_in", { expires_in: 1e300 }),
  token("has an expires_in that is a text", { expires_in: "3600" }),
  token("has an expires_in that is no number", { expires_in: "soon" }),
  token("has an expires_in that is null", { expires_in: null }),
  token("has a refresh_token that is a number", { refresh_token: 7 }),
  token("has an empty refresh_token", { refresh_token: "" }),
  token("has an ID token that is none", { id_token: planted }),
  { ...token("has fewer scopes", { scope: "read" }), options: { scopes: ["read", "write"] } },
  { ...token("has no scopes", { scope: "" }), options: { scopes: ["read"] } },
  token("has a scope that is a number", { scope: 1 }),

  {
    title: "the refresh is answered with invalid_grant",
    isSignedIn: true,
    faults: [rule("refresh", respond(400, { error: "invalid_grant" }))]
  },
  {
    title: "the refresh is answered with invalid_client",
    isSignedIn: true,
    faults: [rule("refresh", respond(401, { error: "invalid_client" }))]
  },
  { title: "the refresh is answered with 503", isSignedIn: true, faults: [rule("refresh", respond(503))] },
  {
    title: "the refresh is answered with 503, in 20 calls",
    isSignedIn: true,
    calls: 20,
    faults: [rule("refresh", respond(503))]
  },
  {
    title: "the answer of the refresh is lost",
    isSignedIn: true,
    reused: 1,
    faults: [rule("refresh", { _tag: "Cut", isHandled: true })]
  },
  {
    title: "the answer of the refresh is a page, and the refresh was carried out",
    isSignedIn: true,
    reused: 1,
    faults: [rule("refresh", { _tag: "Respond", status: 200, body: "<html>", isHandled: true })]
  },
  {
    title: "the refresh has an empty access_token",
    isSignedIn: true,
    reused: 1,
    faults: [rule("refresh", members({ access_token: "" }))]
  },
  {
    title: "the refresh has another token_type",
    isSignedIn: true,
    reused: 1,
    faults: [rule("refresh", members({ token_type: "mac" }))]
  },
  {
    title: "the refresh has no refresh_token",
    isSignedIn: true,
    faults: [rule("refresh", members({}, ["refresh_token"]))]
  },
  {
    title: "the refresh has fewer scopes",
    isSignedIn: true,
    options: { scopes: ["read", "write"] },
    faults: [rule("refresh", members({ scope: "read" }))]
  },
  {
    title: "the issuer changes after the sign-in",
    isSignedIn: true,
    faults: [rule("server metadata", members({ issuer: "{other}" }))]
  },
  {
    title: "the endpoints change to scripts after the sign-in",
    isSignedIn: true,
    faults: [rule("server metadata", members({ token_endpoint: "javascript:alert(1)" }))]
  },
  {
    title: "the metadata of the server is gone after the sign-in",
    isSignedIn: true,
    faults: [rule("resource metadata", respond(404))]
  },
  {
    title: "tokens live for one second by the clock of the client",
    tokenLifetimeSeconds: 1,
    calls: 5,
    secondsBetweenCalls: 2,
    faults: []
  },
  { title: "tokens expire early by the clock of the server", isSignedIn: true, calls: 5, faults: [] },
  {
    title: "tokens live for one second, and each refresh fails",
    tokenLifetimeSeconds: 1,
    isSignedIn: true,
    isTokenValid: true,
    calls: 5,
    faults: [rule("refresh", respond(503))]
  },

  refused("sends no challenge", [challenge(401, [])]),
  refused("sends a challenge with each response", [challenge(401, "Bearer")], { calls: 5 }),
  refused("refuses a token that is renewed", [challenge(401, "Bearer error=\"invalid_token\"")], { isSignedIn: true }),
  refused("refuses one of two calls", [challenge(401, "Bearer", { nth: 1, times: 1 })], {
    isSignedIn: true,
    isTokenValid: true,
    calls: 3
  }),
  refused("sends a challenge with 1,000 parameters", [
    challenge(401, `Bearer ${Array.from({ length: 1_000 }, (_, index) => `p${index}="x"`).join(", ")}`, { times: 1 })
  ]),
  refused("sends a challenge with an unterminated quote", [challenge(401, "Bearer scope=\"read", { times: 1 })]),
  refused("sends two challenges", [
    challenge(401, ["Basic realm=\"Bearer scope=\\\"x\\\"\"", "Bearer scope=\"read\""], { times: 1 })
  ]),
  refused("repeats the token in its challenge", [challenge(401, "Bearer error=\"bad {token}\"")]),
  refused("repeats the token as a scope", [
    challenge(403, "Bearer error=\"insufficient_scope\", scope=\"{token}\"")
  ], { isSignedIn: true, isTokenValid: true }),
  refused("repeats the token in a page", [rule("server", respond(500, "<h1>{token}</h1>"))], {
    isSignedIn: true,
    isTokenValid: true
  }),
  refused("answers 403 without a challenge", [rule("server", respond(403))], { isSignedIn: true, isTokenValid: true }),
  refused("answers 403 with another error", [challenge(403, "Bearer error=\"invalid_token\"")], {
    isSignedIn: true,
    isTokenValid: true
  }),
  refused("requires scopes again and again", [challenge(403, "Bearer error=\"insufficient_scope\", scope=\"write\"")], {
    isSignedIn: true,
    isTokenValid: true
  }),
  refused("requires another scope each time", [challenge(403, "Bearer error=\"insufficient_scope\", scope=\"s{n}\"")], {
    isSignedIn: true,
    isTokenValid: true
  }),
  refused("requires another scope each time, in 5 calls", [
    challenge(403, "Bearer error=\"insufficient_scope\", scope=\"s{n}\"")
  ], { isSignedIn: true, isTokenValid: true, calls: 5 }),
  refused("requires scopes without naming them", [challenge(403, "Bearer error=\"insufficient_scope\"")], {
    isSignedIn: true,
    isTokenValid: true
  }),
  refused("requires 1,000 scopes", [
    challenge(
      403,
      `Bearer error="insufficient_scope", scope="${
        Array.from({ length: 1_000 }, (_, index) => `scope${index}`).join(" ")
      }"`
    )
  ], { isSignedIn: true, isTokenValid: true }),
  refused("redirects to another origin", [rule("server", respond(307, "", { location: "{other}/mcp" }))], {
    isSignedIn: true,
    isTokenValid: true
  }),
  refused("wants another DPoP nonce each time", [
    rule("server", respond(401, "", { "www-authenticate": "DPoP error=\"use_dpop_nonce\"", "dpop-nonce": "n{n}" }), {
      nth: 1
    }),
    dpop
  ], { options: { dpop: "always" } }),
  refused("wants a DPoP nonce and sends none", [
    rule("server", respond(401, "", { "www-authenticate": "DPoP error=\"use_dpop_nonce\"" }), { nth: 1 }),
    dpop
  ], { options: { dpop: "always" } }),
  {
    title: "the token endpoint wants another DPoP nonce each time",
    options: { dpop: "always" },
    faults: [dpop, rule("token", respond(400, { error: "use_dpop_nonce" }, { "dpop-nonce": "n{n}" }))]
  },
  {
    title: "the token endpoint gives a bearer token for a proof",
    options: { dpop: "always" },
    faults: [dpop, rule("token", members({ token_type: "Bearer" }))]
  },

  {
    title: "a job is refused by the token endpoint",
    grant: "job",
    faults: [rule("token", respond(401, { error: "invalid_client", error_description: "no" }))]
  },
  { title: "a job gets 503", grant: "job", faults: [rule("token", respond(503))] },
  { title: "a job gets 503, in 20 calls", grant: "job", calls: 20, faults: [rule("token", respond(503))] },
  {
    title: "a job is refused by the token endpoint, in 20 calls",
    grant: "job",
    calls: 20,
    faults: [rule("token", respond(401, { error: "invalid_client" }))]
  },
  { title: "the registration is refused, in 20 calls", calls: 20, faults: [rule("registration", respond(403))] },
  { title: "the tokens of a job are refused", grant: "job", faults: [challenge(401, "Bearer")] },
  { title: "a job is sent to another issuer", grant: "job of another issuer", faults: [] }
]

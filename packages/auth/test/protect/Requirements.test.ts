/**
 * Each requirement of the authorization pages for an MCP server, in every revision, with tokens of a real authorization
 * server (`oidc-provider`). A requirement that a revision does not have yet is met there all the same: clients of all
 * revisions use one server. 2024-11-05 has no authorization page.
 */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as Protect from "@skein/auth/Protect"
import * as Scopes from "@skein/auth/Scopes"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as Elicitation from "@skein/server/Elicitation"
import { McpRequest } from "@skein/server/McpRequest"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { inspect } from "node:util"
import { bearer, challengeOf, freePort, type Json, posting, type Reply, revisions, send, serve } from "./kit.ts"

const run: Array<string> = []
const tool = (name: string) => Tool.layer(Tool.make(name), () => Effect.sync(() => (run.push(name), name)))

/** An upstream server without protection, and the headers that it received. */
const upstream = Effect.gen(function*() {
  const received: Array<Readonly<Record<string, unknown>>> = []
  const { port } = yield* serve(undefined, [tool("stock")], {
    principal: ({ headers }) => (received.push(headers), undefined)
  })
  return { received, url: `http://127.0.0.1:${port}/mcp` }
})

const definitions = (url: string) => [
  tool("menu"),
  Scopes.required(["tea:write"], tool("brew"), Scopes.required(["tea:pour"], tool("pour"))),
  Scopes.required(
    ["tea:secret"],
    Resource.layer(Resource.make("tea://recipe", { name: "recipe" }), Effect.succeed("secret")),
    Prompt.layer(Prompt.make("greet"), () => Effect.succeed("Hello"))
  ),
  Tool.layer(
    Tool.make("brewAt", { input: { shop: Schema.String } }),
    ({ shop }) => Effect.as(Scopes.require(`tea:${shop}`, "tea:write"), shop)
  ),
  // Reports the credentials that a handler can reach, and those that its own calls send.
  Tool.layer(Tool.make("relay"), () =>
    Effect.scoped(Effect.gen(function*() {
      const request = yield* McpRequest
      const client = yield* Client.make(ClientHttp.transport({ url }))
      yield* client.callTool("stock")
      const names = ["authorization", "dpop", "cookie"]
      return inspect([request, names.map((name) => request.origin?.header?.(name))], { depth: 12, showHidden: true })
    })).pipe(Effect.orDie)),
  Tool.layer(Tool.make("ask"), () =>
    Effect.map(
      Elicitation.accepted(Elicitation.form("Which tea?", Elicitation.make({ tea: Schema.String }))),
      ({ tea }) => tea
    ))
]

const hierarchy = Scopes.implies({ "tea:admin": ["tea:write", "tea:pour"], "tea:write": ["tea:read"] })

const start = Effect.gen(function*() {
  const dev = yield* DevServer.make({ users: [{ name: "ada" }, { name: "grace" }] })
  const port = yield* freePort
  const resource = `http://127.0.0.1:${port}/mcp`
  const { received, url } = yield* upstream
  let ahead = 0
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe() + ahead
  const moved: Clock.Clock = Object.assign(Object.create(clock) as Clock.Clock, {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now)
  })
  const protection = Protect.make({
    resource,
    verify: TokenVerifier.jwt({ issuer: dev.issuer }),
    scopes: ["tea:read"],
    hierarchy,
    maxFailures: 0
  })
  const server = yield* Effect.provideService(serve(protection, definitions(url), { port }), Clock.Clock, moved)
  const token = (options: Partial<DevServer.TokenOptions> = {}) =>
    dev.issueToken({ resource, scopes: ["tea:read"], subject: "ada", ...options })
  return {
    dev,
    received,
    resource,
    server,
    token,
    ada: yield* token(),
    metadata: `http://127.0.0.1:${port}/.well-known/oauth-protected-resource/mcp`,
    wait: (millis: number) => void (ahead += millis)
  }
})

describe.each(revisions)("%s, the requirements for servers", (revision, clientOf) => {
  const scope = Scope.makeUnsafe()
  let fixture: Effect.Success<typeof start>
  beforeAll(async () => {
    fixture = await Effect.runPromise(Scope.provide(start, scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  /** A client that has opened a session, if the revision has sessions. */
  const open = (token: string = fixture.ada) =>
    Effect.gen(function*() {
      const client = clientOf(fixture.server)
      expect(yield* client.open(bearer(token))).toBeUndefined()
      const call = (name: string, token: string | undefined = fixture.ada, args: Json = {}) =>
        client.request("tools/call", { name, arguments: args }, bearer(token))
      return { call, client, request: client.request }
    })

  /** Expects a refusal for missing scopes. Over HTTP+SSE the status of a message is sent before it is handled. */
  const expectStepUp = (reply: Reply, scope: string): void => {
    const data = { error: "insufficient_scope", scope, resource_metadata: fixture.metadata }
    expect(reply.json.error.data).toEqual(data)
    expect(reply.status).toBe(revision === "2024-11-05" ? 202 : 403)
    if (revision !== "2024-11-05") expect(challengeOf(reply)).toMatchObject(data)
  }

  it.live(`${revision} · S1 · responds 401 without a valid token, 403 without a scope, and 400 to malformed authorization`, () =>
    Effect.gen(function*() {
      const { call, client } = yield* open()
      const expired = yield* fixture.token({ accessTokenLifetime: "-1 minute" })
      const poor = yield* fixture.token({ scopes: ["other"] })
      const statuses = [
        (yield* client.request("tools/call", { name: "menu" }, {})).status,
        (yield* call("menu", "invalid")).status,
        (yield* call("menu", expired)).status,
        (yield* call("menu", poor)).status,
        (yield* client.request("tools/call", { name: "menu" }, { authorization: "Bearer a b" })).status
      ]
      expect(statuses).toEqual([401, 401, 401, 403, 400])
    }))

  it.live(`${revision} · S2 · publishes metadata with authorization_servers, whose metadata exists`, () =>
    Effect.gen(function*() {
      const path = "/.well-known/oauth-protected-resource/mcp"
      const { json } = yield* send(fixture.server, { method: "GET", path })
      const { dev, resource } = fixture
      expect(json).toMatchObject({ resource, authorization_servers: [dev.issuer] })
      const [issuer] = json.authorization_servers
      const found = yield* Effect.promise(async () =>
        (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json()
      )
      expect(found).toMatchObject({ issuer, code_challenge_methods_supported: ["S256"] })
    }))

  it.live(`${revision} · S3 · has resource_metadata in the challenge of a 401, and the address is that of the metadata`, () =>
    Effect.gen(function*() {
      const client = clientOf(fixture.server)
      const refused = (yield* client.open({})) ?? (yield* client.request("tools/list"))
      expect(refused.status).toBe(401)
      const url = challengeOf(refused)["resource_metadata"]!
      expect(url).toBe(fixture.metadata)
      const json: Json = yield* Effect.promise(async () => (await fetch(url)).json())
      expect(json.resource).toBe(fixture.resource)
    }))

  it.live(`${revision} · S4 · has the required scopes in the challenge of a 401`, () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      expect(challengeOf(yield* send(fixture.server, { headers: posting, body: "{}" }))["scope"]).toBe("tea:read")
      expect(challengeOf(yield* call("menu", "invalid"))["scope"]).toBe("tea:read")
    }))

  it.live(`${revision} · S5 · validates the token before it handles anything`, () =>
    Effect.gen(function*() {
      const { call, client } = yield* open()
      run.length = 0
      const forged = `${fixture.ada.slice(0, -8)}AAAAAAAA`
      expect((yield* call("menu", forged)).status).toBe(401)
      // Neither the method nor the body of a refused request is looked at.
      expect((yield* client.request("unknown/method", {}, bearer(forged))).status).toBe(401)
      for (const body of ["not JSON", "[]", "x".repeat(1_000)]) {
        const path = revision === "2024-11-05" ? "/messages?sessionId=x" : "/mcp"
        expect((yield* send(fixture.server, { path, headers: { ...posting, ...bearer(forged) }, body })).status).toBe(
          401
        )
      }
      expect(run).toEqual([])
      expect((yield* call("menu")).json.result.content[0].text).toBe("menu")
      expect(run).toEqual(["menu"])
    }))

  it.live(`${revision} · S6 · accepts only tokens that were issued for it`, () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      const { resource } = fixture
      const audiences = [
        "https://coffee.example/mcp",
        resource.replace("/mcp", ""),
        `${resource}/`,
        resource.toUpperCase()
      ]
      for (const audience of audiences) {
        const refused = yield* call("menu", yield* fixture.token({ resource: audience }))
        expect([audience, refused.status, challengeOf(refused)["error"]]).toEqual([audience, 401, "invalid_token"])
      }
      const shared = yield* fixture.token({ claims: { aud: ["https://coffee.example/mcp", resource] } })
      expect((yield* call("menu", shared)).json.result).toBeDefined()
      const none = yield* fixture.token({ claims: { aud: undefined } })
      expect((yield* call("menu", none)).status).toBe(401)
    }))

  it.live(`${revision} · S7 · never passes a client's token on: handlers cannot read it, and their calls do not send it`, () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      fixture.received.length = 0
      const reply = yield* call("relay")
      const parts = fixture.ada.split(".")
      const seen: string = reply.json.result.content[0].text
      for (const part of [fixture.ada, parts[2]!]) {
        expect(seen).not.toContain(part)
        expect(JSON.stringify(fixture.received)).not.toContain(part)
      }
      expect(seen).toContain("ada")
      expect(fixture.received.length).toBeGreaterThan(0)
      expect(fixture.received.filter((headers) => "authorization" in headers)).toEqual([])
    }))

  it.live(`${revision} · S8 · refuses a tool, a resource, a prompt and a handler with 403, the scopes and resource_metadata`, () =>
    Effect.gen(function*() {
      const { call, request } = yield* open()
      const as = bearer(fixture.ada)
      expectStepUp(yield* call("brew"), "tea:read tea:write")
      expectStepUp(yield* request("resources/read", { uri: "tea://recipe" }, as), "tea:read tea:secret")
      expectStepUp(yield* request("prompts/get", { name: "greet" }, as), "tea:read tea:secret")
      expectStepUp(yield* call("brewAt", fixture.ada, { shop: "north" }), "tea:read tea:north tea:write")
      const all = yield* fixture.token({ scopes: ["tea:write", "tea:secret", "tea:north"] })
      expect((yield* call("brew", all)).json.result).toBeDefined()
      expect((yield* request("resources/read", { uri: "tea://recipe" }, bearer(all))).json.result).toBeDefined()
      expect((yield* request("prompts/get", { name: "greet" }, bearer(all))).json.result).toBeDefined()
      expect((yield* call("brewAt", all, { shop: "north" })).json.result).toBeDefined()
    }))

  it.live(`${revision} · S9 · names all scopes of the operation in one challenge, the same way each time`, () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      const some = yield* fixture.token({ scopes: ["tea:read", "tea:pour"] })
      for (const token of [fixture.ada, some, fixture.ada, some]) {
        expectStepUp(yield* call("pour", token), "tea:read tea:write tea:pour")
      }
    }))

  it.live(`${revision} · S10 · accounts for hierarchies of scopes`, () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      const admin = yield* fixture.token({ scopes: ["tea:admin"] })
      const writer = yield* fixture.token({ scopes: ["tea:write"] })
      for (const name of ["menu", "brew", "pour"]) expect((yield* call(name, admin)).json.result).toBeDefined()
      expect((yield* call("brew", writer)).json.result).toBeDefined()
      expectStepUp(yield* call("pour", writer), "tea:read tea:write tea:pour")
    }))

  it.live(`${revision} · S11 · has no offline_access in challenges and metadata`, () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      // The authorization server supports it, and the token of this client has it.
      const token = yield* fixture.token({ scopes: ["tea:read", "offline_access"] })
      const page = yield* send(fixture.server, { method: "GET", path: "/.well-known/oauth-protected-resource" })
      const replies = [yield* call("menu", "invalid"), yield* call("brew", token), page]
      expect(replies.map(({ headers, text }) => `${headers["www-authenticate"]} ${text}`).join("\n")).not.toContain(
        "offline_access"
      )
      const options = { resource: fixture.resource, verify: TokenVerifier.jwt({ issuer: fixture.dev.issuer }) }
      const exit = yield* Effect.exit(Protect.make({ ...options, scopes: ["offline_access"] }))
      expect(String(exit)).toContain("scopes must not have offline_access")
    }))

  it.live(`${revision} · S12 · takes possession of a session id or a handle as no authentication`, () =>
    Effect.gen(function*() {
      const { client } = yield* open()
      const grace = yield* fixture.token({ subject: "grace" })
      const ping = revision === "2026-07-28" ? "tools/list" : "ping"
      expect((yield* client.request(ping, {}, {})).status).toBe(401)
      if (revision !== "2026-07-28") {
        expect((yield* client.request("ping", {}, bearer(grace))).status).toBe(404)
        expect((yield* client.request("ping", {}, bearer(fixture.ada))).json.result).toEqual({})
        return
      }
      // The handle of this revision: the state of a request that waits for input.
      const capabilities = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } }
      const ask = (token: string, more: Json = {}) =>
        client.request("tools/call", { name: "ask", arguments: {}, ...more, _meta: capabilities }, bearer(token))
      const { inputRequests, requestState } = (yield* ask(fixture.ada)).json.result
      const [key] = Object.keys(inputRequests)
      const retry = { requestState, inputResponses: { [key!]: { action: "accept", content: { tea: "green" } } } }
      expect((yield* ask(grace, retry)).json.error.message).toContain("it was issued to another principal")
      expect((yield* ask(fixture.ada, retry)).json.result.content[0].text).toBe("green")
    }))

  it.live(`${revision} · S13 · enforces the expiry of a known token, and accepts tokens of rotated keys`, () =>
    Effect.gen(function*() {
      const { call } = yield* open()
      const short = yield* fixture.token({ accessTokenLifetime: "30 seconds" })
      const long = yield* fixture.token({ accessTokenLifetime: "1 hour" })
      expect((yield* call("menu", short)).json.result).toBeDefined()
      // `clockTolerance` is 5 seconds.
      fixture.wait(36_000)
      const refused = yield* call("menu", short)
      expect([refused.status, challengeOf(refused)["error"]]).toEqual([401, "invalid_token"])
      expect((yield* call("menu", long)).json.result).toBeDefined()
      yield* fixture.dev.rotateKeys
      expect((yield* call("menu", yield* fixture.token({ accessTokenLifetime: "1 hour" }))).json.result).toBeDefined()
      expect((yield* call("menu", long)).json.result).toBeDefined()
    }))
})

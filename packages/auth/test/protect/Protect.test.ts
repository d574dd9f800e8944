/**
 * A protected server in every revision, over real HTTP: each requirement of the specification's authorization pages for
 * MCP servers. 2024-11-05 has no authorization page; over HTTP+SSE the server behaves as in the others.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Protect from "@skein/auth/Protect"
import * as Scopes from "@skein/auth/Scopes"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import { McpRequest } from "@skein/server/McpRequest"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  bearer,
  challengeOf,
  issuer,
  metadata,
  posting,
  protect,
  resource,
  revisions,
  send,
  serve,
  Tokens
} from "./kit.ts"

const calls: Array<string> = []
const menu = Tool.layer(Tool.make("menu"), () => Effect.sync(() => (calls.push("menu"), "tea")))
const whoami = Tool.layer(Tool.make("whoami"), () =>
  Effect.map(McpRequest, ({ caller, origin }) =>
    JSON.stringify({
      principal: caller.principal,
      read: ["authorization", "dpop"].map((name) => origin?.header?.(name) ?? null)
    })))
const brew = Scopes.required(
  ["tea:write"],
  Tool.layer(Tool.make("brew", { input: { cups: Schema.Int } }), () => Effect.succeed("brewed"))
)
const purge = Scopes.required(
  ["tea:admin", "tea:write"],
  Tool.layer(Tool.make("purge"), () => Effect.succeed("purged"))
)
const definitions = [menu, whoami, brew, purge]
const callOf = (name: string, args = {}) => ["tools/call", { name, arguments: args }] as const

describe.each(revisions)("%s", (revision, clientOf) => {
  const start = (options: Partial<Protect.Options> = {}) =>
    Effect.gen(function*() {
      const tokens = new Tokens()
      const server = yield* serve(protect(tokens, { scopes: ["tea:read"], ...options }), definitions)
      tokens.add("ada", { scopes: ["tea:read"] })
      return { server, tokens, client: clientOf(server) }
    })

  it.live(`${revision} · authorization required: 401 with resource_metadata and scope, and no error without a token`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { client, server } = yield* start()
      const refused = (yield* client.open({})) ?? (yield* client.request("ping"))
      expect(refused.status).toBe(401)
      expect(challengeOf(refused)).toEqual({ scope: "tea:read", resource_metadata: metadata })
      expect(refused.headers["www-authenticate"]).toMatch(/^Bearer /)
      expect(refused.json).toEqual({ jsonrpc: "2.0", error: { code: -32600, message: expect.any(String) } })
      // A scheme that is not supported is not authentication information.
      const basic = yield* send(server, { headers: { ...posting, authorization: "Basic YTpi" }, body: "{}" })
      expect([basic.status, challengeOf(basic)["error"]]).toEqual([401, undefined])
    })))

  it.live(`${revision} · the token is invalid or expired, or was issued for another resource: 401 with invalid_token`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { client, tokens } = yield* start()
      yield* client.open(bearer("ada"))
      tokens.add("expired", { expiresAt: 1 })
      tokens.add("another", { audiences: ["https://other.example/mcp"] })
      tokens.add("normalized", { audiences: [`${resource}/`] })
      tokens.add("nobody", { subject: undefined, clientId: undefined })
      calls.length = 0
      for (const token of ["unknown", "expired", "another", "normalized", "nobody", "ada="]) {
        const refused = yield* client.request(...callOf("menu"), bearer(token))
        expect([token, refused.status]).toEqual([token, 401])
        expect(challengeOf(refused)).toEqual({
          error: "invalid_token",
          error_description: expect.any(String),
          scope: "tea:read",
          resource_metadata: metadata
        })
        expect(JSON.stringify(refused)).not.toContain("https://other.example")
      }
      expect(calls).toEqual([])
      expect((yield* client.request(...callOf("menu"), bearer("ada"))).json.result.content[0].text).toBe("tea")
    })))

  it.live(`${revision} · malformed authorization: 400 with invalid_request`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { client } = yield* start()
      yield* client.open(bearer("ada"))
      for (const authorization of ["Bearer", "Bearer ", "Bearer a b", "Bearer ada, Bearer ada", "bearer \"ada\""]) {
        const refused = yield* client.request(...callOf("menu"), { authorization })
        expect([authorization, refused.status]).toEqual([authorization, 400])
        expect(challengeOf(refused)).toMatchObject({ error: "invalid_request", resource_metadata: metadata })
      }
      // The name of a scheme has no case.
      expect((yield* client.request(...callOf("menu"), { authorization: "bearer  ada" })).json.result).toBeDefined()
    })))

  it.live(`${revision} · tokens are validated before anything is handled: no body is read, and no method is open`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { server, tokens } = yield* start()
      const requests = [
        { headers: posting, body: "not JSON" },
        { headers: { "content-type": "text/plain" }, body: "x".repeat(100) },
        { method: "GET", headers: { accept: "text/event-stream" } },
        { method: "DELETE", headers: { "mcp-session-id": "x" } },
        { method: "GET", path: "/sse" },
        { path: "/messages?sessionId=x", headers: posting, body: "{}" },
        { path: "/mcp?access_token=ada", headers: posting, body: "{}" }
      ]
      for (const one of requests) expect([one, (yield* send(server, one)).status]).toEqual([one, 401])
      expect(tokens.verifications).toBe(0)
    })))

  it.live(`${revision} · a client's token is not passed on: handlers cannot read it`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { client } = yield* start()
      yield* client.open(bearer("ada"))
      const reply = yield* client.request(...callOf("whoami"), { ...bearer("ada"), dpop: "proof" })
      const seen = JSON.parse(reply.json.result.content[0].text)
      expect(seen.read).toEqual([null, null])
      expect(seen.principal).toEqual({ id: `${issuer} ada`, client: "app", scopes: ["tea:read"] })
    })))

  it.live(`${revision} · insufficient scope: 403 with all scopes of the operation in one challenge, and then the step-up passes`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { client, tokens } = yield* start()
      yield* client.open(bearer("ada"))
      const scope = "tea:read tea:admin tea:write"
      const data = { error: "insufficient_scope", scope, resource_metadata: metadata }
      const refusals = [
        yield* client.request(...callOf("purge"), bearer("ada")),
        yield* client.request(...callOf("purge"), bearer("ada"))
      ]
      for (const refused of refusals) {
        expect(refused.json.error).toEqual({ code: -32600, message: expect.stringContaining(scope), data })
        if (revision === "2024-11-05") expect(refused.status).toBe(202)
        else {
          expect(refused.status).toBe(403)
          expect(challengeOf(refused)).toEqual({ ...data, error_description: expect.stringContaining("tea:admin") })
        }
      }
      // Invalid arguments do not hide the missing scope.
      const early = yield* client.request(...callOf("brew", { cups: "many" }), bearer("ada"))
      expect(early.json.error.data.scope).toBe("tea:read tea:write")
      tokens.add("admin", { scopes: ["tea:read", "tea:admin", "tea:write"] })
      expect((yield* client.request(...callOf("purge"), bearer("admin"))).json.result.content[0].text).toBe("purged")
      // The claims are those of each request: the session has none of its own.
      expect((yield* client.request(...callOf("purge"), bearer("ada"))).json.error.data).toEqual(data)
    })))

  it.live(`${revision} · the scopes that every request needs: 403`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { client, tokens } = yield* start()
      tokens.add("poor", { scopes: ["other"] })
      yield* client.open(bearer("ada"))
      const refused = yield* client.request(...callOf("menu"), bearer("poor"))
      expect(refused.status).toBe(403)
      expect(challengeOf(refused)).toMatchObject({ error: "insufficient_scope", scope: "tea:read" })
    })))

  it.live(`${revision} · a broader scope implies narrower ones`, () =>
    Effect.scoped(Effect.gen(function*() {
      const hierarchy = Scopes.implies({ "tea:admin": ["tea:write"], "tea:write": ["tea:read", "tea:write"] })
      const { client, tokens } = yield* start({ hierarchy })
      tokens.add("admin", { scopes: ["tea:admin"] })
      tokens.add("writer", { scopes: ["tea:write"] })
      yield* client.open(bearer("admin"))
      for (const name of ["menu", "purge"]) {
        expect((yield* client.request(...callOf(name), bearer("admin"))).json.result).toBeDefined()
      }
      expect((yield* client.request(...callOf("brew", { cups: 1 }), bearer("writer"))).json.result).toBeDefined()
      expect((yield* client.request(...callOf("purge"), bearer("writer"))).json.error.code).toBe(-32600)
    })))

  if (revision !== "2026-07-28") {
    it.live(`${revision} · possession of a session id is no authentication: 401 without a token, 404 with that of another user`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { client, tokens } = yield* start()
        tokens.add("bob", { subject: "bob", scopes: ["tea:read"] })
        // Another issuer may know the same subject.
        tokens.add("other", { subject: undefined, clientId: "ada", scopes: ["tea:read"] })
        yield* client.open(bearer("ada"))
        expect((yield* client.request("ping", {}, {})).status).toBe(401)
        for (const token of ["bob", "other"]) {
          expect((yield* client.request("ping", {}, bearer(token))).status).toBe(404)
        }
        expect((yield* client.request("ping", {}, bearer("ada"))).json.result).toEqual({})
      })))
  }

  it.live(`${revision} · keys or introspection are unavailable: 503 with Retry-After, and the client keeps its token`, () =>
    Effect.scoped(Effect.gen(function*() {
      const { client, tokens } = yield* start()
      yield* client.open(bearer("ada"))
      yield* client.request("ping", {}, bearer("ada"))
      tokens.before = Effect.fail(new TokenVerifier.VerifierUnavailable({ message: "down", retryAfterSeconds: 7 }))
      tokens.add("new", { scopes: ["tea:read"] })
      const refused = yield* client.request(...callOf("menu"), bearer("new"))
      expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "7"])
      expect(refused.headers["www-authenticate"]).toBeUndefined()
      // A token that is known is not verified again.
      expect((yield* client.request(...callOf("menu"), bearer("ada"))).json.result).toBeDefined()
      tokens.before = Effect.void
      expect((yield* client.request(...callOf("menu"), bearer("new"))).json.result).toBeDefined()
    })))
})

describe("the metadata of the resource", () => {
  const get = (options: Partial<Protect.Options> = {}) =>
    Effect.gen(function*() {
      const server = yield* serve(protect(new Tokens(), options), definitions)
      return (path: string, method = "GET") =>
        send(server, { method, path, headers: { origin: "https://elsewhere.example" } })
    })
  const at = "/.well-known/oauth-protected-resource"

  it.live("2025-06-18 · MUST have authorization_servers; it is at the path of the resource and at the root", () =>
    Effect.scoped(Effect.gen(function*() {
      const page = yield* get({ scopes: ["tea:read"], scopesSupported: ["tea:read", "tea:write"], resourceName: "Tea" })
      for (const path of [`${at}/mcp`, at]) {
        const { headers, json, status } = yield* page(path)
        expect(status).toBe(200)
        expect(json).toEqual({
          resource,
          authorization_servers: [issuer],
          scopes_supported: ["tea:read", "tea:write"],
          bearer_methods_supported: ["header"],
          resource_name: "Tea"
        })
        expect(headers["content-type"]).toBe("application/json")
        expect(headers["access-control-allow-origin"]).toBe("*")
        expect(headers["cache-control"]).toBe("public, max-age=300")
      }
      expect((yield* page(`${at}/other`)).status).toBe(403)
    })))

  it.live("answers HEAD without a body, OPTIONS with 204, and other methods with 405", () =>
    Effect.scoped(Effect.gen(function*() {
      const page = yield* get()
      const head = yield* page(at, "HEAD")
      expect([head.status, head.text]).toEqual([200, ""])
      expect(Number(head.headers["content-length"])).toBeGreaterThan(0)
      const preflight = yield* page(at, "OPTIONS")
      expect(preflight.status).toBe(204)
      expect(preflight.headers["access-control-allow-headers"]).toBe("*")
      const posted = yield* page(at, "POST")
      expect([posted.status, posted.headers["allow"]]).toEqual([405, "GET, HEAD, OPTIONS"])
    })))

  it.live("lists every issuer of several verifiers, and accepts the tokens of each", () =>
    Effect.scoped(Effect.gen(function*() {
      const partner = TokenVerifier.make({
        issuer: "https://partner.example",
        verify: () => Effect.succeed({ subject: "ada", audiences: [resource], expiresAt: undefined }),
        acceptsOpaque: false
      })
      const tokens = new Tokens()
      tokens.add("ada")
      const server = yield* serve(
        protect(tokens, { verify: TokenVerifier.anyOf(tokens.verifier, partner) }),
        definitions
      )
      const { json } = yield* send(server, { method: "GET", path: at })
      expect(json.authorization_servers).toEqual([issuer, "https://partner.example"])
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
      const foreign = `${part({ alg: "none" })}.${part({ iss: "https://partner.example" })}.eA`
      const client = revisions.at(-1)![1](server)
      const who = (token: string) =>
        Effect.map(
          client.request(...callOf("whoami"), bearer(token)),
          ({ json }) => JSON.parse(json.result.content[0].text).principal.id
        )
      expect([yield* who("ada"), yield* who(foreign)]).toEqual([`${issuer} ada`, "https://partner.example ada"])
    })))

  it.live.each(
    [
      ["https://tea.example", "https://tea.example/.well-known/oauth-protected-resource", [at]],
      ["https://tea.example/", "https://tea.example/.well-known/oauth-protected-resource", [at]],
      ["https://TEA.example/mcp/", `https://TEA.example${at}/mcp/`, [`${at}/mcp/`, at]],
      ["https://tea.example/a%2fb?x=1", `https://tea.example${at}/a%2fb?x=1`, [`${at}/a%2fb`, at]]
    ] as const
  )("keeps the resource %s as it is written", ([resource, url, paths]) =>
    Effect.scoped(Effect.gen(function*() {
      const protection = yield* Protect.make({ resource, verify: new Tokens().verifier })
      expect(protection.paths).toEqual(paths)
      const server = yield* serve(protection, definitions)
      expect((yield* send(server, { method: "GET", path: paths[0] })).json.resource).toBe(resource)
      expect(challengeOf(yield* send(server, {}))["resource_metadata"]).toBe(url)
    })))

  it.effect.each(
    [
      [{ resource: "tea.example/mcp" }, "is not an http or https address"],
      [{ resource: "https://tea.example/mcp#part" }, "without a fragment"],
      [{ resource: "http://tea.example/mcp" }, "must be an https address, or http on loopback (see allowHttp)"],
      [{ resource: "http://localhost@tea.example/mcp" }, "must be an https address"],
      [{ resource: "http://127.0.0.1.tea.example/mcp" }, "must be an https address"],
      [{ scopes: ["offline_access"] }, "must not have offline_access"],
      [{ scopesSupported: ["tea:read", "offline_access"] }, "must not have offline_access"],
      [{ scopes: ["a b"] }, "is not a scope"],
      [{ scopesSupported: ["a\"b"] }, "is not a scope"],
      [{ verify: { ...new Tokens().verifier, issuers: [] } }, "has no issuer"]
    ] as const
  )("2026-07-28 · rejects options that no metadata can have: %j", ([options, message]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(protect(new Tokens(), options))
      expect(String(exit)).toContain(message)
    }))

  it.effect.each(
    [
      { resource: "http://localhost:3000/mcp" },
      { resource: "http://127.0.0.2/mcp" },
      { resource: "http://[::1]:3000/mcp" },
      { resource: "http://tea.internal/mcp", allowHttp: true }
    ]
  )("RFC 9728, 1.2 · accepts an http resource on loopback, or with allowHttp: %j", (options) =>
    Effect.gen(function*() {
      expect((yield* protect(new Tokens(), options)).paths).toContain(`${at}/mcp`)
    }))
})

/**
 * The clauses of the specification that one sign-in through a real client shows, by revision. Those of single parts are
 * in the tests of these parts: discovery, registration, the answer of a sign-in, scopes.
 */
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TokenStore from "@skein/auth/TokenStore"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { createHash } from "node:crypto"
import { canonicalUri } from "../../src/client/protocol/urls.ts"
import { errorOf, person, request, type Servers, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })
const revisions = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const
type Revision = typeof revisions[number]
const since = (first: Revision): ReadonlyArray<Revision> => revisions.slice(revisions.indexOf(first))

const brew = Tool.layer(Tool.make("brew"), () => Effect.succeed("tea"))
const TeaHouse = McpServer.layer({ name: "tea", version: "1" }, brew)

/** The requests of one flow: the sign-in of a client, a call, a renewal, another call, and the end of the client. */
interface Flow {
  readonly servers: Servers
  /** The requests to the protected server, in order. */
  readonly mcp: ReadonlyArray<{ readonly method: string; readonly url: string; readonly authorization: string }>
  /** The page of the sign-in. */
  readonly page: URL
  readonly registration: Readonly<Record<string, unknown>>
  /** The forms that the token endpoint received: for the code, and for the renewal. */
  readonly forms: ReadonlyArray<Record<string, string>>
}

const flow = (revision: Revision, check: (flow: Flow) => void, change: (servers: Servers) => void = () => {}) => {
  const { asked, layer } = person()
  return Effect.gen(function*() {
    const servers = yield* start
    // 2025-03-26 has no protected resource metadata: the server is its own authorization server.
    if (revision === "2025-03-26") {
      servers.challenge = "Bearer"
      servers.metadata["issuer"] = servers.redirect["iss"] = servers.origin
      servers.routes.set("/.well-known/oauth-protected-resource/mcp", () => ({ status: 404 }))
      servers.routes.set("/.well-known/oauth-authorization-server", () => ({ body: servers.metadata }))
    }
    change(servers)
    const mcp: Array<Flow["mcp"][number]> = []
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => NodeHttp.mount(TeaHouse, {})),
      (server) => Effect.promise(() => server.close())
    )
    servers.server = (request, response) => {
      const { authorization = "", host } = request.headers
      mcp.push({ method: String(request.method), url: `http://${host}${request.url}`, authorization })
      if (servers.accepted.has(authorization.slice(7))) {
        return server.handler(request, response, { principal: { id: "kim" } })
      }
      response.writeHead(401, { "www-authenticate": servers.challenge }).end()
    }
    const oauth = yield* OAuth.make({ grant })
    yield* Effect.scoped(Effect.gen(function*() {
      const transport = ClientHttp.transport({ url: servers.url, credentials: oauth })
      const client = yield* Client.make(transport, { revisions: [revision] })
      yield* client.callTool("brew")
      servers.accepted.clear()
      yield* TestClock.adjust("2 minutes")
      yield* client.callTool("brew")
    }))
    assert.strictEqual(asked.length, 1)
    const { body } = servers.requests.find(({ path }) => path === "/as/register")!
    check({ servers, mcp, page: asked[0]!, registration: JSON.parse(body), forms: servers.forms("/as/token") })
  }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
}

describe("a sign-in", () => {
  for (const revision of revisions) {
    it.effect(`${revision} · Access Token Usage · sends the token in the header of every request, and in no URL`, () =>
      flow(revision, ({ mcp, servers }) => {
        const first = mcp.findIndex(({ authorization }) => authorization !== "")
        assert.isAbove(first, 0)
        for (const { authorization } of mcp.slice(first)) assert.match(authorization, /^Bearer access-\d+$/)
        // A session has its stream and its end, too.
        if (revision !== "2026-07-28") {
          assert.isTrue(["POST", "DELETE"].every((method) => mcp.slice(first).some((each) => each.method === method)))
        }
        for (const { url } of mcp) assert.notMatch(url, /access/)
        for (const { query } of servers.requests) assert.notMatch(query.toString(), /access/)
      }))

    it.effect(`${revision} · Error Handling · begins at a 401, and not before`, () =>
      flow(revision, ({ mcp, servers }) => {
        assert.strictEqual(mcp[0]!.authorization, "")
        assert.isAbove(servers.requests.length, 0)
        assert.isTrue(servers.requests[0]!.path.startsWith("/.well-known/"))
      }))

    it.effect(`${revision} · PKCE · sends the challenge of its verifier with S256`, () =>
      flow(revision, ({ forms, page }) => {
        const verifier = forms[0]!["code_verifier"]!
        assert.match(verifier, /^[\w.~-]{43,128}$/)
        assert.strictEqual(page.searchParams.get("code_challenge_method"), "S256")
        const challenge = createHash("sha256").update(verifier).digest("base64url")
        assert.strictEqual(page.searchParams.get("code_challenge"), challenge)
        assert.isUndefined(forms[1]!["code_verifier"])
      }))

    it.effect(`${revision} · Open Redirection · uses a redirect URI that it has registered, on the loopback interface`, () =>
      flow(revision, ({ forms, page, registration }) => {
        const redirectUri = page.searchParams.get("redirect_uri")!
        assert.deepEqual(registration.redirect_uris, [redirectUri])
        assert.strictEqual(forms[0]!["redirect_uri"], redirectUri)
        assert.match(redirectUri, /^http:\/\/127\.0\.0\.1:/)
      }))

    it.effect(`${revision} · Dynamic Client Registration · registers for the code and for refresh tokens`, () =>
      flow(revision, ({ registration }) => {
        assert.deepEqual(registration.grant_types, ["authorization_code", "refresh_token"])
      }))

    it.effect(`${revision} · Open Redirection · sends a state that nobody can guess`, () =>
      flow(revision, ({ page }) => assert.match(page.searchParams.get("state")!, /^[\w-]{43}$/)))
  }

  it.effect("2025-03-26 · Server Metadata Discovery · reads the metadata (RFC 8414) of the origin, and names its revision", () =>
    flow("2025-03-26", ({ servers }) => {
      const found = servers.requests.filter(({ path }) => path.includes("oauth-authorization-server"))
      assert.strictEqual(found[0]!.path, "/.well-known/oauth-authorization-server")
      for (const { headers } of found) assert.match(String(headers["mcp-protocol-version"]), /^\d{4}-\d\d-\d\d$/)
    }))

  for (const revision of since("2025-06-18")) {
    it.effect(`${revision} · Authorization Server Location · is that of the protected resource metadata`, () =>
      flow(revision, ({ servers }) => {
        const [resource, server] = servers.requests
        assert.strictEqual(resource!.path, "/.well-known/oauth-protected-resource/mcp")
        assert.strictEqual(server!.path, "/.well-known/oauth-authorization-server/as")
      }))

    it.effect(`${revision} · Resource Parameter Implementation · is in each request to the authorization server`, () =>
      flow(revision, ({ forms, page, servers }) => {
        assert.strictEqual(page.searchParams.get("resource"), servers.url.href)
        assert.deepEqual(forms.map((form) => [form["grant_type"], form["resource"]]), [
          ["authorization_code", servers.url.href],
          ["refresh_token", servers.url.href]
        ])
      }))

    it.effect(`${revision} · Resource Parameter Implementation · is sent byte for byte`, () =>
      flow(
        revision,
        ({ forms, page, servers }) => {
          assert.strictEqual(page.searchParams.get("resource"), servers.origin)
          for (const form of forms) assert.strictEqual(form["resource"], servers.origin)
        },
        // `URL` would add a slash.
        (servers) => void (servers.resource["resource"] = servers.origin)
      ))
  }

  it.effect("2025-06-18 · Token Handling · sends each server the tokens of its own authorization server alone", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const [one, two] = [yield* start, yield* start]
      one.token = { access_token: "black", refresh_token: "black-refresh" }
      two.token = { access_token: "green", refresh_token: "green-refresh" }
      one.accepted.add("black")
      two.accepted.add("green")
      const oauth = yield* OAuth.make({ grant })
      for (const { url } of [one, two, one, two]) assert.strictEqual(yield* request(oauth, url), 200)
      for (const each of [one, two]) {
        yield* oauth.signOut(each.url)
        const other = each === one ? "green" : "black"
        assert.notInclude(each.requests.map(({ body, headers }) => `${headers.authorization} ${body}`).join(), other)
      }
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
  it("2025-06-18 · Canonical Server URI · is the most specific one, with a slash at its end only if the server has one", () => {
    for (
      const [url, uri] of [
        ["https://mcp.example.com/mcp", "https://mcp.example.com/mcp"],
        ["https://mcp.example.com", "https://mcp.example.com"],
        ["https://mcp.example.com/", "https://mcp.example.com"],
        ["https://mcp.example.com:8443", "https://mcp.example.com:8443"],
        ["https://mcp.example.com/server/mcp", "https://mcp.example.com/server/mcp"],
        ["https://mcp.example.com/mcp/", "https://mcp.example.com/mcp/"],
        ["HTTPS://MCP.example.com/Mcp", "https://mcp.example.com/Mcp"],
        ["https://mcp.example.com/mcp#fragment", "https://mcp.example.com/mcp"]
      ] as const
    ) assert.strictEqual(canonicalUri(new URL(url)), uri)
  })

  for (const revision of since("2025-11-25")) {
    for (
      const [title, challenged, supported, scope] of [
        ["requests the scopes of the challenge", "brew", ["read", "brew", "admin"], "brew"],
        ["requests scopes of the challenge that the server does not list", "secret", ["read"], "secret"],
        [
          "requests all scopes that the server lists without a challenged one",
          undefined,
          ["read", "brew"],
          "read brew"
        ],
        ["requests no scope if the server names none", undefined, undefined, null]
      ] as const
    ) {
      it.effect(`${revision} · Scope Selection Strategy · ${title}`, () =>
        flow(revision, ({ page }) => assert.strictEqual(page.searchParams.get("scope"), scope), (servers) => {
          if (challenged !== undefined) servers.challenge += `, scope="${challenged}"`
          servers.resource["scopes_supported"] = supported
        }))
    }
  }

  it.effect("2025-11-25 · Authorization Code Protection · refuses OpenID metadata without S256, too", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      delete servers.metadata["code_challenge_methods_supported"]
      servers.routes.set("/.well-known/oauth-authorization-server/as", () => ({ status: 404 }))
      servers.routes.set("/.well-known/openid-configuration/as", () => ({ body: servers.metadata }))
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "PkceUnsupported")
      servers.metadata["code_challenge_methods_supported"] = ["plain"]
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* errorOf(request(oauth, servers.url)), "PkceUnsupported")
      assert.strictEqual(asked.length, 0)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("2026-07-28 · Refresh Tokens · sends a refresh token to the token endpoint alone, in the body", () =>
    flow("2026-07-28", ({ forms, mcp, servers }) => {
      const refreshToken = forms[1]!["refresh_token"]!
      assert.match(refreshToken, /^refresh-\d+$/)
      assert.notInclude(JSON.stringify(mcp), refreshToken)
      for (const { body, headers, path, query } of servers.requests) {
        assert.notInclude(`${JSON.stringify(headers)} ${query.toString()}`, refreshToken)
        if (path !== "/as/token") assert.notInclude(body, refreshToken)
      }
    }))

  it.effect("2026-07-28 · Refresh Tokens · asks the person again where no refresh token was given", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      servers.token = { expires_in: 3_600, refresh_token: undefined }
      const oauth = yield* OAuth.make({ grant })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      servers.accepted.clear()
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(asked.length, 2)
      assert.deepEqual(servers.forms("/as/token").map((form) => form["grant_type"]), [
        "authorization_code",
        "authorization_code"
      ])
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("2026-07-28 · Refresh Tokens · does not request offline_access where the server does not list it", () =>
    flow("2026-07-28", ({ page }) => assert.strictEqual(page.searchParams.get("scope"), "read"), (servers) => {
      servers.metadata["scopes_supported"] = ["read"]
    }))

  it.effect("2026-07-28 · Application Type · registers a program with a loopback redirect URI as native", () =>
    flow("2026-07-28", ({ registration }) => assert.deepInclude(registration, { application_type: "native" })))
})

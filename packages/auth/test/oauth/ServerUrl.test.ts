/** Which URL identifies a server: that of the transport, whatever the URLs of its requests are. */
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Protect from "@skein/auth/Protect"
import * as TokenStore from "@skein/auth/TokenStore"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { createServer, type IncomingMessage, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { person, type Servers, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })
const brew = Tool.layer(Tool.make("brew"), () => Effect.succeed("tea"))
const TeaHouse = McpServer.layer({ name: "tea", version: "1" }, brew)

/** Starts a real server with a `Protect` for a path, and returns its origin and its requests. */
const startProtected = (servers: Servers, path: string, redirect?: readonly [from: string, to: string]) =>
  Effect.gen(function*() {
    let listener: RequestListener = () => {}
    const requests: Array<IncomingMessage> = []
    const http = createServer((request, response) => {
      requests.push(request)
      if (redirect === undefined || request.url !== redirect[0]) return listener(request, response)
      request.resume()
      response.writeHead(308, { location: redirect[1] }).end()
    })
    yield* Effect.promise(() => new Promise<void>((done) => void http.listen(0, "127.0.0.1", done)))
    const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
    const resource = `${origin}${path}`
    const verify = TokenVerifier.make({
      issuer: servers.issuer,
      verify: (token) =>
        servers.accepted.has(token)
          ? Effect.succeed({ subject: "ada", audiences: [resource], expiresAt: undefined, clientId: "app" })
          : Effect.fail(new TokenVerifier.InvalidToken({ message: "the token is unknown", problem: "Inactive" }))
    })
    const protection = yield* Protect.make({ resource, verify })
    const { close, handler } = yield* Effect.promise(() =>
      NodeHttp.mount(TeaHouse, { protection, legacySse: LegacySse.make() })
    )
    listener = handler
    yield* Effect.addFinalizer(() => Effect.promise(() => (http.close(), http.closeAllConnections(), close())))
    return { origin, requests }
  })

describe("the URL of a server", () => {
  for (const query of ["", "?team=1"]) {
    it.effect(`2024-11-05 · sends the tokens for /sse${query} to the endpoint of its session`, () => {
      const { asked, layer } = person()
      return Effect.gen(function*() {
        const servers = yield* start
        const { origin, requests } = yield* startProtected(servers, "/sse")
        const url = new URL(`/sse${query}`, origin)
        const oauth = yield* OAuth.make({ grant })
        const transport = ClientHttp.transport({ url, credentials: oauth })
        const client = yield* Client.make(transport, { revisions: ["2024-11-05"] })
        assert.deepInclude(yield* client.callTool("brew"), { content: [{ type: "text", text: "tea" }] })
        const posts = requests.filter(({ method, url }) => method === "POST" && url !== `/sse${query}`)
        assert.isAbove(posts.length, 1)
        for (const { headers, url } of posts) {
          assert.notStrictEqual(url, `/sse${query}`)
          assert.match(String(headers.authorization), /^Bearer access-/)
        }
        assert.isTrue(Option.isSome(yield* oauth.state(url)))
        // The endpoint gets the tokens of another sign-in at the server, too.
        yield* oauth.signIn(url)
        assert.deepInclude(yield* client.callTool("brew"), { content: [{ type: "text", text: "tea" }] })
        assert.strictEqual(new Set(requests.map(({ headers }) => headers.authorization)).size, 3)
        assert.strictEqual(asked.length, 2)
        assert.strictEqual(asked[0]!.searchParams.get("resource"), `${origin}/sse`)
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })
  }

  it.effect("stays the same after a redirect", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const { origin, requests } = yield* startProtected(servers, "", ["/old", "/mcp"])
      const url = new URL("/old", origin)
      const oauth = yield* OAuth.make({ grant })
      const transport = ClientHttp.transport({ url, credentials: oauth })
      const client = yield* Client.make(transport, { revisions: ["2025-11-25"] })
      assert.deepInclude(yield* client.callTool("brew"), { content: [{ type: "text", text: "tea" }] })
      assert.isTrue(Option.isSome(yield* oauth.state(url)))
      assert.isTrue(Option.isNone(yield* oauth.state(new URL("/mcp", origin))))
      assert.isTrue(requests.some(({ headers, url }) => url === "/mcp" && headers.authorization !== undefined))
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})

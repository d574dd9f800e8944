/** An `OAuth` as the credentials of a real client, against a real server that refuses requests without a token. */
import * as Client from "@skein/client/Client"
import { ClientError } from "@skein/client/ClientError"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { OAuthError } from "@skein/auth/OAuthError"
import { RedirectRequired, SignIn } from "@skein/auth/SignIn"
import * as TokenStore from "@skein/auth/TokenStore"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { person, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })
const brew = Tool.layer(Tool.make("brew"), () => Effect.succeed("tea"))
const TeaHouse = McpServer.layer({ name: "tea", version: "1" }, brew)

/** Starts the servers, with a real one that requires a token. */
const startReal = Effect.gen(function*() {
  const servers = yield* start
  const mcp = yield* Effect.acquireRelease(
    Effect.promise(() => NodeHttp.mount(TeaHouse, {})),
    (mcp) => Effect.promise(() => mcp.close())
  )
  servers.server = (request, response) => {
    const token = request.headers.authorization?.slice(7)
    if (token !== undefined && servers.accepted.has(token)) {
      return mcp.handler(request, response, { principal: { id: "kim" } })
    }
    response.writeHead(401, { "www-authenticate": servers.challenge }).end()
  }
  return servers
})

describe("a client", () => {
  for (const revision of ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · signs in at the first refusal, and renews its token in the middle`, () => {
      const { asked, layer } = person()
      return Effect.gen(function*() {
        const servers = yield* startReal
        const oauth = yield* OAuth.make({ grant })
        const transport = ClientHttp.transport({ url: servers.url, credentials: oauth })
        const client = yield* Client.make(transport, { revisions: [revision] })
        assert.deepInclude(yield* client.callTool("brew"), { content: [{ type: "text", text: "tea" }] })
        servers.accepted.clear()
        yield* TestClock.adjust("2 minutes")
        const calls = Array.from({ length: 20 }, () => client.callTool("brew"))
        yield* Effect.all(calls, { concurrency: "unbounded" })
        assert.strictEqual(asked.length, 1)
        assert.deepEqual(servers.forms("/as/token").map((form) => form["grant_type"]), [
          "authorization_code",
          "refresh_token"
        ])
        assert.strictEqual(servers.reused, 0)
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })
  }

  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    // Some servers list their tools for every caller, and require a token for single ones.
    it.effect(`${revision} · signs in at a tool that requires it, where the session was open`, () => {
      const { asked, layer } = person()
      return Effect.gen(function*() {
        const servers = yield* startReal
        const refusing = servers.server!
        const open = yield* Effect.acquireRelease(
          Effect.promise(() => NodeHttp.mount(TeaHouse, {})),
          (mcp) => Effect.promise(() => mcp.close())
        )
        servers.server = async (request, response) => {
          let body = ""
          for await (const chunk of request) body += String(chunk)
          const isCall = body.includes("\"tools/call\"")
          const token = request.headers.authorization?.slice(7)
          if (isCall && (token === undefined || !servers.accepted.has(token))) return refusing(request, response)
          return open.handler(Object.assign(request, { body: body === "" ? undefined : JSON.parse(body) }), response)
        }
        const oauth = yield* OAuth.make({ grant })
        const transport = ClientHttp.transport({ url: servers.url, credentials: oauth })
        const client = yield* Client.make(transport, { revisions: [revision] })
        assert.deepEqual((yield* client.listTools()).map(({ name }) => name), ["brew"])
        assert.strictEqual(asked.length, 0)
        assert.deepInclude(yield* client.callTool("brew"), { content: [{ type: "text", text: "tea" }] })
        assert.strictEqual(asked.length, 1)
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })
  }

  it.effect("waits for a person for longer than the timeouts of calls", () => {
    const agreed = Deferred.makeUnsafe<void>()
    const { asked, layer } = person({ before: Deferred.await(agreed) })
    return Effect.gen(function*() {
      const servers = yield* startReal
      const oauth = yield* OAuth.make({ grant })
      const transport = ClientHttp.transport({ url: servers.url, credentials: oauth })
      const call = Effect.flatMap(
        Client.make(transport),
        (client) => client.callTool("brew", {}, { timeout: "5 seconds" })
      )
      const fiber = yield* Effect.forkChild(call)
      while (asked.length === 0) yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
      yield* TestClock.adjust("3 minutes")
      yield* Deferred.succeed(agreed, undefined)
      assert.deepInclude(yield* Fiber.join(fiber), { content: [{ type: "text", text: "tea" }] })
      assert.strictEqual(asked.length, 1)
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("fails with the address of the redirect in the cause", () => {
    const web = Layer.succeed(SignIn, {
      applicationType: "web",
      open: () =>
        Effect.succeed({
          redirectUri: "https://app.example/callback",
          authorize: (url) => Effect.fail(new RedirectRequired({ message: "redirect", url }))
        })
    })
    return Effect.gen(function*() {
      const servers = yield* startReal
      const oauth = yield* OAuth.make({ grant })
      const transport = ClientHttp.transport({ url: servers.url, credentials: oauth })
      const error = yield* Effect.flip(Client.make(transport))
      assert.instanceOf(error, ClientError)
      const { cause } = (error as ClientError).reason as { readonly cause?: unknown }
      assert.instanceOf(cause, OAuthError)
      const { reason } = cause as OAuthError
      assert.strictEqual(reason._tag === "SignInRequired" && reason.url.pathname, "/as/authorize")
    }).pipe(Effect.provide([web, TokenStore.layerMemory]))
  })
})

/** `OAuth` in a client: the errors and capabilities that the client gets from it. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import type { OAuthError } from "@skein/auth/OAuthError"
import { RedirectRequired, SignIn } from "@skein/auth/SignIn"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { person, start } from "./scriptedServers.ts"

/** Lets exchanges over sockets go on, until `holds`. The clock stands still meanwhile. */
const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.gen(function*() {
    const end = performance.now() + 60_000
    while (!holds()) {
      if (performance.now() > end) return yield* Effect.die(new Error(`The condition was not met: ${holds}`))
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust(0)
    }
  })

const text = (value: string) => Redacted.make(value)
const issuer = "https://login.example"

describe("the extensions of a client", () => {
  for (
    const [what, grant, extensions] of [
      [
        "client credentials",
        Grant.clientCredentials({ clientId: "job", clientSecret: text("s"), issuer }),
        ["io.modelcontextprotocol/oauth-client-credentials"]
      ],
      [
        "an identity assertion",
        Grant.identityAssertion({ clientId: "a", identityProvider: { issuer, clientId: "b", idToken: text("t") } }),
        ["io.modelcontextprotocol/enterprise-managed-authorization"]
      ],
      ["a JWT of a platform", Grant.jwtBearer({ assertion: () => Effect.succeed(text("t")) }), []],
      ["a person", Grant.authorizationCode({ clientName: "Tea House" }), []]
    ] as const
  ) {
    it.effect(`for ${what} are [${extensions.join(", ")}]`, () =>
      Effect.gen(function*() {
        const oauth = yield* OAuth.make<SignIn>({ grant })
        assert.deepStrictEqual(Object.keys(oauth.extensions ?? {}), [...extensions])
      }).pipe(Effect.provide([person().layer, TokenStore.layerMemory])))
  }
})

describe("a web application", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · finds the URL to redirect to in the cause of Unauthorized`, () =>
      Effect.gen(function*() {
        const servers = yield* start
        const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }) })
        const transport = Http.transport({ url: servers.url, credentials: oauth, shutdownTimeout: 0 })
        const error = yield* Effect.flip(Client.make(transport, { revisions: [revision] }))
        assert.deepInclude(error.reason, { _tag: "Unauthorized", status: 401 })
        const { reason } = error.cause as OAuthError
        assert.strictEqual(reason._tag === "SignInRequired" && reason.url.origin, servers.origin)
      }).pipe(
        Effect.provideService(SignIn, {
          applicationType: "web",
          open: () =>
            Effect.succeed({
              redirectUri: "https://app.example/callback",
              authorize: (url) => Effect.fail(new RedirectRequired({ message: "redirect", url }))
            })
        }),
        Effect.provide(TokenStore.layerMemory)
      ))
  }
})

describe("a person who takes three minutes, with calls that time out after five seconds", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · signs in once for all calls, also after the call that began it is cancelled`, () => {
      const { asked, layer } = person({ before: Effect.sleep("3 minutes") })
      return Effect.gen(function*() {
        const servers = yield* start
        servers.routes.set("/mcp", (arrived) => {
          const { body, headers, method } = arrived
          const token = headers.authorization?.split(" ")[1]
          if (method !== "POST") return { status: 405 }
          if (token === undefined || !servers.accepted.has(token)) return servers.ordinary["/mcp"]!(arrived)
          const { id, method: called } = JSON.parse(body) as { readonly id?: unknown; readonly method: string }
          if (id === undefined) return { status: 202 }
          const capabilities = { tools: {} }
          const common = { resultType: "complete", ttlMs: 0, cacheScope: "private" }
          const result = called === "initialize"
            ? { protocolVersion: revision, capabilities, serverInfo: { name: "s", version: "1" } }
            : called === "server/discover"
            ? { ...common, supportedVersions: [revision], capabilities }
            : { ...common, content: [] }
          return { body: { jsonrpc: "2.0", id, result } }
        })
        const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }) })
        let refusals = 0
        const credentials: OAuth.OAuth = {
          ...oauth,
          replied: (reply) => {
            if (reply.status === 401) refusals++
            oauth.replied?.(reply)
          }
        }
        const transport = Http.transport({ url: servers.url, credentials, shutdownTimeout: 0 })
        const limits = { timeout: "5 seconds", maxTimeout: "6 seconds" } as const
        const opening = yield* Effect.forkChild(Client.make(transport, { revisions: [revision], limits }))
        yield* until(() => asked.length === 1)
        yield* TestClock.adjust("3 minutes")
        yield* until(() => opening.pollUnsafe() !== undefined)
        const client = yield* Fiber.join(opening)

        yield* oauth.signOut(servers.url)
        servers.accepted.clear()
        const first = yield* Effect.forkChild(client.callTool("t", {}))
        yield* until(() => asked.length === 2)
        const before = refusals
        const others = yield* Effect.forkChild(
          Effect.all(Array.from({ length: 20 }, () => client.callTool("t", {})), { concurrency: "unbounded" })
        )
        yield* until(() => refusals === before + 20)
        yield* TestClock.adjust("1 minute")
        yield* Fiber.interrupt(first)
        yield* TestClock.adjust("2 minutes")
        yield* until(() => others.pollUnsafe() !== undefined)
        assert.lengthOf(yield* Fiber.join(others), 20)
        assert.strictEqual(asked.length, 2)
      }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
    })
  }
})

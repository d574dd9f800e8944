/** The programs of `signing-in.md`, with a protected server and `DevServer`. */
import { describe, expect, it } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as Loopback from "@skein/auth/Loopback"
import * as OAuth from "@skein/auth/OAuth"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createRemoteJWKSet, jwtVerify } from "jose"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Programs from "../programs/signingIn.ts"

const TeaHouse = McpServer.layer(
  { name: "tea-house", version: "1.0.0" },
  Tool.layer(Tool.make("brew"), () => Effect.succeed("Green tea"))
)

/** A server that requires tokens of the authorization server. */
const protectedServer = (issuer: string, scopes: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
      const mcp = await NodeHttp.mount(TeaHouse)
      const resource = (): string => `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`
      const http = createServer(async (request, response) => {
        if (request.url!.startsWith("/.well-known/oauth-protected-resource")) {
          const metadata = { resource: resource(), authorization_servers: [issuer], scopes_supported: scopes }
          return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metadata))
        }
        try {
          const token = (request.headers.authorization ?? "").replace("Bearer ", "")
          const { payload } = await jwtVerify(token, keys, { issuer, audience: resource() })
          mcp.handler(request, response, { principal: { id: payload.sub! } })
        } catch {
          response.writeHead(401, { "www-authenticate": "Bearer" }).end()
        }
      })
      await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening))
      return { http, mcp, url: resource() }
    }),
    ({ http, mcp }) =>
      Effect.promise(async () => {
        http.closeAllConnections()
        http.close()
        await mcp.close()
      })
  )

const servers = Effect.gen(function*() {
  const { counts, issuer } = yield* DevServer.make({ scopes: ["tea:read"] })
  const { url } = yield* protectedServer(issuer, ["tea:read"])
  const ada = TestUser.make({ name: "ada" })
  /** Opens a page as a browser does, up to the page of the program. */
  const open = (page: URL) =>
    Effect.flatMap(
      ada.signIn(page),
      (answer) => Effect.promise(() => fetch(`${page.searchParams.get("redirect_uri")}?${answer}`))
    )
  return { ada, counts, issuer, open, url }
})

const tea = [{ type: "text", text: "Green tea" }]

describe("programs/signingIn.ts", () => {
  it.live("signs a person in at the first call, and stays signed in", () =>
    Effect.gen(function*() {
      const { counts, issuer, open, url } = yield* servers
      yield* Effect.gen(function*() {
        for (let at = 0; at < 2; at++) expect((yield* Programs.brew(url)).content).toEqual(tea)
        expect((yield* counts).authorizations).toBe(1)
        expect(yield* Programs.show(url)).toEqual(Option.some(`${issuer}: tea:read`))
      }).pipe(Effect.provide([Loopback.layer({ open }), TokenStore.layerMemory]))
      expect(Programs.program(url)).toBeDefined()
      expect(Programs.registered).toBeDefined()
      expect(Programs.anywhere).toBeDefined()
    }))

  it.live("redirects the user of a web application, who comes back with a session", () =>
    Effect.gen(function*() {
      const { ada, url } = yield* servers
      const request = (path: string, account = "ada") =>
        Programs.handle(new Request(`https://app.example${path}`), account, url)
      yield* Effect.gen(function*() {
        const redirect = yield* request("/brew")
        expect(redirect.status).toBe(303)
        const answer = yield* ada.signIn(redirect.headers.get("location")!)
        // The browser of another account: the sign-in is not theirs.
        const other = yield* Effect.flip(request(`/oauth/callback?${answer}`, "mallory"))
        expect(other).toMatchObject({ reason: { _tag: "InvalidAuthorizationResponse" } })
        expect((yield* request(`/oauth/callback?${answer}`)).headers.get("location")).toBe("/brew")
        const brewed = yield* request("/brew")
        expect(yield* Effect.promise(() => brewed.json())).toMatchObject({ content: tea })
        expect((yield* request("/brew", "mallory")).status).toBe(303)
      }).pipe(Effect.provide(TokenStore.layerMemory))
    }))

  it.live("signs a job in with its secret, which the configuration has", () =>
    Effect.gen(function*() {
      const clients = [{ clientId: "brew-at-five", clientSecret: "planted" }]
      const { counts, issuer } = yield* DevServer.make({ scopes: ["tea:read"], clients })
      const { url } = yield* protectedServer(issuer, ["tea:read"])
      const config = ConfigProvider.layer(ConfigProvider.fromUnknown({ MCP_CLIENT_SECRET: "planted" }))
      expect((yield* Effect.provide(Programs.job(url, issuer), config)).content).toEqual(tea)
      expect(yield* counts).toMatchObject({ authorizations: 0, tokens: 1 })
      for (const grant of [Programs.workload, Programs.employee(Redacted.make("planted"))]) {
        const made = OAuth.make({ grant }).pipe(Effect.provide(TokenStore.layerMemory))
        expect(Object.keys((yield* made).extensions ?? {}).length).toBeLessThanOrEqual(1)
      }
      expect(Programs.shared).toBeDefined()
    }))

  it.live("signs in with a window of the host", () =>
    Effect.gen(function*() {
      const { ada, url } = yield* servers
      const window = Programs.embedded((page) => Effect.orDie(ada.signIn(page)))
      const brewed = yield* Effect.provide(Programs.brew(url), [window, TokenStore.layerMemory])
      expect(brewed.content).toEqual(tea)
    }))
})

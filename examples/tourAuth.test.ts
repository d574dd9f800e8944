/** `npm start -- --auth`: a guest signs in at the authorization server that it starts, and the tools answer. */
import { describe, expect, it } from "@effect/vitest"
import * as TestUser from "@skein/auth/TestUser"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Effect from "effect/Effect"
import * as oauth from "../packages/auth/test/devServer/kit.ts"
import * as kit from "./testKit.ts"

describe("npm start -- --auth", () => {
  it.live("answers 401 with its metadata, and its tools to a guest who has signed in", () =>
    Effect.gen(function*() {
      const port = yield* kit.freePort
      const server = yield* kit.start(kit.program("tour/main.ts", "--auth", "--port", String(port)))
      yield* Effect.promise(() => server.until(/The server is ready.*\n/))
      const url = `http://127.0.0.1:${port}/mcp`
      expect(server.out()).toContain(`login ${url}`)
      expect(server.err()).toBe("")
      const refused = yield* Effect.flip(Client.make(Http.transport({ url })))
      expect(refused.reason).toMatchObject({ _tag: "Unauthorized" })
      const metadata = yield* oauth.getJson(`http://127.0.0.1:${port}/.well-known/oauth-protected-resource/mcp`)
      expect(metadata["resource"]).toBe(url)
      const [issuer] = metadata["authorization_servers"] as ReadonlyArray<string>
      const client = yield* oauth.connect(issuer!, { redirectUri: "http://127.0.0.1:4999/callback" })
      const answer = yield* TestUser.make({ name: "grace" }).signIn(yield* client.authorizationUrl({ resource: url }))
      const { access_token } = yield* client.exchange(answer)
      const headers = { authorization: `Bearer ${access_token}` }
      const guest = yield* Client.make(Http.transport({ url, headers }))
      const { content } = yield* guest.callTool("greet", { name: "Grace" })
      expect(content).toMatchObject([{ text: "Welcome to the tea house, Grace!" }])
    }))

  it.live("refuses --auth without a port that clients can know", () =>
    Effect.gen(function*() {
      for (const args of [["--port", "0"], ["--stdio"]]) {
        const server = yield* kit.start(kit.program("tour/main.ts", "--auth", ...args))
        expect(yield* Effect.promise(() => server.ended)).toBe(2)
        expect(server.err()).toContain("--auth needs HTTP")
      }
    }))
})

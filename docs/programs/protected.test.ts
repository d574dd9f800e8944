import { expect, it } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as Protect from "@skein/auth/Protect"
import * as Scopes from "@skein/auth/Scopes"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

const resource = "http://localhost:3000/mcp"
const brew = Tool.layer(Tool.make("brew"), () => Effect.succeed("Green tea"))
const Tea = McpServer.layer({ name: "tea", version: "1.0.0" }, Scopes.required(["tea:write"], brew))

it.live("brews only with the scope tea:write", () =>
  Effect.gen(function*() {
    const { issueToken, issuer } = yield* DevServer.make({ scopes: ["tea:read", "tea:write"] })
    const protection = Protect.make({ resource, verify: TokenVerifier.jwt({ issuer }) })
    const { url } = yield* NodeHttp.serve({ port: 0, protection })
    const call = (...scopes: ReadonlyArray<string>) =>
      Effect.gen(function*() {
        const token = yield* issueToken({ resource, scopes, subject: "ada" })
        const headers = { authorization: `Bearer ${token}` }
        const client = yield* Client.make(Http.transport({ url, headers }))
        return yield* client.callTool("brew")
      })
    expect((yield* call("tea:read", "tea:write")).content).toEqual([{ type: "text", text: "Green tea" }])
    expect((yield* Effect.flip(call("tea:read"))).message).toContain("needs the scopes: tea:write")
  }).pipe(Effect.provide(Tea)))

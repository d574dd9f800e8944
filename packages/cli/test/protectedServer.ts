/**
 * A protected MCP server and its authorization server, as a program: it prints their URLs as JSON, and what happened at
 * the authorization server when it receives a line.
 *
 * `node protectedServer.ts '{ "signInAs": "ada" }'`, with options of `DevServer`.
 */
import * as DevServer from "@skein/auth/DevServer"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { createRemoteJWKSet, jwtVerify } from "jose"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { createInterface } from "node:readline"

const Server = McpServer.layer(
  { name: "tea-house", version: "1.0.0" },
  Tool.layer(Tool.make("brew", { description: "Brews tea" }), () => Effect.succeed("Green tea"))
)

const program = Effect.gen(function*() {
  const options = JSON.parse(process.argv[2] ?? "{}") as DevServer.Options
  const authorization = yield* DevServer.make(options)
  const { issuer, scopes } = authorization
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  const mcp = yield* Effect.promise(() => NodeHttp.mount(Server))
  const http = createServer(async (request, response) => {
    const { port } = http.address() as AddressInfo
    const resource = `http://127.0.0.1:${port}/mcp`
    if (request.url!.startsWith("/.well-known/oauth-protected-resource")) {
      const metadata = { resource, authorization_servers: [issuer], scopes_supported: scopes }
      return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metadata))
    }
    const token = request.headers.authorization?.replace(/^Bearer /, "") ?? ""
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience: resource })
      return mcp.handler(request, response, { principal: { id: payload.sub! } })
    } catch {
      return response.writeHead(401, { "www-authenticate": "Bearer" }).end()
    }
  })
  yield* Effect.promise<void>(() => new Promise((listening) => http.listen(0, "127.0.0.1", listening)))
  const { port } = http.address() as AddressInfo
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}/mcp`, issuer }))
  createInterface({ input: process.stdin }).on("line", (line) => {
    const asked = line === "revoke"
      ? Effect.andThen(authorization.revokeAll, authorization.counts)
      : authorization.counts
    void Effect.runPromise(asked).then((counts) => console.log(JSON.stringify(counts)))
  }).on("close", () => process.exit(0))
  return yield* Effect.never
})

void Effect.runPromise(Effect.scoped(program))

/**
 * A protected MCP server and its authorization server, as a program: it prints their URLs as JSON, and what happened at
 * the authorization server when it receives a line.
 *
 * `node protectedServer.ts '{ "signInAs": "ada" }'`, with options of `DevServer`. With `metadataElsewhere` the metadata of
 * the server is on a host of its own, which the server names.
 */
import * as DevServer from "@skein/auth/DevServer"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { createRemoteJWKSet, jwtVerify } from "jose"
import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { createInterface } from "node:readline"

const TeaHouse = McpServer.layer(
  { name: "tea-house", version: "1.0.0" },
  Tool.layer(Tool.make("brew", { description: "Brews tea" }), () => Effect.succeed("Green tea"))
)

const program = Effect.gen(function*() {
  const { metadataElsewhere = false, ...options } = JSON.parse(process.argv[2] ?? "{}") as DevServer.Options & {
    readonly metadataElsewhere?: boolean
  }
  const authorization = yield* DevServer.make(options)
  const { issuer, scopes } = authorization
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
  const mcp = yield* Effect.promise(() => NodeHttp.mount(TeaHouse))
  const listening = (server: Server): Effect.Effect<number> =>
    Effect.map(
      Effect.promise<void>(() => new Promise((listening) => server.listen(0, "127.0.0.1", listening))),
      () => (server.address() as AddressInfo).port
    )
  const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const sendMetadata = (response: ServerResponse) => {
    const metadata = { resource: `${urlOf(http)}/mcp`, authorization_servers: [issuer], scopes_supported: scopes }
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metadata))
  }
  const elsewhere = createServer((_, response) => sendMetadata(response))
  if (metadataElsewhere) yield* listening(elsewhere)
  const challenge = metadataElsewhere ? `Bearer resource_metadata="${urlOf(elsewhere)}/metadata"` : "Bearer"
  const http = createServer(async (request, response) => {
    const resource = `${urlOf(http)}/mcp`
    if (request.url!.startsWith("/.well-known/oauth-protected-resource")) {
      return metadataElsewhere ? response.writeHead(404).end() : sendMetadata(response)
    }
    if (request.url !== "/mcp") return response.writeHead(404).end()
    const token = request.headers.authorization?.replace(/^Bearer /, "") ?? ""
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience: resource })
      return mcp.handler(request, response, { principal: { id: payload.sub! } })
    } catch {
      return response.writeHead(401, { "www-authenticate": challenge }).end()
    }
  })
  const port = yield* listening(http)
  console.log(
    JSON.stringify({
      url: `http://127.0.0.1:${port}/mcp`,
      issuer,
      ...metadataElsewhere ? { metadata: `${urlOf(elsewhere)}/metadata` } : {}
    })
  )
  createInterface({ input: process.stdin }).on("line", (line) => {
    const asked = line === "revoke"
      ? Effect.andThen(authorization.revokeAll, authorization.counts)
      : authorization.counts
    void Effect.runPromise(asked).then((counts) => console.log(JSON.stringify(counts)))
  }).on("close", () => process.exit(0))
  return yield* Effect.never
})

void Effect.runPromise(Effect.scoped(program))

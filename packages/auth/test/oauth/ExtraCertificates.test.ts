/** `NODE_EXTRA_CA_CERTS` counts for each HTTP client: those of calls, of discovery and tokens, and of verifiers. */
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { certificate, privateKey } from "../../../client/test/http/support/certificate.ts"

/** A protected server and its authorization server, on one origin with a certificate of its own. Returns the URL. */
const server = Effect.gen(function*() {
  const mcp = yield* Effect.acquireRelease(
    Effect.promise(() => NodeHttp.mount(McpServer.layer({ name: "tea-house", version: "1.0.0" }))),
    (mounted) => Effect.promise(() => mounted.close())
  )
  const tls = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const tls = createServer({ cert: certificate, key: privateKey }, (request, response) => {
        const base = `https://localhost:${(tls.address() as AddressInfo).port}`
        const documents: Readonly<Record<string, object>> = {
          "/.well-known/oauth-protected-resource/mcp": { resource: `${base}/mcp`, authorization_servers: [base] },
          "/.well-known/oauth-authorization-server": {
            issuer: base,
            authorization_endpoint: `${base}/authorize`,
            token_endpoint: `${base}/token`,
            response_types_supported: ["code"],
            grant_types_supported: ["client_credentials"],
            token_endpoint_auth_methods_supported: ["client_secret_basic"]
          },
          "/token": { access_token: "token", token_type: "Bearer", expires_in: 3_600 },
          "/introspect": { active: true, sub: "ada", iss: base, aud: `${base}/mcp`, client_id: "job" }
        }
        const document = documents[request.url!]
        if (document !== undefined) {
          return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document))
        }
        if (request.headers.authorization === "Bearer token") return void mcp.handler(request, response)
        response.writeHead(request.url === "/mcp" ? 401 : 404, { "www-authenticate": "Bearer" }).end()
      })
      await new Promise<void>((listening) => tls.listen(0, "127.0.0.1", listening))
      return tls
    }),
    (tls) => Effect.sync(() => tls.close().closeAllConnections())
  )
  return `https://localhost:${(tls.address() as AddressInfo).port}/mcp`
})

describe("NODE_EXTRA_CA_CERTS", () => {
  it.live(
    "counts for calls, discovery, tokens and introspection, over node:http and fetch",
    () =>
      Effect.gen(function*() {
        const url = yield* server
        const folder = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-certificates-"))),
          (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
        )
        const file = join(folder, "extra.pem")
        writeFileSync(file, certificate)
        const run = (env: Readonly<Record<string, string>>) =>
          Effect.promise(async () => {
            const program = join(import.meta.dirname, "extraCertificatesProgram.ts")
            const child = spawn(process.execPath, ["--conditions=@skein/source", "--no-warnings", program, url], {
              env: { ...env, PATH: process.env["PATH"] },
              stdio: ["ignore", "pipe", "inherit"]
            })
            return (await child.stdout.toArray()).join("").trim().split("\n")
          })
        assert.deepStrictEqual(yield* run({ NODE_EXTRA_CA_CERTS: file }), ["ok", "ok", "ok", "ok", "ok"])
        const refused = yield* run({})
        assert.strictEqual(refused.length, 5)
        for (const outcome of refused) assert.match(outcome, /certificate|cannot be reached|SELF_SIGNED/)
      }),
    60_000
  )
})

/** The program of `protecting.md`, with tokens of an authorization server on loopback. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as jose from "jose"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { call, modern, textOf } from "./process.ts"
import { type Running, start } from "./runtime.ts"

const resource = "http://localhost:3000/mcp"
let running: Running
let login: Server
let issuer: string
let keys: { readonly privateKey: jose.CryptoKey; readonly publicKey: jose.CryptoKey }

const token = (scope: string, claims: object = {}): Promise<string> =>
  new jose.SignJWT({ iss: issuer, aud: resource, sub: "ada", client_id: "guide", scope, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "1", typ: "at+jwt" })
    .setIssuedAt()
    .setExpirationTime("10 minutes")
    .sign(keys.privateKey)

beforeAll(async () => {
  keys = await jose.generateKeyPair("ES256")
  const jwk = { ...await jose.exportJWK(keys.publicKey), kid: "1", alg: "ES256", use: "sig" }
  login = createServer((request, response) => {
    const pages: Readonly<Record<string, object>> = {
      "/.well-known/oauth-authorization-server": { issuer, jwks_uri: `${issuer}/jwks` },
      "/jwks": { keys: [jwk] }
    }
    const page = pages[request.url ?? ""]
    response.writeHead(page === undefined ? 404 : 200, { "content-type": "application/json" }).end(JSON.stringify(page))
  })
  await new Promise<void>((resolve) => void login.listen(0, "127.0.0.1", resolve))
  issuer = `http://127.0.0.1:${(login.address() as AddressInfo).port}`
  running = await start("protected", { env: { ISSUER: issuer } })
})
afterAll(() => {
  running.child.kill("SIGKILL")
  login.close()
  login.closeAllConnections()
})

const as = async (scope: string, claims?: object) => ({ authorization: `Bearer ${await token(scope, claims)}` })

describe("programs/protected.ts", () => {
  it("tells a client without a token where to sign in", async () => {
    const refused = await fetch(running.url, call("menu"))
    expect(refused.status).toBe(401)
    const challenge = refused.headers.get("www-authenticate")!
    expect(challenge).toContain("scope=\"tea:read\"")
    const at = new URL(/resource_metadata="([^"]+)"/.exec(challenge)![1]!)
    const metadata = await (await fetch(new URL(at.pathname, running.url))).json()
    expect(metadata).toMatchObject({ resource, authorization_servers: [issuer], scopes_supported: ["tea:read"] })
  })

  it("accepts its tokens, and refuses those for others", async () => {
    expect(await textOf(await fetch(running.url, call("menu", {}, await as("tea:read"))))).toBe("Assam, Sencha")
    const others = [{ aud: "https://other.example" }, { iss: "https://other.example" }, { exp: 1 }]
    for (const claims of others) {
      const headers = { authorization: `Bearer ${await sign(claims)}` }
      expect([claims, (await fetch(running.url, call("menu", {}, headers))).status]).toEqual([claims, 401])
    }
  })

  it("asks for the scopes of a tool and of a handler in one challenge, by the hierarchy", async () => {
    const brew = async (scope: string) => fetch(running.url, call("brew", { shop: "north" }, await as(scope)))
    for (const scope of ["tea:read", "tea:write", "tea:admin"]) {
      const refused = await brew(scope)
      expect([scope, refused.status]).toEqual([scope, 403])
      expect(refused.headers.get("www-authenticate")).toContain(
        scope === "tea:read" ? "scope=\"tea:read tea:write\"" : "scope=\"tea:read tea:write tea:shop:north\""
      )
    }
    expect(await textOf(await brew("tea:admin tea:shop:north"))).toBe("Tea is ready in north")
  })

  it("hides what only an administrator may see", async () => {
    const names = async (scope: string) => {
      const { result } = await (await fetch(running.url, modern("tools/list", {}, await as(scope)))).json() as {
        readonly result: { readonly tools: ReadonlyArray<{ readonly name: string }> }
      }
      return result.tools.map(({ name }) => name)
    }
    expect(await names("tea:read")).toEqual(["menu", "brew"])
    expect(await names("tea:admin")).toEqual(["menu", "brew", "reset"])
  })
})

const sign = (claims: object): Promise<string> =>
  new jose.SignJWT({ iss: issuer, aud: resource, sub: "ada", scope: "tea:read", exp: 9_999_999_999, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "1", typ: "at+jwt" })
    .sign(keys.privateKey)

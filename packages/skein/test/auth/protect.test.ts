/** Servers that require access tokens, over real HTTP. */
import { describe, expect, it } from "@effect/vitest"
import { createHmac } from "node:crypto"
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  Grant,
  memoryReplayStore,
  memoryTokenStore,
  OAuth,
  postgresReplayStore,
  principalId,
  type ProofUse,
  protect,
  replayStore,
  RequestVerifier,
  Scopes,
  sqliteReplayStore,
  TokenVerifier
} from "skein/auth"
import { AsyncServer, tool } from "skein"
import { z } from "zod"
import { errorOf, freePort, start, textOf } from "./kit.ts"

/** A tool that answers with its name. */
const named = (name: string) => tool(name, {}, () => name)

const post = (url: string, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }
    })
  })

describe("protect", () => {
  it("answers a request without a token with 401 and the address of its metadata", async () => {
    await using started = await start({ protect: { scopes: ["mcp:read"], resourceName: "Tea" } })
    const { dev, url } = started
    const { origin, pathname } = new URL(url)
    const reply = await post(url)
    expect(reply.status).toBe(401)
    const metadata = `${origin}/.well-known/oauth-protected-resource${pathname}`
    expect(reply.headers.get("www-authenticate")).toContain(`resource_metadata="${metadata}"`)
    expect(await (await fetch(metadata)).json()).toMatchObject({
      resource: url,
      resource_name: "Tea",
      authorization_servers: [dev.issuer],
      scopes_supported: ["mcp:read"]
    })
    const client = await started.connect(["mcp:read"])
    expect(textOf(await client.callTool("whoami"))).toBe(`${dev.issuer} ada`)
  })

  it("makes the principal of a function, and adds the scopes that others imply", async () => {
    await using started = await start({
      protect: {
        scopes: ["mcp:read"],
        hierarchy: Scopes.implies({ "mcp:write": ["mcp:read"] }),
        principal: (token) => ({ id: principalId(token, { perClient: true }), scopes: token.scopes })
      }
    })
    const client = await started.connect(["mcp:write"])
    expect(textOf(await client.callTool("whoami"))).toBe(`user ${started.dev.issuer} ["ada","test"]`)
  })

  it("requires scopes for single tools, hides others, and lets a handler ask for more", async () => {
    const shop = tool("brew", { input: z.object({ shop: z.string() }) }, async ({ shop }, context) => {
      await Scopes.require(context, `shop:${shop}`)
      return "brewed"
    })
    const menu = tool("menu", {}, (_, context) => Scopes.has(context, "mcp:write") ? "all" : "some")
    const definitions = [
      Scopes.required(["mcp:write"], named("pour"), Scopes.required(["mcp:hot"], named("heat")), shop),
      Scopes.hiddenWithout(["mcp:admin"], named("reset")),
      menu
    ]
    await using started = await start({ definitions })
    const reader = await started.connect(["mcp:read"])
    const names = async (client: typeof reader) => (await client.listTools()).map(({ name }) => name).toSorted()
    expect(await names(reader)).toEqual(["brew", "heat", "menu", "pour", "whoami"])
    expect(textOf(await reader.callTool("menu"))).toBe("some")
    expect((await errorOf(reader.callTool("pour"))).message).toContain("needs the scopes: mcp:write")
    expect((await errorOf(reader.callTool("heat"))).message).toContain("needs the scopes: mcp:write mcp:hot")
    const writer = await started.connect(["mcp:write", "mcp:admin", "shop:paris"])
    expect(await names(writer)).toContain("reset")
    expect(textOf(await writer.callTool("menu"))).toBe("all")
    expect(textOf(await writer.callTool("pour"))).toBe("pour")
    expect(textOf(await writer.callTool("brew", { shop: "paris" }))).toBe("brewed")
    const refused = await errorOf(writer.callTool("brew", { shop: "rome" }))
    expect(refused.message).toContain("needs the scopes: mcp:write shop:rome")
  })

  it("throws for options that are not valid, and names its paths before a server starts", () => {
    const verify = TokenVerifier.jwt({ issuer: "https://login.example" })
    expect(() => protect({ resource: "http://tea.example/mcp", verify })).toThrow("must be an https address")
    expect(() => TokenVerifier.jwt({ issuer: "http://login.example" })).toThrow("issuer must be an https address")
    expect(protect({ resource: "https://tea.example/mcp", verify, authorizationServerMetadata: true }).paths).toEqual([
      "/.well-known/oauth-protected-resource/mcp",
      "/.well-known/oauth-protected-resource",
      "/.well-known/oauth-authorization-server"
    ])
    expect(verify.issuers).toEqual(["https://login.example"])
  })
})

describe("TokenVerifier", () => {
  it("asks the authorization server about opaque tokens, with a secret of a function", async () => {
    let reads = 0
    await using started = await start({
      dev: { accessTokenFormat: "opaque", clients: [{ clientId: "tea", clientSecret: "s3cret" }] },
      verify: (issuer) =>
        TokenVerifier.introspection({
          issuer,
          clientId: "tea",
          clientSecret: async () => {
            reads++
            return "s3cret"
          }
        })
    })
    await using oauth = await OAuth.make({
      grant: Grant.clientCredentials({ clientId: "tea", clientSecret: "s3cret", issuer: started.dev.issuer })
    })
    const client = await started.connect(oauth)
    expect(textOf(await client.callTool("whoami"))).toContain(started.dev.issuer)
    expect(reads).toBeGreaterThan(0)
  })

  it("verifies tokens by an async function, which refuses by undefined or an error", async () => {
    const verify = TokenVerifier.make({
      issuer: "https://keys.example",
      audiences: ["tea"],
      verify: async (token) => {
        if (token === "late") throw new TokenVerifier.VerifierUnavailable({ message: "later", retryAfterSeconds: 7 })
        if (token === "old") {
          throw new TokenVerifier.InvalidToken({ problem: "Inactive", message: "the key was revoked" })
        }
        return token === "ada" ? { audiences: ["tea"], expiresAt: undefined, subject: "ada" } : undefined
      }
    })
    await using started = await start({
      verify: (issuer) => TokenVerifier.anyOf(verify, TokenVerifier.jwt({ issuer }))
    })
    const by = (token: string) => post(started.url, { authorization: `Bearer ${token}` })
    expect((await by("ada")).status).toBe(200)
    const unknown = await by("eve")
    expect([unknown.status, unknown.headers.get("www-authenticate")]).toEqual([
      401,
      expect.stringContaining("the token is not valid")
    ])
    expect((await by("old")).headers.get("www-authenticate")).toContain("the key was revoked")
    const late = await by("late")
    expect([late.status, late.headers.get("retry-after")]).toEqual([503, "7"])
    expect(textOf(await (await started.connect(["mcp:read"])).callTool("whoami"))).toBe(`${started.dev.issuer} ada`)
  })
})

describe("replay stores", () => {
  it.each([["memory", undefined], ["the program", "own"]])(
    "record the proofs of bound tokens in %s",
    async (_, own) => {
      const uses: Array<ProofUse> = []
      const store = own === undefined
        ? memoryReplayStore({ maxProofs: 100 })
        : replayStore({ add: async (use) => uses.push(use) > 0 })
      await using started = await start({
        dev: { clients: [{ clientId: "job", clientSecret: "s" }] },
        protect: { dpop: { require: true, nonces: { secret: "n".repeat(32) } }, replayStore: store }
      })
      await using oauth = await OAuth.make({
        grant: Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: started.dev.issuer }),
        store: memoryTokenStore(),
        dpop: "always"
      })
      const client = await started.connect(oauth)
      expect(textOf(await client.callTool("whoami"))).toContain("job")
      if (own !== undefined) expect(uses.length).toBeGreaterThan(1)
      expect(new Set(uses.map(({ id }) => id)).size).toBe(uses.length)
    }
  )

  it("records the proofs in a file that instances share, and closes it with the server", async () => {
    const folder = await mkdtemp(join(tmpdir(), "skein-auth-"))
    const filename = join(folder, "replays.db")
    {
      await using started = await start({
        dev: { clients: [{ clientId: "job", clientSecret: "s" }] },
        protect: { dpop: "require", replayStore: sqliteReplayStore({ filename, maxProofs: 100 }) }
      })
      await using oauth = await OAuth.make({
        grant: Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: started.dev.issuer })
      })
      const client = await started.connect(oauth)
      await client.callTool("whoami")
      expect(await readdir(folder)).toContain("replays.db-wal")
    }
    // SQLite removes the log when its last connection is closed.
    expect(await readdir(folder)).toEqual(["replays.db"])
    await rm(folder, { recursive: true })
    expect(Object.keys(postgresReplayStore({ url: "postgres://127.0.0.1:1/none" }))).toEqual([])
  })

  it("refuses a proof that the store has seen, and answers 503 while it fails", async () => {
    for (const [add, status] of [[() => false, "401"], [() => Promise.reject(new Error("down")), "503"]] as const) {
      await using started = await start({
        dev: { clients: [{ clientId: "job", clientSecret: "s" }] },
        protect: { dpop: "require", replayStore: replayStore({ add }) }
      })
      await using oauth = await OAuth.make({
        grant: Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: started.dev.issuer })
      })
      expect((await errorOf(started.connect(oauth))).message).toContain(status)
    }
  })
})

describe("RequestVerifier", () => {
  const serve = async (verifiers: ReadonlyArray<RequestVerifier.RequestVerifier>, allowAnonymous = false) => {
    const server = new AsyncServer({ name: "tea", version: "1.0.0" })
    const protection = RequestVerifier.protection(verifiers, { allowAnonymous, maxFailures: 0 })
    expect(protection.paths).toEqual([])
    return server.listen({ port: 0, protection })
  }

  it("accepts requests that an async function, a shared secret or a proxy authenticates", async () => {
    const secret = "a shared secret of the two sides"
    const { close, url } = await serve([
      RequestVerifier.make({
        headers: ["X-Api-Key"],
        verify: async (request) => {
          const key = request.header("x-api-key")
          if (key === undefined) return undefined
          if (key !== "k3y") throw new RequestVerifier.InvalidCredentials({ message: "the key is not known" })
          return { id: "ada" }
        }
      }),
      RequestVerifier.signedHeader({
        header: "x-user",
        issuer: "https://gateway.internal",
        audiences: ["tea"],
        secret
      }),
      RequestVerifier.trustedHeader({ header: "x-forwarded-user", proxies: ["127.0.0.0/8", "::1"] })
    ])
    try {
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
      const exp = Math.floor(Date.now() / 1000) + 60
      const claims = { iss: "https://gateway.internal", aud: "tea", sub: "ada", exp }
      const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`
      const signature = createHmac("sha256", secret).update(signed).digest("base64url")
      expect((await post(url, { "x-api-key": "k3y" })).status).toBe(200)
      expect((await post(url, { "x-user": `${signed}.${signature}` })).status).toBe(200)
      expect((await post(url, { "x-forwarded-user": "ada" })).status).toBe(200)
      const refused = await post(url, { "x-api-key": "other" })
      expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("the key is not known")])
      expect((await post(url)).status).toBe(403)
    } finally {
      await close()
    }
  })

  it("makes verifiers of certificates and of products, and accepts anonymous callers if it should", async () => {
    const audience = "/projects/1/apps/tea"
    const { close, url } = await serve([
      RequestVerifier.certificate({ principal: ({ subjectAltName }) => ({ id: subjectAltName ?? "" }) }),
      RequestVerifier.cloudflareAccess({ team: "https://acme.cloudflareaccess.com", audience: "4714" }),
      RequestVerifier.googleIap({ audience }),
      RequestVerifier.awsAlb({
        region: "eu-west-1",
        loadBalancerArn: "arn",
        issuer: "https://login.example",
        clientId: "t"
      })
    ], true)
    try {
      expect((await post(url)).status).toBe(200)
      expect((await post(url, { "x-goog-iap-jwt-assertion": "e30.e30.e30" })).status).toBe(403)
    } finally {
      await close()
    }
  })

  it("answers requests of a router on the paths of the protection", async () => {
    const port = await freePort()
    const resource = `http://127.0.0.1:${port}/mcp`
    const protection = protect({ resource, verify: TokenVerifier.jwt({ issuer: "https://login.example" }) })
    const { close, url } = await new AsyncServer({ name: "tea", version: "1.0.0" }).listen({
      port,
      protection
    })
    try {
      for (const path of protection.paths) expect((await fetch(new URL(path, url))).status).toBe(200)
    } finally {
      await close()
    }
  })
})

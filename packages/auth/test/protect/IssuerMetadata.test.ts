/** The metadata of the authorization server at the origin of the resource, for clients of 2025-03-26. */
import { describe, expect, it } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as Protect from "@skein/auth/Protect"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { createHash, randomBytes } from "node:crypto"
import { bearer, freePort, issuer, type Json, protect, revisions, send, serve, Tokens } from "./kit.ts"

const path = "/.well-known/oauth-authorization-server"
const menu = Tool.layer(Tool.make("menu"), () => Effect.succeed("tea"))
const document = { issuer, authorization_endpoint: `${issuer}/authorize`, x_extra: [1, { a: null }] }

/** A protected server, whose requests to the issuer are answered by `respond`. */
const start = (respond: () => Response, options: Protect.IssuerMetadataOptions = {}) =>
  Effect.gen(function*() {
    const requested: Array<string> = []
    const fetch = (address: unknown) => {
      requested.push(String(address))
      return Promise.resolve(respond())
    }
    const authorizationServerMetadata = { fetch: fetch as typeof globalThis.fetch, ...options }
    const server = yield* serve(protect(new Tokens(), { authorizationServerMetadata }), [menu])
    const page = (method = "GET") => send(server, { method, path, headers: { origin: "https://elsewhere.example" } })
    return { page, requested }
  })

describe("authorizationServerMetadata", () => {
  it.effect("answers with the document of the issuer as it is, and fetches it once in 10 minutes", () =>
    Effect.scoped(Effect.gen(function*() {
      const { page, requested } = yield* start(() => Response.json(document))
      const pages = yield* Effect.all([page(), page(), page()], { concurrency: "unbounded" })
      for (const { headers, json, status } of [...pages, yield* page()]) {
        expect([status, json]).toEqual([200, document])
        expect(headers).toMatchObject({
          "content-type": "application/json",
          "access-control-allow-origin": "*",
          "cache-control": "public, max-age=300"
        })
      }
      const head = yield* page("HEAD")
      expect([head.status, head.text]).toEqual([200, ""])
      expect([(yield* page("OPTIONS")).status, (yield* page("POST")).status]).toEqual([204, 405])
      expect(requested).toEqual([`${issuer}${path}`])
      yield* TestClock.adjust("10 minutes")
      expect((yield* page()).status).toBe(200)
      expect(requested.length).toBe(2)
    })))

  it.effect("responds 503 while the issuer is unavailable, asks again after 5 seconds, and uses the last document", () =>
    Effect.scoped(Effect.gen(function*() {
      let isUp = false
      const respond = () => isUp ? Response.json(document) : new Response("", { status: 500 })
      const { page, requested } = yield* start(respond)
      for (let n = 0; n < 20; n++) {
        const refused = yield* page()
        expect([refused.status, refused.headers["retry-after"], refused.text]).toEqual([503, "5", ""])
      }
      expect(requested.length).toBe(2)
      isUp = true
      yield* TestClock.adjust("5 seconds")
      expect((yield* page()).json).toEqual(document)
      isUp = false
      yield* TestClock.adjust("1 hour")
      expect((yield* page()).json).toEqual(document)
      expect(requested.length).toBe(5)
    })))

  it.effect("uses no document of another issuer, and none that is larger than maxDocumentBytes", () =>
    Effect.scoped(Effect.gen(function*() {
      const other = yield* start(() => Response.json({ ...document, issuer: "https://evil.example" }))
      expect((yield* other.page()).status).toBe(503)
      const large = yield* start(() => Response.json({ ...document, filler: "x".repeat(300_000) }))
      expect((yield* large.page()).status).toBe(503)
    })))

  it.effect("asks another issuer of the verifier with issuer, and refuses one that is not safe", () =>
    Effect.scoped(Effect.gen(function*() {
      const partner = "https://partner.example/tea"
      const { page, requested } = yield* start(() => Response.json({ issuer: partner }), { issuer: partner })
      expect((yield* page()).json).toEqual({ issuer: partner })
      expect(requested).toEqual([`https://partner.example${path}/tea`])
      const exit = yield* Effect.exit(start(() => Response.json({}), { issuer: "http://partner.example" }))
      expect(String(exit)).toContain("issuer must be an https address")
    })))

  it.effect("is off by default: the path is not one of the pages", () =>
    Effect.gen(function*() {
      expect((yield* protect(new Tokens())).paths).not.toContain(path)
      expect((yield* protect(new Tokens(), { authorizationServerMetadata: true })).paths).toContain(path)
    }))
})

const postJson = (url: string, body: object): Effect.Effect<Json> =>
  Effect.promise(async () => {
    const headers = { "content-type": "application/json" }
    return (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).json()
  })

it.live("2025-03-26 · C7 · a client that knows no metadata of resources signs in, by the metadata at the origin", () =>
  Effect.scoped(Effect.gen(function*() {
    const port = yield* freePort
    const resource = `http://127.0.0.1:${port}/mcp`
    const dev = yield* DevServer.make({ resources: [resource] })
    const protection = Protect.make({
      resource,
      verify: TokenVerifier.jwt({ issuer: dev.issuer }),
      authorizationServerMetadata: true
    })
    const server = yield* serve(protection, [menu], { port })
    const client = revisions.find(([name]) => name === "2025-03-26")![1](server)
    expect((yield* client.open({}))?.status).toBe(401)
    // "the authorization base URL MUST be determined from the MCP server URL by discarding any existing path component".
    const { json: found } = yield* send(server, {
      method: "GET",
      path,
      headers: { "mcp-protocol-version": "2025-03-26" }
    })
    expect(found.issuer).toBe(dev.issuer)
    const redirectUri = "http://127.0.0.1:41997/callback"
    const { client_id } = yield* postJson(found.registration_endpoint, {
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: "none",
      application_type: "native"
    })
    const verifier = randomBytes(32).toString("base64url")
    const url = new URL(found.authorization_endpoint)
    url.search = String(
      new URLSearchParams({
        client_id,
        response_type: "code",
        redirect_uri: redirectUri,
        code_challenge: createHash("sha256").update(verifier).digest("base64url"),
        code_challenge_method: "S256"
      })
    )
    const answer = yield* TestUser.make({ name: "ada" }).signIn(url)
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      client_id,
      code: answer.get("code")!,
      redirect_uri: redirectUri,
      code_verifier: verifier
    })
    const { access_token }: Json = yield* Effect.promise(async () =>
      (await fetch(found.token_endpoint, { method: "POST", body: form })).json()
    )
    expect(yield* client.open(bearer(access_token))).toBeUndefined()
    const reply = yield* client.request("tools/call", { name: "menu", arguments: {} }, bearer(access_token))
    expect(reply.json.result.content[0].text).toBe("tea")
  })))

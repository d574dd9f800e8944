/** Client ID metadata documents at a proxy, fetched over https from a server with a certificate that the test trusts. */
import * as NodeOutbound from "@skein/auth/NodeOutbound"
import * as TestUser from "@skein/auth/TestUser"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import type { IncomingMessage, ServerResponse } from "node:http"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { certificate, privateKey } from "../../../client/test/http/support/certificate.ts"
import * as oauth from "../devServer/kit.ts"
import * as kit from "./kit.ts"

const trusted = getCACertificates("default")
beforeAll(() => setDefaultCACertificates([...trusted, certificate]))
afterAll(() => setDefaultCACertificates(trusted))

const redirectUri = "http://127.0.0.1:4999/callback"

interface Host {
  readonly origin: string
  /** The connections that were opened. */
  connections: number
  readonly requests: Array<{ readonly path: string; readonly headers: IncomingMessage["headers"] }>
  answer: (request: IncomingMessage, response: ServerResponse) => void
}

/** An https server that publishes documents. */
const host = Effect.acquireRelease(
  Effect.callback<Host & { readonly close: () => void }>((resume) => {
    const server = createServer({ cert: certificate, key: privateKey }, (request, response) => {
      published.requests.push({ path: request.url!, headers: request.headers })
      published.answer(request, response)
    })
    const published: Host & { readonly close: () => void } = {
      get origin() {
        return `https://localhost:${(server.address() as AddressInfo).port}`
      },
      connections: 0,
      requests: [],
      answer: (_request, response) => response.writeHead(404).end(),
      close: () => {
        server.close()
        server.closeAllConnections()
      }
    }
    server.on("connection", () => published.connections++)
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(published)))
  }),
  ({ close }) => Effect.sync(close)
)

type Json = Readonly<Record<string, unknown>>

const json =
  (document: unknown, headers: Readonly<Record<string, string>> = {}): Host["answer"] => (_request, response) =>
    response.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify(document))

/** A document with the required members only. */
const documentAt = (clientId: string, more: Json = {}): Json => ({
  client_id: clientId,
  client_name: "Tea client",
  redirect_uris: [redirectUri],
  grant_types: ["authorization_code", "refresh_token"],
  ...more
})

const outbound = NodeOutbound.make({ refusePrivateAddresses: false })

/** A proxy that may fetch from this computer, and a host of documents. */
const start = (options: kit.StartOptions["proxy"] = {}) =>
  Effect.gen(function*() {
    const published = yield* host
    const running = yield* kit.start({ proxy: { outbound, ...options } })
    const clientId = `${published.origin}/oauth/client.json`
    published.answer = json(documentAt(clientId))
    return { published, running, clientId }
  })

const connect = ({ origin }: kit.Running, clientId: string, uri = redirectUri) =>
  oauth.connect(origin, { clientId, redirectUri: uri })

const authorize = (running: kit.Running, clientId: string, params: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function*() {
    const client = yield* connect(running, clientId)
    const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource, ...params })
    return yield* TestUser.make().open(url)
  })

const signIn = (running: kit.Running, clientId: string, uri = redirectUri) =>
  Effect.gen(function*() {
    const client = yield* connect(running, clientId, uri)
    const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
    return { client, tokens: yield* client.exchange(yield* TestUser.make().signIn(url)) }
  })

describe("a client ID metadata document", () => {
  it.live("2026-07-28 · is fetched over https, and its client signs a person in and refreshes", () =>
    Effect.gen(function*() {
      const { clientId, published, running } = yield* start()
      const { client, tokens } = yield* signIn(running, clientId)
      const claims = oauth.claimsOf(tokens.access_token)
      assert.strictEqual(claims["client_id"], clientId)
      assert.strictEqual((yield* kit.call(running.resource, tokens.access_token)).user.sub, "ada")
      assert.strictEqual((yield* client.refresh(tokens.refresh_token!)).status, 200)
      // Nothing was registered, and nothing of this computer was sent along.
      const [request] = published.requests
      assert.strictEqual(request!.path, "/oauth/client.json")
      assert.strictEqual(request!.headers.accept, "application/json")
      for (const name of ["cookie", "authorization", "referer"]) assert.isUndefined(request!.headers[name])
    }))

  it.live("2026-07-28 · is cached as its headers say", () =>
    Effect.gen(function*() {
      const { clientId, published, running } = yield* start()
      published.answer = json(documentAt(clientId), { "cache-control": "max-age=600" })
      yield* signIn(running, clientId)
      yield* signIn(running, clientId)
      assert.strictEqual(published.requests.length, 1)
    }))

  it.live("2026-07-28 · must have exactly the client_id of its address", () =>
    Effect.gen(function*() {
      const { clientId, published, running } = yield* start()
      const others = [
        `${clientId}/`,
        clientId.replace("https://localhost", "https://LOCALHOST"),
        clientId.replace("client.json", "./client.json"),
        "https://claude.example/client.json",
        undefined
      ]
      for (const other of others) {
        published.answer = json(documentAt(clientId, { client_id: other }))
        const page = yield* authorize(running, clientId)
        assert.strictEqual(page.status, 400, String(other))
        assert.notInclude(page.html, "Allow")
      }
      // The address, and not the document, is what a client is known by.
      published.answer = json(documentAt(clientId))
      assert.strictEqual((yield* authorize(running, clientId)).status, 200)
    }))

  it.live("2026-07-28 · is refused if it is not JSON, lacks a required field, has a secret, or is redirected", () =>
    Effect.gen(function*() {
      const { clientId, published, running } = yield* start()
      const document = documentAt(clientId)
      const endless: Host["answer"] = (_request, response) => {
        response.writeHead(200)
        const write = (): void => {
          while (!response.destroyed && response.write("x".repeat(16_384)));
          if (!response.destroyed) response.once("drain", write)
        }
        write()
      }
      const cases: Readonly<Record<string, Host["answer"]>> = {
        "no JSON": (_request, response) => response.writeHead(200).end("<html>"),
        "a list": json([document]),
        "no client_name": json({ ...document, client_name: undefined }),
        "no redirect_uris": json({ ...document, redirect_uris: undefined }),
        "a client_secret": json({ ...document, client_secret: "s" }),
        "a method with a secret": json({ ...document, token_endpoint_auth_method: "client_secret_post" }),
        "a redirect URI that runs": json({ ...document, redirect_uris: [redirectUri, "javascript:alert(1)"] }),
        "another status": (_request, response) => response.writeHead(404).end(JSON.stringify(document)),
        "a redirect": (request, response) =>
          request.url === "/moved"
            ? json(document)(request, response)
            : response.writeHead(302, { location: "/moved" }).end(),
        "more than 5 KiB": json({ ...document, x: "x".repeat(5_200) }),
        "no end": endless,
        "no answer": (request) => void request.socket.destroy()
      }
      for (const [name, answer] of Object.entries(cases)) {
        published.answer = answer
        const page = yield* authorize(running, clientId)
        assert.strictEqual(page.status, 400, name)
        assert.notInclude(page.html, "Allow", name)
      }
      assert.notInclude(published.requests.map(({ path }) => path), "/moved")
      published.answer = json(document)
      assert.strictEqual((yield* authorize(running, clientId)).status, 200)
    }))

  it.live("2026-07-28 · decides about the redirect URI, exactly, but for the port of loopback", () =>
    Effect.gen(function*() {
      const { clientId, published, running } = yield* start()
      // The example of the specification, which names no type and no method.
      published.answer = json({
        client_id: clientId,
        client_name: "Example MCP Client",
        redirect_uris: ["http://127.0.0.1:3000/callback", "https://app.example/callback"]
      })
      const statusOf = (redirect_uri: string) =>
        Effect.map(authorize(running, clientId, { redirect_uri }), ({ status }) => status)
      assert.strictEqual(yield* statusOf("http://127.0.0.1:3000/callback"), 200)
      assert.strictEqual(yield* statusOf("http://127.0.0.1:4999/callback"), 200)
      assert.strictEqual(yield* statusOf("https://app.example/callback"), 200)
      const others = [
        "http://localhost:3000/callback",
        "http://127.0.0.1:3000/callback/",
        "http://127.0.0.1:3000/callback?x",
        "https://app.example:8443/callback",
        "https://app.example/callback/../x",
        "https://evil.example/callback"
      ]
      for (const uri of others) assert.strictEqual(yield* statusOf(uri), 400, uri)
      const { tokens } = yield* signIn(running, clientId, "http://127.0.0.1:51234/callback")
      assert.strictEqual((yield* kit.call(running.resource, tokens.access_token)).user.sub, "ada")
    }))

  it.live("2026-07-28 · is named on the consent page, with the host of the redirect, and a warning for localhost", () =>
    Effect.gen(function*() {
      const { clientId, published, running } = yield* start()
      published.answer = json(documentAt(clientId, { redirect_uris: [redirectUri, "https://app.example/callback"] }))
      const local = yield* authorize(running, clientId)
      for (const text of ["Tea client asks", new URL(clientId).host, "http://127.0.0.1:4999", "class=\"warn\""]) {
        assert.include(local.html, text)
      }
      const remote = yield* authorize(running, clientId, { redirect_uri: "https://app.example/callback" })
      assert.include(remote.html, "https://app.example")
      assert.notInclude(remote.html, "class=\"warn\"")
    }))

  it.live("2026-07-28 · is not fetched from a private address, nor is a key set, unless the operator allows it", () =>
    Effect.gen(function*() {
      const published = yield* host
      const running = yield* kit.start()
      const { port } = new URL(published.origin)
      const addresses = [
        "localhost",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0"
      ]
      for (const address of addresses) {
        const clientId = `https://${address}:${port}/client.json`
        published.answer = json(documentAt(clientId))
        const page = yield* authorize(running, clientId)
        assert.strictEqual(page.status, 400, address)
      }
      // A registered client names an address too, for its keys.
      const registered = yield* oauth.register(running.origin, {
        redirectUri,
        metadata: { token_endpoint_auth_method: "private_key_jwt", jwks_uri: `${published.origin}/keys` }
      })
      assert.strictEqual(registered.status, 201)
      const { body } = yield* oauth.postForm(`${running.origin}/token`, {
        grant_type: "refresh_token",
        refresh_token: "x",
        client_id: String(registered.body["client_id"]),
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion: yield* oauth.assertion(String(registered.body["client_id"]), running.origin)
      })
      assert.strictEqual(body["error"], "invalid_client")
      assert.strictEqual(published.connections, 0)
    }))

  it.live("is not fetched without a path, from a host that the option does not name, or more often than the limit", () =>
    Effect.gen(function*() {
      const { published, running } = yield* start()
      assert.strictEqual((yield* authorize(running, published.origin)).status, 400)
      assert.strictEqual((yield* authorize(running, `${published.origin}/`)).status, 400)
      const other = yield* start({ clientIdMetadataDocuments: ["claude.example"] })
      assert.strictEqual((yield* authorize(other.running, other.clientId)).status, 400)
      const named = yield* start({ clientIdMetadataDocuments: ["claude.example", new URL(published.origin).host] })
      const clientId = `${published.origin}/client.json`
      published.answer = json(documentAt(clientId))
      assert.strictEqual((yield* authorize(named.running, clientId)).status, 200)
      const disabled = yield* start({ clientIdMetadataDocuments: false })
      assert.strictEqual((yield* authorize(disabled.running, disabled.clientId)).status, 400)
      const metadata = yield* oauth.getJson(`${disabled.running.origin}/.well-known/oauth-authorization-server`)
      assert.notProperty(metadata, "client_id_metadata_document_supported")
      assert.strictEqual(other.published.connections + disabled.published.connections, 0)
      const limited = yield* start({ maxSignInsPerMinute: 9 })
      limited.published.answer = (request, response) =>
        json(documentAt(`${limited.published.origin}${request.url}`))(request, response)
      for (let at = 0; at < 8; at++) yield* authorize(limited.running, `${limited.published.origin}/client${at}.json`)
      // A minute may end in between.
      assert.isAtMost(limited.published.requests.length, 6)
    }))

  it.live("that cannot be fetched for a while does not sign out the client's users, also at another instance", () =>
    Effect.gen(function*() {
      const { clientId, published, running } = yield* start()
      const { client, tokens } = yield* signIn(running, clientId)
      const second = yield* kit.port
      const another = kit.instance(second.raw, running.origin, running.upstream, running.store, { outbound })
      yield* another
      const refreshAt = (origin: string, token: string) =>
        oauth.postForm(`${origin}/token`, { grant_type: "refresh_token", refresh_token: token, client_id: clientId })
      published.answer = (_request, response) => response.writeHead(503).end()
      const refreshed = yield* refreshAt(second.origin, tokens.refresh_token!)
      assert.strictEqual(refreshed.status, 200)
      // Other clients stay unknown.
      assert.strictEqual((yield* authorize(running, `${published.origin}/other.json`)).status, 400)
      // A document that is gone ends its client.
      published.answer = (_request, response) => response.writeHead(404).end()
      const third = yield* kit.port
      yield* kit.instance(third.raw, running.origin, running.upstream, running.store, { outbound })
      const gone = yield* refreshAt(third.origin, String(refreshed.body["refresh_token"]))
      assert.strictEqual(gone.body["error"], "invalid_client")
      assert.strictEqual(client.clientId, clientId)
    }))
})

describe("a registration", () => {
  it.live("2025-06-18 · that names no type of application may use any port of loopback", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const client = yield* oauth.connect(running.origin, {
        redirectUri: "http://localhost:4999/callback",
        metadata: { application_type: undefined }
      })
      const url = yield* client.authorizationUrl({
        resource: running.resource,
        redirect_uri: "http://localhost:51234/callback"
      })
      assert.strictEqual((yield* TestUser.make().open(url)).status, 200)
      const web = yield* oauth.connect(running.origin, {
        redirectUri: "https://app.example/callback",
        metadata: { application_type: undefined }
      })
      const local = "https://localhost:8443/callback"
      const developed = yield* oauth.connect(running.origin, {
        redirectUri: local,
        metadata: { application_type: undefined }
      })
      const there = yield* developed.authorizationUrl({ resource: running.resource, redirect_uri: local })
      assert.strictEqual((yield* TestUser.make().open(there)).status, 200)
      const elsewhere = yield* web.authorizationUrl({
        resource: running.resource,
        redirect_uri: "https://app.example:8443/callback"
      })
      assert.strictEqual((yield* TestUser.make().open(elsewhere)).status, 400)
    }))
})

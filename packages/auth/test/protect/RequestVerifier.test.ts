/** Verifiers of requests: certificates, signed headers and plain headers. */
import * as RequestVerifier from "@skein/auth/RequestVerifier"
import { describe, expect, it } from "@effect/vitest"
import * as Awaitable from "@skein/runtime/Awaitable"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import type { Principal } from "@skein/server/Principal"
import * as Current from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import * as jose from "jose"
import { createHash } from "node:crypto"
import { createServer, request as httpsRequest } from "node:https"
import type { AddressInfo } from "node:net"
import { certificate as pem, privateKey } from "../../../client/test/http/support/certificate.ts"
import { makeNetworks } from "../../src/server/networks.ts"
import { type Claims, claimsOf, makeKey, makeServer, sign } from "./authorizationServer.ts"

const der = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ""), "base64")
const thumbprint = createHash("sha256").update(der).digest("base64url")
const rfc9440 = `:${der.toString("base64")}:`

interface Sent {
  readonly headers?: { readonly [name: string]: string }
  readonly peerAddress?: string | undefined
  readonly address?: string
  readonly clientCertificate?: Uint8Array
}

const request = ({ headers = {}, peerAddress, address = peerAddress ?? "192.0.2.9", clientCertificate }: Sent) =>
  ({
    method: "POST",
    path: "/mcp",
    params: undefined,
    size: 0,
    header: (name: string) => headers[name],
    read: () => {},
    address,
    peerAddress,
    clientCertificate
  }) satisfies Http.HttpRequest

/** The principal of a request that is accepted. */
const principalOf = (verifier: RequestVerifier.RequestVerifier, sent: Sent) =>
  Effect.gen(function*() {
    const protection = yield* RequestVerifier.protection(verifier)
    const found = Awaitable.settle(
      (protection.identify as (request: Http.HttpRequest) => ReturnType<Http.FindPrincipal>)(request(sent))
    )
    return Effect.isEffect(found) ? yield* Effect.orDie(found) : found
  })

/** The id of the principal, or the status of the refusal. */
const identify = (protection: Http.Protection, sent: Sent): Effect.Effect<string | number | undefined> =>
  Effect.suspend(() => {
    // A protection of requests does not look at the answer.
    const found = Awaitable.settle(
      (protection.identify as (request: Http.HttpRequest) => ReturnType<Http.FindPrincipal>)(request(sent))
    )
    if (!Effect.isEffect(found)) return Effect.succeed(found?.id)
    return Effect.match(found, {
      onSuccess: (principal: Principal | undefined) => principal?.id,
      onFailure: (error) => error instanceof Http.Refusal ? error.status : String(error)
    })
  })

const byRequest = (
  verifier: RequestVerifier.RequestVerifier,
  sent: Sent,
  options: RequestVerifier.ProtectionOptions = {}
) => Effect.flatMap(RequestVerifier.protection(verifier, options), (protection) => identify(protection, sent))

describe("networks", () => {
  const cases: ReadonlyArray<readonly [string, string, boolean]> = [
    ["10.0.0.0/8", "10.255.0.1", true],
    ["10.0.0.0/8", "11.0.0.1", false],
    ["10.0.0.0/8", "::ffff:10.1.2.3", true],
    ["::ffff:10.0.0.1", "10.0.0.1", true],
    ["192.0.2.1", "192.0.2.1", true],
    ["192.0.2.1", "192.0.2.2", false],
    ["0.0.0.0/0", "203.0.113.7", true],
    ["0.0.0.0/0", "::1", false],
    ["::/0", "192.0.2.1", false],
    ["2001:db8::/32", "2001:db8:ffff::1", true],
    ["2001:db8::/32", "2001:db9::1", false],
    ["fe80::/10", "fe80::1%eth0", true],
    ["::1", "0:0:0:0:0:0:0:1", true],
    ["::1", "rubbish", false],
    ["127.0.0.1", "127.0.0.1.2", false],
    ["127.0.0.1", "", false]
  ]
  for (const [network, address, isIn] of cases) {
    it(`${isIn ? "contains" : "does not contain"}: ${network}, "${address}"`, () => {
      expect(makeNetworks([network])(address)).toBe(isIn)
    })
  }

  it("throws for a malformed network, and contains no unknown address", () => {
    for (
      const text of [
        "",
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/-1",
        "10.0.0.0/8/8",
        "10.0.0",
        "256.0.0.1",
        "a.example",
        "1:2"
      ]
    ) {
      expect(() => makeNetworks([text])).toThrow("CIDR")
    }
    expect(makeNetworks(["0.0.0.0/0", "::/0"])(undefined)).toBe(false)
  })
})

describe("RequestVerifier.certificate", () => {
  const proxies = ["10.0.0.0/8"]

  it.effect("accepts the certificate of the connection", () =>
    Effect.gen(function*() {
      expect(yield* byRequest(RequestVerifier.certificate(), { clientCertificate: der })).toBe(
        `certificate ${thumbprint}`
      )
      expect(yield* byRequest(RequestVerifier.certificate(), {})).toBe(403)
      expect(yield* byRequest(RequestVerifier.certificate(), { clientCertificate: new Uint8Array(9) })).toBe(403)
    }))

  it.effect("makes the principal of the names in the certificate, or refuses it", () =>
    Effect.gen(function*() {
      const named = RequestVerifier.certificate({
        principal: ({ subject, subjectAltName }) => ({ id: `${subject} ${subjectAltName}` })
      })
      expect(yield* byRequest(named, { clientCertificate: der })).toBe("CN=localhost DNS:localhost")
      const none = RequestVerifier.certificate({ principal: () => undefined })
      expect(yield* byRequest(none, { clientCertificate: der })).toBe(403)
    }))

  it.effect("RFC 9440, 2.2 · accepts the header Client-Cert of a trusted proxy", () =>
    Effect.gen(function*() {
      const verifier = RequestVerifier.certificate({ forwarded: { proxies } })
      const id = `certificate ${thumbprint}`
      expect(yield* byRequest(verifier, { headers: { "client-cert": rfc9440 }, peerAddress: "10.1.1.1" })).toBe(id)
      const malformed = [
        "x",
        ":",
        "::",
        rfc9440.slice(1),
        `${rfc9440}, ${rfc9440}`,
        ":AAAA:",
        ":%%:",
        "a".repeat(20_000)
      ]
      for (const value of malformed) {
        expect(yield* byRequest(verifier, { headers: { "client-cert": value }, peerAddress: "10.1.1.1" })).toBe(403)
      }
    }))

  it.effect("RFC 9440, 4 · ignores the header of anybody else, and the certificate of the proxy itself", () =>
    Effect.gen(function*() {
      const verifier = RequestVerifier.certificate({ forwarded: { proxies } })
      const headers = { "client-cert": rfc9440 }
      expect(yield* byRequest(verifier, { headers, peerAddress: "192.0.2.1" })).toBe(403)
      expect(yield* byRequest(verifier, { headers })).toBe(403)
      // The address that a header claims is not that of the connection.
      expect(yield* byRequest(verifier, { headers, address: "10.1.1.1", peerAddress: "192.0.2.1" })).toBe(403)
      expect(yield* byRequest(verifier, { clientCertificate: der, peerAddress: "10.1.1.1" })).toBe(403)
    }))

  it.effect("reads a certificate once, for all requests with it, and returns its principal without an effect", () =>
    Effect.gen(function*() {
      let reads = 0
      const protection = yield* RequestVerifier.protection(RequestVerifier.certificate({
        forwarded: { proxies },
        principal: ({ thumbprint }) => ({ id: `${thumbprint} ${reads++}` })
      }))
      const forwarded: Sent = { headers: { "client-cert": rfc9440 }, peerAddress: "10.1.1.1" }
      const direct: Sent = { clientCertificate: der, peerAddress: "192.0.2.1" }
      for (const [sent, read] of [[forwarded, 0], [direct, 1]] as const) {
        expect(yield* identify(protection, sent)).toBe(`${thumbprint} ${read}`)
        const known = (protection.identify as (request: Http.HttpRequest) => unknown)(request(sent))
        expect(known).toEqual({ id: `${thumbprint} ${read}` })
      }
      expect(reads).toBe(2)
    }))

  it.effect("accepts a PEM text in a header of another name", () =>
    Effect.gen(function*() {
      const verifier = RequestVerifier.certificate({
        forwarded: { proxies, header: "X-SSL-Client-Cert", format: "pem" }
      })
      const sent = (value: string) =>
        byRequest(verifier, { headers: { "x-ssl-client-cert": value }, peerAddress: "10.1.1.1" })
      expect(yield* sent(encodeURIComponent(`${pem}\n`))).toBe(`certificate ${thumbprint}`)
      // AWS leaves these characters.
      expect(yield* sent(encodeURIComponent(pem).replaceAll("%2B", "+").replaceAll("%2F", "/"))).toBe(
        `certificate ${thumbprint}`
      )
      for (const value of ["%", "x", encodeURIComponent(`${pem}${pem}`), encodeURIComponent(privateKey)]) {
        expect(yield* sent(value)).toBe(403)
      }
    }))

  it("authenticates a client of node:https by its certificate, and none without", async () => {
    const whoami = Tool.layer(
      Tool.make("whoami"),
      () => Effect.map(Current.current, Option.match({ onNone: () => "nobody", onSome: ({ id }) => id }))
    )
    const protection = await Effect.runPromise(RequestVerifier.protection(RequestVerifier.certificate()))
    const mcp = await NodeHttp.mount(McpServer.layer({ name: "tls", version: "1" }, whoami), { protection })
    const server = createServer(
      { cert: pem, key: privateKey, ca: pem, requestCert: true, rejectUnauthorized: false },
      mcp.handler
    )
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    const { port } = server.address() as AddressInfo
    const version = "2026-07-28"
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: {
        name: "whoami",
        _meta: {
          "io.modelcontextprotocol/protocolVersion": version,
          "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {}
        }
      }
    })
    const call = (client: object) =>
      new Promise<string>((resolve, reject) => {
        const sent = httpsRequest({
          port,
          host: "127.0.0.1",
          servername: "localhost",
          path: "/mcp",
          method: "POST",
          ca: pem,
          agent: false,
          headers: {
            host: "localhost",
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            "mcp-protocol-version": version,
            "mcp-method": "tools/call",
            "mcp-name": "whoami"
          },
          ...client
        }, (response) => {
          let text = ""
          response.on("data", (chunk: Buffer) => {
            text += chunk.toString()
          })
          response.on("end", () => resolve(`${response.statusCode} ${text}`))
        })
        sent.on("error", reject)
        sent.end(body)
      })
    try {
      expect(await call({ cert: pem, key: privateKey })).toMatch(new RegExp(`^200 .*certificate ${thumbprint}`))
      expect(await call({})).toMatch(/^403 /)
    } finally {
      await mcp.close()
      server.closeAllConnections()
      await new Promise<void>((done) => server.close(() => done()))
    }
  })
})

describe("RequestVerifier.signedHeader", () => {
  const assertion: Claims = { aud: "tea", email: "ada@example.com", client_id: undefined, scope: undefined }

  it.effect("accepts an assertion of the proxy, and knows it afterwards", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = RequestVerifier.signedHeader({
        header: "X-Assertion",
        issuer: server.issuer,
        audiences: ["tea"],
        jwksUri: `${server.origin}/keys`
      })
      expect(verifier.headers).toEqual(["x-assertion"])
      const protection = yield* RequestVerifier.protection(verifier)
      expect(protection.credentialHeaders).toEqual(["x-assertion"])
      const headers = { "x-assertion": yield* server.token(assertion, { typ: "JWT" }) }
      expect(yield* identify(protection, { headers })).toBe(`${server.issuer} ada`)
      const identified = protection.identify as (request: Http.HttpRequest) => unknown
      const known = identified(request({ headers }))
      expect(known).toEqual({ id: `${server.issuer} ada`, email: "ada@example.com", expiresAt: 3_605 })
      expect(identified(request({ headers }))).toBe(known)
      expect(server.requests).toEqual(["/keys"])
    }))

  it.effect("ends streams with the assertion, unless the principal has an expiresAt of its own", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const expiryOf = (principal?: () => Principal) =>
        Effect.gen(function*() {
          const options = { header: "x", issuer: server.issuer, audiences: ["tea"], principal }
          const headers = { x: yield* server.token({ ...assertion, exp: 60 }, { typ: "JWT" }) }
          return (yield* principalOf(RequestVerifier.signedHeader(options), { headers }))?.expiresAt
        })
      // With the tolerance of clocks.
      expect(yield* expiryOf()).toBe(65)
      expect(yield* expiryOf(() => ({ id: "ada" }))).toBe(65)
      expect(yield* expiryOf(() => ({ id: "ada", expiresAt: 7 }))).toBe(7)
      expect(yield* expiryOf(() => ({ id: "ada", expiresAt: undefined }))).toBeUndefined()
    }))

  const refused: ReadonlyArray<readonly [title: string, claims: Claims, header?: Claims]> = [
    ["another audience", { aud: "coffee" }],
    ["no audience", { aud: undefined }],
    ["an empty audience", { aud: "" }],
    ["another issuer", { iss: "https://other.example" }],
    ["an expired assertion", { exp: -5 }],
    ["an assertion without exp", { exp: undefined }],
    ["an access token", {}, { typ: "at+jwt" }],
    ["an assertion of nobody", { sub: undefined }]
  ]
  for (const [title, claims, header] of refused) {
    it.effect(`rejects ${title}`, () =>
      Effect.gen(function*() {
        const server = yield* makeServer
        const verifier = RequestVerifier.signedHeader({
          header: "x-assertion",
          issuer: server.issuer,
          audiences: ["tea"]
        })
        const token = yield* server.token({ ...assertion, ...claims }, { typ: "JWT", ...header })
        expect(yield* byRequest(verifier, { headers: { "x-assertion": token } })).toBe(403)
      }))
  }

  it.effect("accepts an assertion that is signed with a shared secret, and no other key", () =>
    Effect.gen(function*() {
      const secret = "a secret of at least thirty-two bytes"
      const issuer = "https://gateway.internal"
      const verifier = RequestVerifier.signedHeader({
        header: "x-user",
        issuer,
        audiences: ["tea"],
        secret: Redacted.make(secret)
      })
      const signed = (key: string, alg = "HS256") =>
        Effect.promise(() =>
          new jose.SignJWT(claimsOf(issuer, assertion)).setProtectedHeader({ alg })
            .sign(new TextEncoder().encode(key))
        )
      const sent = (token: string) => byRequest(verifier, { headers: { "x-user": token } })
      expect(yield* sent(yield* signed(secret))).toBe(`${issuer} ada`)
      expect(yield* sent(yield* signed(secret, "HS512"))).toBe(`${issuer} ada`)
      expect(yield* sent(yield* signed("another secret of at least thirty-two bytes"))).toBe(403)
      expect(yield* sent(yield* sign(yield* makeKey("ES256"), claimsOf(issuer, assertion), { typ: "JWT" }))).toBe(403)
    }))

  it("RFC 8725, 3.1 and 3.5 · throws for a short secret, and for algorithms of the other kind", () => {
    const base = { header: "x", issuer: "https://a.example", audiences: ["tea"] }
    const secret = Redacted.make("x".repeat(32))
    expect(() => RequestVerifier.signedHeader({ ...base, secret: Redacted.make("short") })).toThrow("at least 32")
    expect(() => RequestVerifier.signedHeader({ ...base, secret, algorithms: ["RS256"] })).toThrow("not allowed")
    expect(() => RequestVerifier.signedHeader({ ...base, algorithms: ["HS256"] })).toThrow("not allowed")
    expect(() => RequestVerifier.signedHeader({ ...base, audiences: [] })).toThrow("audiences is empty")
  })

  it.effect("answers 503 while the keys are not available, and 429 after 20 failures", () =>
    Effect.gen(function*() {
      const server = yield* makeServer
      const verifier = RequestVerifier.signedHeader({ header: "x", issuer: server.issuer, audiences: ["tea"] })
      const good = { headers: { x: yield* server.token(assertion, { typ: "JWT" }) } }
      const bad = { headers: { x: "rubbish" } }
      server.overrides.set("/keys", (_request, response) => void response.writeHead(503).end())
      const protection = yield* RequestVerifier.protection(verifier)
      expect(yield* identify(protection, good)).toBe(503)
      server.overrides.clear()
      yield* TestClock.adjust("1 second")
      expect(yield* identify(protection, good)).toBe(`${server.issuer} ada`)
      for (let i = 0; i < 20; i++) expect(yield* identify(protection, bad)).toBe(403)
      expect(yield* identify(protection, bad)).toBe(429)
      // A known assertion of the same address is accepted.
      expect(yield* identify(protection, good)).toBe(`${server.issuer} ada`)
      expect(yield* identify(protection, { ...bad, address: "198.51.100.1" })).toBe(403)
    }))

  it.effect("counts a client that disconnects while it is being verified", () =>
    Effect.gen(function*() {
      const verifier = RequestVerifier.make({ headers: ["x"], verify: () => Effect.never })
      const protection = yield* RequestVerifier.protection(verifier, { maxFailures: 2 })
      for (let i = 0; i < 2; i++) {
        const fiber = yield* Effect.forkChild(identify(protection, {}), { startImmediately: true })
        yield* Fiber.interrupt(fiber)
      }
      expect(yield* identify(protection, {})).toBe(429)
    }))
})

const loadBalancerArn = "arn:aws:elasticloadbalancing:eu-west-1:1:loadbalancer/app/tea/2"

/** The key of an AWS load balancer, at the address that it is fetched from. */
const loadBalancer = Effect.gen(function*() {
  const kid = "12345678-1234-1234-1234-123456789012"
  const key = yield* makeKey("ES256", kid)
  const spki = yield* Effect.promise(async () =>
    jose.exportSPKI(await jose.importJWK(key.publicJwk, "ES256") as jose.CryptoKey)
  )
  return { kid, key, keys: { [`https://public-keys.auth.elb.eu-west-1.amazonaws.com/${kid}`]: spki } }
})

describe("presets", () => {
  /** Answers the requests for keys in place of the network. */
  const withKeys = <A, E, R>(addresses: { readonly [url: string]: unknown }, effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const { fetch } = globalThis
        globalThis.fetch = (async (url: string) => {
          const found = addresses[url]
          if (found === undefined) return new Response("", { status: 404 })
          return new Response(typeof found === "string" ? found : JSON.stringify(found))
        }) as typeof fetch
        return fetch
      }),
      () => effect,
      (fetch) =>
        Effect.sync(() => {
          globalThis.fetch = fetch
        })
    )

  it.effect("accepts Cloudflare Access: users and service tokens", () =>
    Effect.gen(function*() {
      const team = "https://acme.cloudflareaccess.com"
      const key = yield* makeKey("RS256")
      const verifier = RequestVerifier.cloudflareAccess({ team, audience: "aud tag" })
      const keys = { [`${team}/cdn-cgi/access/certs`]: { keys: [key.publicJwk] } }
      const sent = (claims: Claims) =>
        Effect.flatMap(
          sign(key, claimsOf(team, { aud: ["aud tag"], client_id: undefined, ...claims }), { typ: "JWT" }),
          (token) => withKeys(keys, byRequest(verifier, { headers: { "cf-access-jwt-assertion": token } }))
        )
      expect(yield* sent({})).toBe(`${team} ada`)
      expect(yield* sent({ sub: "", common_name: "job.access" })).toBe(`${team} job.access`)
      const headers = {
        "cf-access-jwt-assertion": yield* sign(key, claimsOf(team, { aud: "aud tag" }), { typ: "JWT" })
      }
      expect((yield* withKeys(keys, principalOf(verifier, { headers })))?.expiresAt).toBe(3_605)
      expect(yield* sent({ aud: ["another application"] })).toBe(403)
    }))

  it.effect("accepts Google IAP", () =>
    Effect.gen(function*() {
      const key = yield* makeKey("ES256")
      const audience = "/projects/1/global/backendServices/2"
      const verifier = RequestVerifier.googleIap({ audience })
      const keys = { "https://www.gstatic.com/iap/verify/public_key-jwk": { keys: [key.publicJwk] } }
      const sent = (claims: Claims) =>
        Effect.flatMap(
          sign(key, claimsOf("https://cloud.google.com/iap", { aud: audience, ...claims }), { typ: "JWT" }),
          (token) => withKeys(keys, byRequest(verifier, { headers: { "x-goog-iap-jwt-assertion": token } }))
        )
      expect(yield* sent({})).toBe("https://cloud.google.com/iap ada")
      expect(yield* sent({ aud: "/projects/9/global/backendServices/2" })).toBe(403)
    }))

  it.effect("accepts an AWS load balancer with the configured ARN only", () =>
    Effect.gen(function*() {
      const { key, keys } = yield* loadBalancer
      const issuer = "https://login.example"
      const verifier = RequestVerifier.awsAlb({ region: "eu-west-1", loadBalancerArn, issuer, clientId: "tea" })
      const signed = (header: Claims) =>
        sign(key, { sub: "ada", email: "ada@example.com" }, {
          typ: "JWT",
          signer: loadBalancerArn,
          client: "tea",
          iss: issuer,
          exp: 120,
          ...header
        })
      const sent = (header: Claims) =>
        Effect.flatMap(
          signed(header),
          (token) => withKeys(keys, byRequest(verifier, { headers: { "x-amzn-oidc-data": token } }))
        )
      expect(yield* sent({})).toBe(`${issuer} ada`)
      // As load balancers write it: they sign the parts with their padding.
      const pad = (part: string): string => part.padEnd(Math.ceil(part.length / 4) * 4, "=")
      const parts = (yield* signed({ pad: "pads" })).split(".").slice(0, 2).map(pad)
      expect(parts.join("")).toContain("=")
      const bytes = yield* Effect.promise(() =>
        crypto.subtle.sign(
          { name: "ECDSA", hash: "SHA-256" },
          key.privateKey as jose.CryptoKey,
          new TextEncoder().encode(parts.join("."))
        )
      )
      const padded = [...parts, pad(jose.base64url.encode(new Uint8Array(bytes)))].join(".")
      expect(yield* withKeys(keys, byRequest(verifier, { headers: { "x-amzn-oidc-data": padded } }))).toBe(
        `${issuer} ada`
      )
      // An assertion of one request does not end the streams of its user.
      const headers = { "x-amzn-oidc-data": yield* signed({}) }
      const principal = yield* withKeys(keys, principalOf(verifier, { headers }))
      expect(principal).toEqual({ id: `${issuer} ada`, email: "ada@example.com" })
      for (
        const header of [
          { signer: `${loadBalancerArn}2` },
          { signer: undefined },
          { client: "coffee" },
          { iss: "https://other.example" },
          { exp: -5 },
          { kid: "../../../thief" },
          { kid: "12345678-1234-1234-1234-123456789013" }
        ]
      ) {
        expect(yield* sent(header)).toBe(403)
      }
    }))

  it.effect("fetches the new key of an AWS load balancer while another address sends invented ones", () =>
    Effect.gen(function*() {
      const { key, keys, kid } = yield* loadBalancer
      const issuer = "https://a.example"
      const protection = yield* RequestVerifier.protection(
        RequestVerifier.awsAlb({ region: "eu-west-1", loadBalancerArn, issuer, clientId: "tea" }),
        { maxFailures: 0 }
      )
      const sent = (address: string, kid: string) =>
        Effect.flatMap(
          sign(key, { sub: "ada" }, { typ: "JWT", kid, signer: loadBalancerArn, client: "tea", iss: issuer, exp: 120 }),
          (token) => withKeys(keys, identify(protection, { headers: { "x-amzn-oidc-data": token }, address }))
        )
      for (let i = 30; i < 40; i++) expect(yield* sent("192.0.2.1", `${kid.slice(0, -2)}${i}`)).toBe(403)
      expect(yield* sent("192.0.2.1", `${kid.slice(0, -2)}99`)).toBe(503)
      expect(yield* sent("192.0.2.1", kid)).toBe(503)
      expect(yield* sent("198.51.100.1", kid)).toBe(`${issuer} ada`)
      // The key was fetched for another address.
      expect(yield* sent("192.0.2.1", kid)).toBe(`${issuer} ada`)
      yield* TestClock.adjust("30 seconds")
      expect(yield* sent("192.0.2.1", `${kid.slice(0, -2)}99`)).toBe(403)
    }))
})

describe("RequestVerifier.trustedHeader", () => {
  const verifier = RequestVerifier.trustedHeader({ header: "X-Forwarded-User", proxies: ["10.0.0.0/8"] })
  const sent = (user: string, more: Sent = {}) =>
    byRequest(verifier, { headers: { "x-forwarded-user": user }, peerAddress: "10.1.1.1", ...more })

  it.effect("trusts the header on connections of proxies only", () =>
    Effect.gen(function*() {
      expect(yield* sent("ada")).toBe("ada")
      expect(yield* sent("ada", { peerAddress: "192.0.2.1" })).toBe(403)
      expect(yield* sent("ada", { peerAddress: undefined })).toBe(403)
      expect(yield* sent("ada", { peerAddress: "192.0.2.1", address: "10.1.1.1" })).toBe(403)
      expect(yield* sent("")).toBe(403)
    }))

  it.effect("rejects a header that was sent twice, and one that is too long", () =>
    Effect.gen(function*() {
      expect(yield* sent("root, ada")).toBe(403)
      expect(yield* sent("a".repeat(1_024))).toBe("a".repeat(1_024))
      expect(yield* sent("a".repeat(1_025))).toBe(403)
    }))

  it.effect("makes the principal of the value, or refuses it", () =>
    Effect.gen(function*() {
      const known = RequestVerifier.trustedHeader({
        header: "x-user",
        proxies: ["::1"],
        principal: (user) => user === "ada" ? { id: "1", name: user } : undefined
      })
      const by = (user: string) => byRequest(known, { headers: { "x-user": user }, peerAddress: "::1" })
      expect(yield* by("ada")).toBe("1")
      expect(yield* by("eve")).toBe(403)
    }))
})

describe("RequestVerifier.protection", () => {
  const user = RequestVerifier.trustedHeader({ header: "x-user", proxies: ["::1"] })

  it.effect("asks the verifiers in turn, and the first that finds its credentials decides", () =>
    Effect.gen(function*() {
      const protection = yield* RequestVerifier.protection([RequestVerifier.certificate(), user])
      const headers = { "x-user": "ada" }
      expect(yield* identify(protection, { headers, peerAddress: "::1" })).toBe("ada")
      const both = { headers, peerAddress: "::1", clientCertificate: der }
      expect(yield* identify(protection, both)).toBe(`certificate ${thumbprint}`)
      expect(yield* identify(protection, { ...both, clientCertificate: new Uint8Array(3) })).toBe(403)
      expect(protection.credentialHeaders).toEqual(["x-user"])
    }))

  it.effect("accepts anonymous callers with allowAnonymous, but no wrong credentials", () =>
    Effect.gen(function*() {
      expect(yield* byRequest(user, {})).toBe(403)
      expect(yield* byRequest(user, {}, { allowAnonymous: true })).toBeUndefined()
      expect(yield* byRequest(user, { headers: { "x-user": "ada" } }, { allowAnonymous: true })).toBe(403)
    }))

  it.effect("verifies no more requests of a burst from one address than maxFailures", () =>
    Effect.gen(function*() {
      let verifications = 0
      const none = RequestVerifier.make({ headers: [], verify: () => Effect.as(Effect.yieldNow, undefined) })
      const wrong = RequestVerifier.make({
        headers: ["x"],
        verify: () =>
          Effect.suspend(() => {
            verifications++
            return Effect.andThen(
              Effect.yieldNow,
              Effect.fail(new RequestVerifier.InvalidCredentials({ message: "wrong" }))
            )
          })
      })
      const protection = yield* RequestVerifier.protection([none, wrong], { maxFailures: 1 })
      const all = yield* Effect.forEach(Array.from({ length: 9 }), () => identify(protection, {}), {
        concurrency: "unbounded"
      })
      expect(all.toSorted()).toEqual([403, ...Array.from({ length: 8 }, () => 429)])
      expect(verifications).toBe(1)
    }))

  it.effect("awaits the promise of a verifier of your own", () =>
    Effect.gen(function*() {
      const own = RequestVerifier.make({
        headers: ["x-key"],
        verify: async (request) => {
          const key = request.header("x-key")
          if (key === "wrong") throw new RequestVerifier.InvalidCredentials({ message: "wrong" })
          return key === undefined ? undefined : { id: key }
        }
      })
      expect(yield* byRequest(own, { headers: { "x-key": "ada" } })).toBe("ada")
      expect(yield* byRequest(own, { headers: { "x-key": "wrong" } })).toBe(403)
      // A request without credentials is not taken for that of an anonymous caller.
      expect(yield* byRequest(own, {})).toBe(403)
    }))

  it.effect("asks a verifier of your own", () =>
    Effect.gen(function*() {
      const own = RequestVerifier.make({
        headers: ["X-Key"],
        verify: (request) =>
          request.header("x-key") === undefined
            ? undefined
            : Effect.andThen(Effect.yieldNow, Effect.succeed({ id: "own" }))
      })
      expect(yield* byRequest(own, { headers: { "x-key": "1" } })).toBe("own")
      expect(yield* byRequest(own, {})).toBe(403)
    }))
})

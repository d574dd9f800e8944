/** Attacks by web pages through a user's browser, which must not trust either the page or its origin. */
import { describe, expect, it } from "@effect/vitest"
import * as Cors from "@skein/server/Cors"
import * as LegacySse from "@skein/server/LegacySse"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { adapters } from "../adapters.ts"
import * as fixtures from "../fixtures.ts"
import * as kit from "../kit.ts"

const server = fixtures.server(fixtures.echo)
const verbs = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]

describe("a page that reaches this machine by DNS rebinding", () => {
  it.live("rejects the page on every verb and path, and opens no session", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server, { legacySse: LegacySse.make(), cors: Cors.make() })
      const hosts = [
        "evil.com",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "127.0.0.1.nip.io",
        "0.0.0.0",
        `0.0.0.0:${at.port}`,
        "127.1",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "localhost%00.evil.com",
        "xn--localhost"
      ]
      const invalid = [
        "localhost@evil.com",
        "evil.com@localhost",
        "localhost\\.evil.com",
        "localhost:80:evil.com",
        "loc\u00e5lhost",
        "localhost localhost"
      ]
      for (const host of [...hosts, ...invalid]) {
        for (const path of ["/mcp", "/sse", "/messages?sessionId=x", "/none"]) {
          const sent = { path, headers: { ...kit.posting, host }, method: "POST", body: {} }
          const status = invalid.includes(host) ? 400 : 403
          expect([host, path, (yield* kit.send(at, sent)).status]).toEqual([host, path, status])
        }
      }
      for (const path of ["/mcp", "/sse", "/messages", "/none", "*"]) {
        for (const method of verbs) {
          const foreign = [{ host: "evil.com" }, { origin: "http://evil.com" }, { origin: "null" }]
          for (const headers of foreign) {
            const reply = yield* kit.send(at, { method, path, headers })
            // Only OPTIONS has the target `*`.
            const status = path === "*" && method !== "OPTIONS" ? 400 : 403
            expect([method, path, reply.status]).toEqual([method, path, status])
            expect(reply.headers).not.toHaveProperty("access-control-allow-origin")
          }
        }
      }
      expect([at.endpoint.sessions, at.endpoint.streams]).toEqual([0, 0])
    })))
})

describe("a page that sends a request without a preflight", () => {
  for (const adapter of adapters) {
    it.live(`runs no handler with any media type · ${adapter.name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* adapter.serve(server)
        const { body, headers } = kit.modern("tools/call", { name: "echo", arguments: { text: "done" } })
        const types = [
          "text/plain",
          "text/plain; charset=application/json",
          "text/plain, application/json",
          "application/x-www-form-urlencoded",
          "multipart/form-data; boundary=application/json",
          "application/json-seq",
          "text/json",
          undefined
        ]
        for (const type of types) {
          for (const origin of [undefined, "http://localhost:1"]) {
            const reply = yield* kit.send(at, { body, headers: { ...headers, "content-type": type, origin } })
            expect([type, reply.status, reply.text.includes("done")]).toEqual([type, 415, false])
          }
        }
      })))
  }
})

describe("an origin", () => {
  for (const adapter of adapters) {
    it.live(`accepts an origin only as listed and as a browser writes it · ${adapter.name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const own = "https://app.example.com"
        const at = yield* adapter.serve(server, {
          allowedOrigins: [own, "https://other.example.com:443"],
          cors: Cors.make()
        })
        const ask = (origin: string) =>
          kit.send(at, {
            method: "OPTIONS",
            headers: { host: "localhost", origin, "access-control-request-method": "POST" }
          })
        const good = yield* ask(own)
        expect([good.status, good.headers["access-control-allow-origin"]]).toEqual([204, own])
        expect((yield* ask("https://other.example.com")).status).toBe(204)
        const bad = [
          "null",
          "",
          "*",
          "app.example.com",
          "http://app.example.com",
          "https://app.example.com.evil.com",
          "https://evil-app.example.com",
          "https://app.example.com:8443",
          "https://app.example.com/",
          "https://app.example.com/evil",
          "https://app.example.com?x",
          "https://app.example.com#x",
          "https://u@app.example.com",
          "https://app.example.com@evil.com",
          "https://app.example.com\\@evil.com",
          "https://app%2eexample.com",
          "https:app.example.com",
          "blob:https://app.example.com/1",
          "https://app.example.com, https://evil.com",
          "https://app.example.com https://evil.com",
          "http://localhost"
        ]
        for (const origin of bad) {
          const { headers, status } = yield* ask(origin)
          expect([origin, status, headers["access-control-allow-origin"]]).toEqual([origin, 403, undefined])
        }
      })))
  }

  it.live("does not start a server that allows any origin with credentials", () =>
    Effect.scoped(Effect.gen(function*() {
      const cors = Cors.make({ credentials: true })
      const started = yield* Effect.exit(kit.serve(server, { allowedOrigins: "any", cors }))
      expect(Exit.isFailure(started)).toBe(true)
      const at = yield* kit.serve(server, { allowedOrigins: "any", cors: Cors.make() })
      const { headers } = yield* kit.send(at, { headers: { origin: "https://evil.com" } })
      expect(headers).not.toHaveProperty("access-control-allow-credentials")
    })))
})

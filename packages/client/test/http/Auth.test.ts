/** Credentials and redirects. */
import { describe, expect, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Redacted from "effect/Redacted"
import { inspect } from "node:util"
import * as Client from "../../src/Client.ts"
import * as Credentials from "../../src/Credentials.ts"
import * as Http from "../../src/Http.ts"
import { connected, entered, type Exchange, type Json, modern, until } from "./support/connection.ts"

/** Credentials whose token has the count of challenges, and which ask for a retry up to `times` times. */
const renewing = (
  times: number,
  challenges: Array<Credentials.Challenge> = []
): Credentials.Credentials["Service"] => ({
  headers: () => Effect.sync(() => ({ authorization: `Bearer t${challenges.length}` })),
  refused: (challenge) =>
    Effect.sync(() => {
      challenges.push(challenge)
      return challenges.length <= times
    })
})

const guarded = (token: string, status = 401) => (hit: Exchange): void =>
  hit.headers.authorization === `Bearer ${token}`
    ? hit.respondResult()
    : hit.respond(status, "who?", { "www-authenticate": "Bearer scope=\"a\"", "content-type": "text/plain" })

describe("credentials", () => {
  it.effect("add headers to every request, including the standalone stream's GET and the DELETE", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respondResult()))
      const credentials = Credentials.bearer(Redacted.make("secret"))
      yield* Effect.scoped(Effect.gen(function*() {
        const { request, received } = yield* entered({ url: server.url, credentials, shutdownTimeout: "1 second" })
        request(1, "tools/list")
        yield* until(() => received.answer(1) !== undefined && server.byMethod("GET").length === 1)
      }))
      expect(server.exchanges.map(({ headers, method }) => [method, headers.authorization]).sort()).toEqual(
        ["DELETE", "GET", "POST", "POST", "POST"].map((method) => [method, "Bearer secret"])
      )
    }))

  it.effect("receive a challenge, after which the request is retried once with new headers", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>(guarded("t1"))
      const challenges: Array<Credentials.Challenge> = []
      const { request, received } = yield* connected({ url: server.url, credentials: renewing(1, challenges) })
      request(1, "tools/list", modern())
      yield* until(() => received.answer(1) !== undefined)
      expect(challenges).toMatchObject([
        { status: 401, wwwAuthenticate: "Bearer scope=\"a\"", url: server.url, attempt: 1 }
      ])
      const [{ authorization, header }] = challenges as [Credentials.Challenge]
      expect([header("Content-Type"), header("none"), authorization]).toEqual(["text/plain", undefined, "Bearer t0"])
      expect(inspect(challenges, { depth: 9 })).not.toContain("t0")
    }))

  it.effect("are renewed once for many requests challenged at the same time, which are all retried", () =>
    Effect.gen(function*() {
      const waiting: Array<Exchange> = []
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (hit.headers.authorization === "Bearer t1") return hit.respondResult()
        waiting.push(hit)
        if (waiting.length === 8) waiting.forEach(guarded("t1"))
      })
      const challenges: Array<Credentials.Challenge> = []
      const { request, received } = yield* connected({ url: server.url, credentials: renewing(Infinity, challenges) })
      for (let id = 1; id <= 8; id++) request(id, "tools/list", modern())
      yield* until(() => [1, 2, 3, 4, 5, 6, 7, 8].every((id) => received.answer(id) !== undefined))
      expect([challenges.length, server.exchanges.length]).toEqual([1, 16])
    }))

  it.effect("maxChallenges: bounds the retries of one request to three", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>(guarded("never", 403))
      const challenges: Array<Credentials.Challenge> = []
      const { request, received } = yield* connected({ url: server.url, credentials: renewing(Infinity, challenges) })
      request(1, "tools/list", modern())
      yield* until(() => received.refusals.length === 1)
      expect([server.exchanges.length, challenges.map(({ attempt }) => attempt)]).toEqual([4, [1, 2, 3]])
      expect(received.error(1)).toMatchObject({ reason: { _tag: "MessageRejected" }, status: 403, undelivered: true })
    }))

  it.effect("that fail, or cannot be sent, fail the request without revealing their value", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      const bad: ReadonlyArray<Credentials.Credentials["Service"]["headers"]> = [
        () => Effect.fail("secret"),
        () => Effect.succeed({ authorization: "secret\n" }),
        () => {
          throw new Error("secret")
        }
      ]
      for (const headers of bad) {
        const credentials = { headers, refused: () => Effect.succeed(false) }
        const { request, received } = yield* connected({ url: server.url, credentials })
        request(1, "tools/list", modern())
        yield* until(() => received.refusals.length === 1)
        expect(received.error(1)).toMatchObject({ reason: { _tag: "MessageRejected" }, undelivered: true })
        expect(received.error(1)!.message).not.toContain("secret")
      }
      expect(server.exchanges).toEqual([])
    }))

  it.effect("can be provided as a service; 401 fails with Unauthorized", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>(guarded("right"))
      const layer = Layer.succeed(
        Credentials.Credentials,
        Credentials.bearer(Redacted.make("wrong"))
      )
      const error = yield* Effect.flip(
        Client.make(Http.transport({ url: server.url, shutdownTimeout: 0 }), { revisions: ["2026-07-28"] }).pipe(
          Effect.provide(layer)
        )
      )
      expect(error).toMatchObject({ _tag: "ClientError", reason: { _tag: "Unauthorized", status: 401 } })
      expect(server.exchanges[0]!.headers.authorization).toBe("Bearer wrong")
    }))

  it.effect("run the effect for a bearer token for each request, and once more after a 401", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>(guarded("t2"))
      let n = 0
      const token = Effect.sync(() => Redacted.make(`t${++n}`))
      const { request, received } = yield* connected({ url: server.url, credentials: Credentials.bearer(token) })
      request(1, "tools/list", modern())
      yield* until(() => received.answer(1) !== undefined)
      expect(n).toBe(2)
    }))

  it.effect("and session ids are not logged", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ cause, message }) => void lines.push(JSON.stringify([message, String(cause)])))
    return Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respond(500, "no"), {
          standaloneStream: (hit) => hit.respond(500)
        })
      )
      const credentials = Credentials.bearer(Redacted.make("secret"))
      const { notify, request, received } = yield* entered({ url: server.url, credentials })
      notify("notifications/roots/list_changed")
      request(1, "tools/list")
      yield* until(() => received.refusals.length === 1 && lines.length > 0)
      expect([...lines, received.error(1)!.message].join("\n")).not.toMatch(/secret|s-1/)
    }).pipe(
      Effect.provide(Logger.layer([logger])),
      Effect.provideService(References.MinimumLogLevel, "Trace"),
      Effect.scoped
    )
  })
})

describe("a redirect", () => {
  for (const status of [307, 308]) {
    it.effect(`with ${status} to the same origin is followed, with its method, body and headers`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>((hit) =>
          hit.path === "/there" ? hit.respondResult() : hit.respond(status, "", { location: "/there" })
        )
        const { request, received } = yield* connected({ url: server.url, headers: { "x-key": "k" } })
        request(1, "tools/list", modern())
        yield* until(() => received.answer(1) !== undefined)
        expect(server.exchanges.map(({ headers, method, path }) => [method, path, headers["x-key"]])).toEqual([
          ["POST", "/mcp", "k"],
          ["POST", "/there", "k"]
        ])
        expect(server.exchanges[1]!.json).toEqual(server.exchanges[0]!.json)
      }))
  }

  it.effect("is followed at most three times", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respond(307, "", { location: "/mcp" }))
      const { request, received } = yield* connected({ url: server.url })
      request(1, "tools/list", modern())
      yield* until(() => received.refusals.length === 1)
      expect([server.exchanges.length, received.error(1)]).toMatchObject([4, {
        reason: { _tag: "MessageRejected" },
        status: 307
      }])
    }))

  for (const maxRedirects of [0, 5]) {
    it.effect(`maxRedirects: is followed at most ${maxRedirects} times`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respond(308, "", { location: "/mcp" }))
        const { request, received } = yield* connected({ url: server.url }, { maxRedirects })
        request(1, "tools/list", modern())
        yield* until(() => received.refusals.length === 1)
        expect(server.exchanges.length).toBe(maxRedirects + 1)
        expect(received.error(1)).toMatchObject({
          reason: { _tag: "MessageRejected" },
          message: expect.stringContaining(`more than ${maxRedirects} times`)
        })
      }))
  }

  it.effect("is not followed to another origin, with another status, or without a valid Location", () =>
    Effect.gen(function*() {
      const other = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      const cases: ReadonlyArray<readonly [number, string | undefined]> = [
        [307, other.url.href],
        [308, other.url.href.replace("127.0.0.1", "localhost")],
        [301, "/there"],
        [302, "/there"],
        [303, "/there"],
        [304, undefined],
        [307, undefined],
        [307, "http://"]
      ]
      const server = yield* ScriptedHttpServer.make<Json>((hit, count) => {
        const [status, location] = cases[count - 1]!
        hit.respond(status, "", location === undefined ? {} : { location })
      })
      const { request, received } = yield* connected({ url: server.url, headers: { authorization: "secret" } })
      for (let n = 0; n < cases.length; n++) {
        request(n, "tools/list", modern())
        yield* until(() => received.refusals.length === n + 1)
        expect(received.error(n)).toMatchObject({
          reason: { _tag: "MessageRejected" },
          undelivered: true,
          status: cases[n]![0]
        })
      }
      expect([server.exchanges.length, other.exchanges.length]).toEqual([cases.length, 0])
    }))

  it.effect("is rejected where the browser does not reveal its target", () =>
    Effect.gen(function*() {
      const fetch = (() => Promise.resolve({ type: "opaqueredirect", status: 0 })) as unknown as typeof globalThis.fetch
      const { request, received } = yield* connected({ url: "https://example.com/mcp", fetch })
      request(1, "tools/list", modern())
      yield* until(() => received.refusals.length === 1)
      expect(received.error(1)).toMatchObject({
        reason: { _tag: "MessageRejected" },
        message: expect.stringContaining("redirects")
      })
    }))
})

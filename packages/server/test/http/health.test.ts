/** The option `health` of `NodeHttp`, and `drainDelay`. */
import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { logged } from "../kit.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const server = fixtures.server(fixtures.echo)
const echo = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
const probe = (path: string, method = "GET"): kit.Request => ({ method, path, headers: { host: "10.1.2.3:3000" } })

/** Succeeds when a condition holds, which another connection or fiber brings about. */
const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    while (!holds()) await new Promise((resolve) => setImmediate(resolve))
  })

/** A check that a test can complete, and how often it was run. */
const slowCheck = (uninterruptible = false) => {
  const pending: Array<(result: Effect.Effect<unknown, unknown>) => void> = []
  const counts = { started: 0, interrupted: 0 }
  const wait = Effect.callback<unknown, unknown>((resume) => {
    counts.started++
    pending.push(resume)
    return Effect.sync(() => {
      counts.interrupted++
      pending.splice(0)
    })
  })
  const check = uninterruptible ? Effect.uninterruptible(wait) : wait
  return { check, counts, settle: (result: Effect.Effect<unknown, unknown>) => pending.splice(0)[0]!(result) }
}

describe("health", () => {
  it.live("responds to GET and HEAD with a short body that is not stored", () =>
    Effect.scoped(Effect.gen(function*() {
      const listening = yield* kit.serve(server, { health: true })
      for (const path of ["/livez", "/readyz", "/readyz?verbose"]) {
        const reply = yield* kit.send(listening, probe(path))
        expect([reply.status, reply.text]).toEqual([200, "{\"status\":\"ok\"}"])
        expect(reply.headers).toMatchObject({ "content-type": "application/json", "cache-control": "no-store" })
        const head = yield* kit.send(listening, probe(path, "HEAD"))
        expect([head.status, head.text, head.headers["content-length"]]).toEqual([200, "", "15"])
      }
      const post = yield* kit.send(listening, probe("/livez", "POST"))
      expect([post.status, post.headers.allow]).toEqual([405, "GET, HEAD"])
    })))

  it.live("does not answer by default, or for other paths", () =>
    Effect.scoped(Effect.gen(function*() {
      const plain = yield* kit.serve(server)
      expect((yield* kit.send(plain, { method: "GET", path: "/livez" })).status).toBe(404)
      const renamed = yield* kit.serve(server, { health: { live: "/alive", ready: "/ready" } })
      expect((yield* kit.send(renamed, probe("/alive"))).status).toBe(200)
      expect((yield* kit.send(renamed, probe("/ready"))).status).toBe(200)
      expect((yield* kit.send(renamed, { method: "GET", path: "/livez" })).status).toBe(404)
    })))

  it.live("needs no credentials, no allowed Host and no Origin", () =>
    Effect.scoped(Effect.gen(function*() {
      const unauthorized = new Http.Refusal({ status: 401, message: "Unauthorized" })
      const listening = yield* kit.serve(server, {
        health: true,
        allowedHosts: ["mcp.example.com"],
        protection: { identify: () => Effect.fail(unauthorized) }
      })
      expect((yield* kit.send(listening, probe("/readyz"))).status).toBe(200)
      expect((yield* kit.send(listening, { ...echo, headers: { ...echo.headers, host: "10.1.2.3" } })).status).toBe(403)
      const allowed = { ...echo, headers: { ...echo.headers, host: "mcp.example.com" } }
      expect((yield* kit.send(listening, allowed)).status).toBe(401)
      // A health check of HTTP/1.0 has no Host.
      const raw = yield* kit.raw(listening)
      raw.write("GET /readyz HTTP/1.0\r\n\r\n")
      expect((yield* raw.closed).text).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*\{"status":"ok"\}$/)
    })))

  it.live("rejects a request that is not valid HTTP", () =>
    Effect.scoped(Effect.gen(function*() {
      const listening = yield* kit.serve(server, { health: true })
      const raw = yield* kit.raw(listening)
      raw.write("GET /readyz HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n")
      expect((yield* raw.closed).text).toMatch(/^HTTP\/1.1 400 /)
    })))

  it.live.each<[NodeHttp.Health, string]>([
    [{ live: "livez" }, "The path \"livez\" of the option health does not begin with a slash"],
    [{ ready: "/mcp" }, "The path /mcp of the option health is a path of the endpoint"]
  ])("fails the start with the path of %j", ([health, message]) =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Effect.scoped(Layer.build(
        NodeHttp.layer({ port: 0, health }).pipe(Layer.provide(server))
      )))
      expect(Exit.isFailure(exit) && String(exit.cause)).toContain(message)
    }))
})

describe("health.check", () => {
  it.live("responds with 503 if it fails, dies or returns false, and logs each change once", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        let result: Effect.Effect<unknown, unknown> = Effect.succeed([])
        const listening = yield* kit.serve(server, { health: { check: Effect.suspend(() => result) } })
        const ready = Effect.map(kit.send(listening, probe("/readyz")), ({ status, text }) => [status, text])
        expect(yield* ready).toEqual([200, "{\"status\":\"ok\"}"])
        const down = [503, "{\"status\":\"unavailable\"}"]
        for (
          const failing of [Effect.fail("secret.db is gone"), Effect.die("a defect"), Effect.succeed(false)]
        ) {
          result = failing
          expect(yield* ready).toEqual(down)
          expect(yield* ready).toEqual(down)
        }
        expect((yield* kit.send(listening, probe("/livez"))).status).toBe(200)
        result = Effect.void
        expect(yield* ready).toEqual([200, "{\"status\":\"ok\"}"])
        expect(lines).toEqual([
          expect.stringMatching(/^Health: the server is not ready: the check failed .*secret.db is gone/),
          expect.stringMatching(/^Health: the server is ready again/)
        ])
      }))
    ))

  it.effect("runs once for probes at the same time", () =>
    Effect.scoped(Effect.gen(function*() {
      const { check, counts, settle } = slowCheck()
      const listening = yield* kit.serve(server, { health: { check } })
      const raw = yield* kit.raw(listening)
      const request = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`
      raw.write(request("/livez") + request("/readyz").repeat(3) + "GET /readyz HTTP/1.0\r\n\r\n")
      // All requests have arrived in the packet of the first one.
      yield* raw.until("200 OK")
      expect(counts.started).toBe(1)
      settle(Effect.succeed(true))
      expect((yield* raw.closed).text.match(/HTTP\/1.1 200 OK/g)).toHaveLength(5)
      expect(counts.started).toBe(1)
    })))

  it.effect("is interrupted after 1 second, with 503", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const { check, counts, settle } = slowCheck()
        const listening = yield* kit.serve(server, { health: { check } })
        const waiting = yield* Effect.forkChild(kit.send(listening, probe("/readyz")))
        yield* until(() => counts.started === 1)
        yield* TestClock.adjust("999 millis")
        expect(waiting.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("1 millis")
        expect((yield* Fiber.join(waiting)).status).toBe(503)
        expect(counts.interrupted).toBe(1)
        expect(lines[0]).toContain("the check took longer than 1000 ms")
        const next = yield* Effect.forkChild(kit.send(listening, probe("/readyz")))
        yield* until(() => counts.started === 2)
        settle(Effect.void)
        expect((yield* Fiber.join(next)).status).toBe(200)
      }))
    ))

  it.effect("is not run again while it ignores its interruption", () =>
    Effect.scoped(Effect.gen(function*() {
      const { check, counts, settle } = slowCheck(true)
      const listening = yield* kit.serve(server, { health: { check } })
      const waiting = yield* Effect.forkChild(kit.send(listening, probe("/readyz")))
      yield* until(() => counts.started === 1)
      yield* TestClock.adjust("1 second")
      expect((yield* Fiber.join(waiting)).status).toBe(503)
      expect((yield* kit.send(listening, probe("/readyz"))).status).toBe(503)
      expect(counts.started).toBe(1)
      settle(Effect.void)
      const next = yield* Effect.forkChild(kit.send(listening, probe("/readyz")))
      yield* until(() => counts.started === 2)
      settle(Effect.void)
      expect((yield* Fiber.join(next)).status).toBe(200)
    })))

  it.live("has the services of the caller", () =>
    Effect.scoped(Effect.gen(function*() {
      class Database extends Context.Service<Database, { readonly isUp: boolean }>()("Database") {}
      const check = Effect.map(Database, ({ isUp }) => isUp)
      const listening = NodeHttp.layer({ port: 0, health: { check } }).pipe(
        Layer.provide([server, Layer.succeed(Database, { isUp: false })])
      )
      const context = yield* Layer.build(listening)
      expect((yield* kit.send(Context.get(context, NodeHttp.Server), probe("/readyz"))).status).toBe(503)
    })))

  it.live("is interrupted when the server ends", () =>
    Effect.gen(function*() {
      const { check, counts } = slowCheck()
      const scope = yield* Scope.make()
      const listening = yield* Scope.provide(kit.serve(server, { health: { check } }), scope)
      const waiting = yield* Effect.forkChild(kit.send(listening, probe("/readyz")))
      yield* until(() => counts.started === 1)
      yield* Scope.close(scope, Exit.void)
      expect(counts.interrupted).toBe(1)
      yield* Fiber.interrupt(waiting)
    }))
})

describe("drainDelay", () => {
  it.effect("turns ready to 503 and continues to answer calls, before the listener closes", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const options = { health: true, drainDelay: "10 seconds" } as const
        const listening = yield* Scope.provide(kit.serve(server, options), scope)
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        yield* until(() => lines.length > 0)
        expect(lines[0]).toContain("Shutting down (requests: 0, sessions: 0, drainDelay: 10000 ms)")
        const ready = yield* kit.send(listening, probe("/readyz"))
        expect([ready.status, ready.text]).toEqual([503, "{\"status\":\"draining\"}"])
        expect((yield* kit.send(listening, probe("/livez"))).status).toBe(200)
        const reply = yield* kit.send(listening, echo)
        expect([reply.json.result.content[0].text, reply.headers.connection]).toEqual(["hi", "close"])
        yield* TestClock.adjust("9999 millis")
        expect((yield* kit.send(listening, echo)).status).toBe(200)
        expect(closing.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(closing)
        expect(Exit.isFailure(yield* Effect.exit(kit.send(listening, echo)))).toBe(true)
      })
    ))

  it.effect("does not delay the end of a program that fails", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.provide(kit.serve(server, { drainDelay: "10 minutes" }), scope)
      yield* Scope.close(scope, Exit.fail("another layer"))
    }))
})

/** The option `routes` of `NodeHttp`: routes of Effect's router on the listener of an endpoint. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerRespondable from "effect/http/HttpServerRespondable"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { logged, settle } from "../kit.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const server = fixtures.server(fixtures.echo)
const echo = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
const get = (path: string, headers: kit.Request["headers"] = {}): kit.Request => ({ method: "GET", path, headers })

const metrics = HttpRouter.add("GET", "/metrics", HttpServerResponse.text("requests_total 1\n"))
const webhooks = HttpRouter.add(
  "POST",
  "/webhooks/:name",
  Effect.gen(function*() {
    const { name } = yield* HttpRouter.params
    const body = yield* Effect.flatMap(HttpServerRequest, ({ text }) => text)
    return HttpServerResponse.jsonUnsafe({ name, body })
  })
)

/** A route that waits for the test, and whether it was interrupted. */
const slow = () => {
  const go = Deferred.makeUnsafe<void>()
  const seen = { started: 0, interrupted: 0 }
  const handler = Effect.suspend(() => {
    seen.started++
    return Deferred.await(go)
  }).pipe(
    Effect.onInterrupt(() => Effect.sync(() => void seen.interrupted++)),
    Effect.as(HttpServerResponse.text("done"))
  )
  return { seen, go, layer: HttpRouter.add("GET", "/slow", handler) }
}

const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    while (!holds()) await new Promise((resolve) => setImmediate(resolve))
  })

describe("routes", () => {
  it.live("are served for the paths that are not of the endpoint", () =>
    Effect.scoped(Effect.gen(function*() {
      const listening = yield* kit.serve(server, {
        health: true,
        routes: NodeRoutes.make(Layer.merge(metrics, webhooks))
      })
      const scraped = yield* kit.send(listening, get("/metrics?a=b"))
      expect([scraped.status, scraped.text]).toEqual([200, "requests_total 1\n"])
      const head = yield* kit.send(listening, { method: "HEAD", path: "/metrics" })
      expect([head.status, head.text, head.headers["content-length"]]).toEqual([200, "", "17"])
      const posted = yield* kit.send(listening, { path: "/webhooks/git", body: "pushed" })
      expect(posted.json).toEqual({ name: "git", body: "pushed" })
      expect((yield* kit.send(listening, echo)).json.result.content[0].text).toBe("hi")
      expect((yield* kit.send(listening, get("/livez"))).status).toBe(200)
      const missing = yield* kit.send(listening, get("/other"))
      expect([missing.status, missing.json.error.message]).toEqual([404, "Not Found: there is no such path here"])
    })))

  it.live("do not receive the paths of pages, and are not protected", () =>
    Effect.scoped(Effect.gen(function*() {
      const everything = HttpRouter.add("*", "/*", HttpServerResponse.text("a route"))
      const listening = yield* kit.serve(server, {
        routes: NodeRoutes.make(everything),
        protection: {
          identify: () => Effect.fail(new Http.Refusal({ status: 401, message: "Unauthorized" })),
          pages: (request, answer) => {
            if (!request.path.startsWith("/pages/")) return false
            answer.reply(200, {}, "a page")
            return true
          },
          paths: ["/pages/*"]
        }
      })
      expect((yield* kit.send(listening, get("/pages/one"))).text).toBe("a page")
      expect((yield* kit.send(listening, get("/one"))).text).toBe("a route")
      expect((yield* kit.send(listening, echo)).status).toBe(401)
    })))

  it.live("have the services of the caller", () =>
    Effect.scoped(Effect.gen(function*() {
      class Greeting extends Context.Service<Greeting, string>()("Greeting") {}
      const greeting = HttpRouter.add("GET", "/greeting", Effect.map(Greeting, (text) => HttpServerResponse.text(text)))
      expectTypeOf(NodeRoutes.make(greeting)).toEqualTypeOf<NodeRoutes.Routes<Greeting>>()
      expectTypeOf(NodeRoutes.make(greeting)).not.toExtend<NonNullable<NodeHttp.Options["routes"]>>()
      expectTypeOf(NodeRoutes.make(metrics)).toEqualTypeOf<NodeRoutes.Routes>()
      const listening = NodeHttp.layer({ port: 0, routes: NodeRoutes.make(greeting) }).pipe(
        Layer.provide([server, Layer.succeed(Greeting, "hello")])
      )
      const context = yield* Layer.build(listening)
      expect((yield* kit.send(Context.get(context, NodeHttp.Server), get("/greeting"))).text).toBe("hello")
    })))

  it.live("send a stream as it is produced", () =>
    Effect.scoped(Effect.gen(function*() {
      const second = yield* Deferred.make<string>()
      const body = Stream.concat(Stream.make("one,"), Stream.fromEffect(Deferred.await(second))).pipe(Stream.encodeText)
      const listening = yield* kit.serve(server, {
        routes: NodeRoutes.make(HttpRouter.add("GET", "/stream", HttpServerResponse.stream(body)))
      })
      const raw = yield* kit.raw(listening)
      raw.write("GET /stream HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
      yield* raw.until("one,")
      yield* Deferred.succeed(second, "two")
      expect((yield* raw.closed).text).toContain("two")
    })))

  it.live("accept Host by name or address, and Origin, like the endpoint", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const listening = yield* kit.serve(server, {
          routes: NodeRoutes.make(metrics),
          allowedHosts: ["mcp.example.com"]
        })
        const status = (headers: kit.Request["headers"]) =>
          Effect.map(kit.send(listening, get("/metrics", headers)), ({ status }) => status)
        expect(yield* status({ host: "mcp.example.com" })).toBe(200)
        expect(yield* status({ host: "10.1.2.3:9090" })).toBe(200)
        expect(yield* status({ host: "[fd00::1]:9090" })).toBe(200)
        for (const _ of [1, 2]) expect(yield* status({ host: "evil.example" })).toBe(403)
        expect(yield* status({ host: "10.1.2.3.evil.example" })).toBe(403)
        expect(yield* status({ host: "10.1.2.3", origin: "https://evil.example" })).toBe(403)
        expect(lines.map((line) => line.slice(0, 66))).toEqual([
          "HTTP: refused a request for a route with the Host evil.example, wh",
          "HTTP: refused a request for a route with the Host 10.1.2.3.evil.ex",
          "HTTP: refused a request for a route with the Origin https://evil.e"
        ])
      }))
    ))

  it.live("refuse a body above maxMessageBytes, and one that is not valid HTTP", () =>
    Effect.scoped(Effect.gen(function*() {
      const listening = yield* kit.serve(server, { routes: NodeRoutes.make(webhooks), limits: { maxMessageBytes: 10 } })
      expect((yield* kit.send(listening, { path: "/webhooks/git", body: "x".repeat(10) })).status).toBe(200)
      expect((yield* kit.send(listening, { path: "/webhooks/git", body: "x".repeat(11) })).status).toBe(413)
      const raw = yield* kit.raw(listening)
      raw.write("POST /webhooks/git HTTP/1.0\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
      expect((yield* raw.closed).text).toMatch(/^HTTP\/1.1 400 /)
    })))

  it.live("answer Expect: 100-continue", () =>
    Effect.scoped(Effect.gen(function*() {
      const listening = yield* kit.serve(server, { routes: NodeRoutes.make(webhooks) })
      const raw = yield* kit.raw(listening)
      const head = "host: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close"
      raw.write(`POST /webhooks/git HTTP/1.1\r\n${head}\r\n\r\n`)
      yield* raw.until("100 Continue")
      raw.write("hi")
      expect((yield* raw.closed).text).toContain("{\"name\":\"git\",\"body\":\"hi\"}")
    })))

  it.live("respond with 503 at maxInFlightRequests", () =>
    Effect.scoped(Effect.gen(function*() {
      const { go, layer, seen } = slow()
      const listening = yield* kit.serve(server, { routes: NodeRoutes.make(layer), limits: { maxInFlightRequests: 1 } })
      const first = yield* Effect.forkChild(kit.send(listening, get("/slow")))
      yield* until(() => seen.started === 1)
      const second = yield* kit.send(listening, get("/slow"))
      expect([second.status, second.headers["retry-after"]]).toEqual([503, "1"])
      expect((yield* kit.send(listening, echo)).status).toBe(200)
      yield* Deferred.succeed(go, undefined)
      expect((yield* Fiber.join(first)).text).toBe("done")
      expect((yield* kit.send(listening, get("/slow"))).status).toBe(200)
    })))

  it.live("are interrupted when the client disconnects", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const { layer, seen } = slow()
        const listening = yield* kit.serve(server, { routes: NodeRoutes.make(layer) })
        const raw = yield* kit.raw(listening)
        raw.write("GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n")
        yield* until(() => seen.started === 1)
        raw.socket.destroy()
        yield* until(() => seen.interrupted === 1)
        yield* settle
        expect(lines).toEqual([])
      }))
    ))

  it.live("fail the start if they cannot be built", () =>
    Effect.gen(function*() {
      const broken = Layer.effectDiscard(Effect.fail("no database"))
      const exit = yield* Effect.exit(Effect.scoped(kit.serve(server, { routes: NodeRoutes.make(broken) })))
      expect(Exit.isFailure(exit) && String(exit.cause)).toContain("no database")
    }))
})

describe("a route that fails", () => {
  class Teapot {
    [HttpServerRespondable.symbol]() {
      return Effect.succeed(HttpServerResponse.text("short and stout", { status: 418 }))
    }
  }

  it.live("is answered with 500 and logged, and others are served", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const routes = Layer.mergeAll(
          HttpRouter.add("GET", "/fail", Effect.fail("a secret reason")),
          HttpRouter.add("GET", "/die", Effect.die("a secret defect")),
          HttpRouter.add("GET", "/throw", () => {
            throw new Error("a secret exception")
          }),
          HttpRouter.add("GET", "/teapot", Effect.fail(new Teapot())),
          metrics
        )
        const listening = yield* kit.serve(server, { routes: NodeRoutes.make(routes) })
        for (const [path, reason] of [["/fail", "reason"], ["/die", "defect"], ["/throw", "exception"]] as const) {
          const reply = yield* kit.send(listening, get(path))
          expect([reply.status, reply.text]).toEqual([500, ""])
          expect(lines.at(-1)).toMatch(new RegExp(`^HTTP: a route failed .*a secret ${reason}`))
        }
        const own = yield* kit.send(listening, get("/teapot"))
        expect([own.status, own.text, lines.length]).toEqual([418, "short and stout", 3])
        expect((yield* kit.send(listening, get("/metrics"))).status).toBe(200)
      }))
    ))

  it.live("closes the connection and is logged if its stream fails", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const body = Stream.concat(Stream.make("one,"), Stream.fail("a broken source")).pipe(Stream.encodeText)
        const routes = Layer.merge(HttpRouter.add("GET", "/stream", HttpServerResponse.stream(body)), metrics)
        const listening = yield* kit.serve(server, { routes: NodeRoutes.make(routes) })
        const raw = yield* kit.raw(listening)
        raw.write("GET /stream HTTP/1.1\r\nhost: localhost\r\n\r\n")
        const { text } = yield* raw.closed
        // Without the last chunk, the client finds out that the body is not complete.
        expect(text).not.toContain("\r\n0\r\n")
        yield* until(() => lines.length > 0)
        expect(lines).toEqual([expect.stringMatching(/^HTTP: the response of a route failed [^]*a broken source/)])
        expect((yield* kit.send(listening, get("/metrics"))).status).toBe(200)
      }))
    ))
})

describe("the shutdown of routes", () => {
  const closing = (options: NodeHttp.Options) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const listening = yield* Scope.provide(kit.serve(server, options), scope)
      return { listening, close: Effect.forkChild(Scope.close(scope, Exit.void)) }
    })

  it.effect("waits for requests, and releases the resources of the layer after them", () =>
    Effect.gen(function*() {
      const { go, layer, seen } = slow()
      const released: Array<string> = []
      const resource = Layer.effectDiscard(
        Effect.addFinalizer(() => Effect.sync(() => void released.push("the resource")))
      )
      const { close, listening } = yield* closing({ routes: NodeRoutes.make(Layer.merge(layer, resource)) })
      const waiting = yield* Effect.forkChild(kit.send(listening, get("/slow")))
      yield* until(() => seen.started === 1)
      const closed = yield* close
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      expect([closed.pollUnsafe(), released]).toEqual([undefined, []])
      yield* Deferred.succeed(go, undefined)
      const reply = yield* Fiber.join(waiting)
      expect([reply.text, reply.headers.connection]).toEqual(["done", "close"])
      yield* Fiber.join(closed)
      expect(released).toEqual(["the resource"])
    }))

  it.effect("interrupts requests after shutdownTimeout, with 503", () =>
    Effect.gen(function*() {
      const { layer, seen } = slow()
      const { close, listening } = yield* closing({ routes: NodeRoutes.make(layer), shutdownTimeout: "5 seconds" })
      const reply = yield* Effect.forkChild(kit.send(listening, get("/slow")))
      yield* until(() => seen.started === 1)
      const closed = yield* close
      // The time begins when the listener has closed, which takes a few turns of the event loop.
      while (reply.pollUnsafe() === undefined) {
        yield* TestClock.adjust("100 millis")
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        if (seen.interrupted === 0) expect(reply.pollUnsafe()).toBeUndefined()
      }
      expect(yield* Clock.currentTimeMillis).toBeGreaterThanOrEqual(5_000)
      expect((yield* Fiber.join(reply)).status).toBe(503)
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(closed)
      expect(seen.interrupted).toBe(1)
    }))

  it.effect("answers no further request of a connection after the answer that closes it", () =>
    Effect.scoped(Effect.gen(function*() {
      const { go, layer, seen } = slow()
      const { close, listening } = yield* closing({ routes: NodeRoutes.make(layer) })
      const raw = yield* kit.raw(listening)
      const request = "GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n"
      raw.write(request)
      yield* until(() => seen.started === 1)
      const closed = yield* close
      const isRefused = Effect.map(Effect.exit(kit.send(listening, get("/metrics"))), Exit.isFailure)
      while (!(yield* isRefused)) yield* Effect.yieldNow
      raw.write(request)
      yield* Deferred.succeed(go, undefined)
      const { text } = yield* raw.closed
      expect(text).toMatch(/^HTTP\/1.1 200 OK[^]*connection: close[^]*done/i)
      expect(text.slice(text.search(/connection: close/i))).not.toContain("HTTP/1.1")
      yield* Fiber.join(closed)
    })))
})

/**
 * The endpoint as a route of an application on Effect's `HttpRouter`: beside its routes, behind its middleware, in its
 * scope.
 */
import { describe, expect, it } from "@effect/vitest"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { Bounds, fixedBounds } from "../../src/internal/base/fixedBounds.ts"
import { application, type Server } from "./adapters.ts"
import * as kit from "./kit.ts"

class Tenant extends Context.Service<Tenant, string>()("test/Tenant") {}

const found = Tool.make("found")
const flood = Tool.make("flood")
const stuck = Tool.make("stuck")

const make = Effect.gen(function*() {
  const interrupted = yield* Deferred.make<void>()
  const started = yield* Deferred.make<void>()
  const report = (n: number) => Progress.report({ progress: n, message: "x".repeat(1000) })
  const floods = Effect.suspend(() => {
    let n = 0
    return Effect.forever(Effect.suspend(() => report(++n)))
  })
  const server: Server = McpServer.layer(
    { name: "router", version: "1" },
    Tool.layer(found, () =>
      Effect.contextWith((context: Context.Context<never>) =>
        Effect.succeed(JSON.stringify({
          tenant: Option.getOrNull(Context.getOption(context, Tenant)),
          path: Option.getOrNull(Option.map(Context.getOption(context, HttpServerRequest), ({ url }) => url)),
          scope: Option.isSome(Context.getOption(context, Scope.Scope))
        }))
      )),
    Tool.layer(flood, () => Effect.onInterrupt(floods, () => Deferred.succeed(interrupted, undefined))),
    Tool.layer(stuck, () =>
      Effect.andThen(report(1), Deferred.succeed(started, undefined)).pipe(
        Effect.andThen(Effect.uninterruptible(Deferred.await(interrupted)))
      ))
  )
  return { server, interrupted, started }
})

const call = (name: string, progress = false) =>
  kit.modern("tools/call", { name, arguments: {} }, progress ? { _meta: { progressToken: 1 } } : {})

const json = (message: kit.Json) => JSON.parse(message.result.content[0].text)

/** Every request belongs to the tenant in its header. */
const tenancy = HttpRouter.middleware<{ provides: Tenant }>()(Effect.succeed((route) =>
  Effect.flatMap(
    HttpServerRequest,
    ({ headers }) => Effect.provideService(route, Tenant, headers["x-tenant"] ?? "none")
  )
))

const mcp = (server: Server, options?: HttpRoutes.Options) => HttpRoutes.layer(options).pipe(Layer.provide(server))

describe("the route", () => {
  it.live("runs within an application, behind the middleware that is provided to it", () =>
    Effect.gen(function*() {
      const { server } = yield* make
      const health = HttpRouter.add("GET", "/health", HttpServerResponse.text("well"))
      const tools = mcp(server, { path: "/ai/mcp" }).pipe(Layer.provide(tenancy.layer))
      const port = yield* application(Layer.merge(health, tools))
      expect((yield* kit.send(port, { method: "GET", path: "/health" })).text).toBe("well")
      expect((yield* kit.send(port, { ...call("found"), path: "/mcp" })).status).toBe(404)
      const reply = yield* kit.send(port, {
        ...call("found"),
        path: "/ai/mcp?q=1",
        headers: { ...call("found").headers, "x-tenant": "acme" }
      })
      expect(json(reply.json)).toEqual({ tenant: "acme", path: "/ai/mcp?q=1", scope: false })
      expect((yield* kit.send(port, { method: "PUT", path: "/ai/mcp" })).json.error.code).toBe(-32600)
    }))

  it.live("2025-11-25 · provides its handlers with the services of the request that carried their message", () =>
    Effect.gen(function*() {
      const { server } = yield* make
      const port = yield* application(mcp(server).pipe(Layer.provide(tenancy.layer)))
      const opened = yield* kit.post(port, {
        jsonrpc: "2.0",
        id: 0,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "kit", version: "1" } }
      }, { "x-tenant": "first" })
      const own = {
        "mcp-session-id": opened.headers["mcp-session-id"] as string,
        "mcp-protocol-version": "2025-11-25"
      }
      for (const tenant of ["second", "third"]) {
        const message = { jsonrpc: "2.0", id: tenant, method: "tools/call", params: { name: "found" } }
        const reply = yield* kit.post(port, message, { ...own, "x-tenant": tenant })
        expect(json(reply.json)).toEqual({ tenant, path: "/mcp", scope: false })
      }
    }))

  it.live("applies its own limit to bodies", () =>
    Effect.gen(function*() {
      const { server } = yield* make
      const port = yield* Effect.provideService(application(mcp(server)), MaxBodySize, ByteSize.bytes(10))
      expect((yield* kit.send(port, call("found"))).status).toBe(200)
    }))

  it.live("works in a router that is a web handler", () =>
    Effect.gen(function*() {
      const { interrupted, server } = yield* make
      const { dispose, handler } = HttpRouter.toWebHandler(mcp(server), { disableLogger: true })
      const ask = (sent: kit.Request, url = "http://localhost/mcp", host: Record<string, string> = {}) =>
        Effect.promise(() =>
          handler(
            new Request(url, {
              method: "POST",
              headers: { ...sent.headers, ...host } as Record<string, string>,
              body: JSON.stringify(sent.body)
            })
          )
        )
      // The host of the URL counts as in `WebHttp`.
      expect((yield* ask(call("found"), "http://localhost/mcp", { host: "evil.example" })).status).toBe(403)
      expect((yield* ask(call("found"), "http://evil.example/mcp", { host: "localhost" })).status).toBe(403)
      expect((yield* ask(call("found"), "http://evil.example/mcp")).status).toBe(403)
      const reply = yield* ask(call("found"))
      expect(json(yield* Effect.promise(() => reply.json()))).toMatchObject({ scope: false })
      const stream = yield* ask(call("flood", true))
      expect(stream.headers.get("content-type")).toBe("text/event-stream")
      const reader = stream.body!.getReader()
      let text = ""
      while (!text.includes("\"progress\":50,")) {
        const { value } = yield* Effect.promise(() => reader.read())
        text += new TextDecoder().decode(value)
      }
      yield* Effect.promise(() => reader.cancel())
      yield* Deferred.await(interrupted)
      yield* Effect.promise(dispose)
    }))

  it.live("logs nothing about a client that disconnects", () =>
    Effect.gen(function*() {
      const { interrupted, server } = yield* make
      const log: Array<unknown> = []
      const port = yield* Effect.provide(
        application(mcp(server)),
        Logger.layer([Logger.make(({ message }) => void log.push(message))])
      )
      const stream = yield* kit.open(port, call("flood", true))
      yield* stream.message
      stream.leave()
      yield* Deferred.await(interrupted)
      expect((yield* kit.send(port, call("found"))).status).toBe(200)
      expect(log).toEqual([])
    }))
})

describe("shutdown of the application", () => {
  it.live("aborts the responses that are still open after shutdownTimeout, and not before", () =>
    Effect.gen(function*() {
      const { interrupted, server, started } = yield* make
      const outer = yield* Effect.scope
      const log: Array<unknown> = []
      const quiet = Logger.layer([Logger.make(({ message }) => void log.push(message))])
      const stream = yield* Effect.scoped(Effect.gen(function*() {
        const port = yield* Effect.provide(
          application(mcp(server, { shutdownTimeout: 10 })),
          Layer.merge(quiet, Layer.succeed(Bounds, { ...fixedBounds, interruptTimeout: 10 }))
        )
        const stream = yield* Effect.provideService(kit.open(port, call("stuck", true)), Scope.Scope, outer)
        yield* Deferred.await(started)
        return stream
      }))
      expect(yield* stream.ended).toBe("cut")
      expect(log.map(String)).toEqual([
        expect.stringContaining("Requests interrupted (1): tools/call \"stuck\""),
        expect.stringContaining("did not stop after their interruption")
      ])
      yield* Deferred.succeed(interrupted, undefined)
    }))

  it.live("without HttpRoutes.serve waits for open streams until the HTTP server's timeout, and aborts them", () =>
    Effect.gen(function*() {
      const { server } = yield* make
      const outer = yield* Effect.scope
      const end = (serve: typeof HttpRoutes.serve) =>
        Effect.scoped(Effect.gen(function*() {
          const port = yield* application(mcp(server), serve, { gracefulShutdownTimeout: 100 })
          const listening = kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
          const stream = yield* Effect.provideService(kit.open(port, listening), Scope.Scope, outer)
          yield* stream.message
          return stream
        }))
      expect(yield* (yield* end(HttpRouter.serve)).ended).toBe("cut")
      expect(yield* (yield* end(HttpRoutes.serve)).ended).toBe("end")
    }))
})

/**
 * The web-standard adapter without a network: how it handles a `Request`, its signal and the reader of its `Response`.
 */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as Principal from "@skein/server/Principal"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as esbuild from "esbuild"
import { Hono } from "hono"
import { fileURLToPath } from "node:url"
import * as vm from "node:vm"
import type { Server } from "./adapters.ts"
import * as kit from "./kit.ts"

const url = "http://localhost/mcp?x=1#y"

const requestOf = (sent: kit.Request, init: RequestInit = {}): Request =>
  new Request(url, {
    method: sent.method ?? "POST",
    headers: sent.headers as Record<string, string>,
    body: sent.body === undefined ? null : JSON.stringify(sent.body),
    ...init
  })

const call = (name: string, args: kit.Json = {}, _meta: kit.Json = {}) =>
  kit.modern("tools/call", { name, arguments: args }, { headers: { host: "localhost" }, _meta })

const progress = { progressToken: 1 }

const textOf = async (response: Response): Promise<string> =>
  ((await response.json()) as kit.Json).result.content[0].text

class Tenant extends Context.Service<Tenant, string>()("test/Tenant") {}

const whoami = Tool.make("whoami")
const wait = Tool.make("wait")
const flood = Tool.make("flood")

const make = Effect.gen(function*() {
  const waiting = yield* Deferred.make<void>()
  const interrupted = yield* Deferred.make<void>()
  const reports = { count: 0 }
  const report = Effect.suspend(() => Progress.report({ progress: ++reports.count, message: "x".repeat(1000) }))
  const server: Server = McpServer.layer(
    { name: "web", version: "1" },
    Tool.layer(whoami, () =>
      Effect.gen(function*() {
        const principal = Option.map(yield* Principal.current, ({ id }) => id)
        const tenant = yield* Effect.serviceOption(Tenant)
        return `${Option.getOrElse(principal, () => "nobody")} of ${Option.getOrElse(tenant, () => "nowhere")}`
      })),
    Tool.layer(wait, () =>
      Effect.andThen(Deferred.succeed(waiting, undefined), Effect.never).pipe(
        Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
      )),
    Tool.layer(flood, () => Effect.onInterrupt(Effect.forever(report), () => Deferred.succeed(interrupted, undefined)))
  )
  return { server, waiting, interrupted, reports }
})

const handlerOf = (server: Server, options: WebHttp.Options = {}) =>
  Effect.flatMap(
    Effect.orDie(Layer.build(server)),
    (context) => Effect.provideContext(WebHttp.handler({ allowedHosts: "any", ...options }), context)
  )

describe("a request", () => {
  it.live("serves the exact path, regardless of the query, and responds 404 on any other path", () =>
    Effect.gen(function*() {
      const handler = yield* handlerOf((yield* make).server)
      const ask = (to: string) => Effect.promise(() => handler(new Request(to, { method: "PUT" })))
      expect((yield* ask("https://a.example:8443/mcp")).status).toBe(405)
      expect((yield* ask("http://a.example/mcp?a/b=c")).status).toBe(405)
      for (const other of ["/", "/mcp/", "/other?/mcp", "?/mcp", "#/mcp"]) {
        const reply = yield* ask(`http://a.example${other}`)
        expect([other, reply.status]).toEqual([other, 404])
        expect(((yield* Effect.promise(() => reply.json())) as kit.Json).error.code).toBe(-32600)
      }
    }))

  it.live("checks the Host header, or the host of the URL without that header", () =>
    Effect.gen(function*() {
      const handler = yield* handlerOf((yield* make).server, { allowedHosts: ["mcp.example.com"] })
      const ask = (to: string, headers: Record<string, string> = {}) =>
        Effect.map(Effect.promise(() => handler(new Request(to, { method: "PUT", headers }))), ({ status }) => status)
      expect(yield* ask("https://mcp.example.com/mcp")).toBe(405)
      expect(yield* ask("https://mcp.example.com:8443/mcp")).toBe(405)
      expect(yield* ask("https://evil.example/mcp")).toBe(403)
      expect(yield* ask("https://evil.example/mcp.example.com/mcp")).toBe(403)
      expect(yield* ask("https://mcp.example.com/mcp", { host: "evil.example" })).toBe(403)
    }))

  it.live("checks the host of the URL beside the Host header", () =>
    Effect.gen(function*() {
      const options = { allowedHosts: ["mcp.example.com", "internal:3000"] }
      const handler = yield* handlerOf((yield* make).server, options)
      const ask = (request: Request) =>
        Effect.gen(function*() {
          const reply = yield* Effect.promise(() => handler(request))
          return [reply.status, ((yield* Effect.promise(() => reply.json())) as kit.Json).error.message as string]
        })
      const to = (url: string) => new Request(url, { method: "PUT", headers: { host: "mcp.example.com" } })
      const notAllowed = [405, "Method Not Allowed"]
      expect(yield* ask(to("http://mcp.example.com/mcp"))).toEqual(notAllowed)
      expect(yield* ask(to("http://internal:3000/mcp"))).toEqual(notAllowed)
      for (
        const url of ["http://evil.example/mcp", "http://evil.example/mcp#mcp.example.com", "https://internal.evil/"]
      ) {
        expect(yield* ask(to(url))).toEqual([
          403,
          "Forbidden: the host of this URL is not among the allowedHosts of the server"
        ])
      }
      // Next.js writes the host that it listens on into the URL.
      const next = Object.assign(to("http://0.0.0.0:3000/mcp"), { nextUrl: {} })
      expect(yield* ask(next)).toEqual(notAllowed)
    }))

  it.live("takes the principal and the services of handlers from the application", () =>
    Effect.gen(function*() {
      const handler = yield* handlerOf((yield* make).server)
      const given = { principal: { id: "ada" }, context: Context.make(Tenant, "acme") }
      const known = yield* Effect.promise(() => handler(requestOf(call("whoami")), given))
      expect(yield* Effect.promise(() => textOf(known))).toBe("ada of acme")
      const unknown = yield* Effect.promise(() => handler(requestOf(call("whoami"))))
      expect(yield* Effect.promise(() => textOf(unknown))).toBe("nobody of nowhere")
    }))

  it.live("takes the principal from an effect, and responds 500 if the effect fails", () =>
    Effect.gen(function*() {
      const principal = ({ headers }: Request) => {
        const user = headers.get("x-user")
        if (user === "eve") throw new Error("no")
        return user === null ? Effect.fail("who?") : Effect.as(Effect.promise(() => Promise.resolve()), { id: user })
      }
      const log: Array<unknown> = []
      const quiet = Logger.layer([Logger.make(({ message }) => void log.push(message))])
      const handler = yield* Effect.provide(handlerOf((yield* make).server, { principal }), quiet)
      const ask = (user: string | undefined) => {
        const sent = call("whoami")
        return Effect.promise(() =>
          handler(requestOf({ ...sent, headers: { ...sent.headers, ...(user && { "x-user": user }) } }))
        )
      }
      const found = yield* ask("ada")
      expect(yield* Effect.promise(() => textOf(found))).toBe("ada of nowhere")
      for (const user of ["eve", undefined]) {
        const failed = yield* ask(user)
        expect(failed.status).toBe(500)
        expect(((yield* Effect.promise(() => failed.json())) as kit.Json).error.code).toBe(-32603)
      }
      expect(log.length).toBe(2)
    }))

  it.live("uses the body that is passed along if it has been read, and is refused without one", () =>
    Effect.gen(function*() {
      const log: Array<unknown> = []
      const quiet = Logger.layer([Logger.make(({ message }) => void log.push(message))])
      const handler = yield* Effect.provide(
        handlerOf((yield* make).server, { limits: { maxMessageBytes: 1000 } }),
        quiet
      )
      const read = () => {
        const request = requestOf(call("whoami"))
        return Effect.map(Effect.promise(() => request.text()), (text) => [request, text] as const)
      }
      const bytes = (text: string) => new TextEncoder().encode(text)
      for (const as of [JSON.parse, String, bytes, (text: string) => bytes(text).buffer]) {
        const [request, text] = yield* read()
        const reply = yield* Effect.promise(() => handler(request, { body: as(text) }))
        expect(yield* Effect.promise(() => textOf(reply))).toBe("nobody of nowhere")
      }
      const [request, text] = yield* read()
      const large = yield* Effect.promise(() => handler(request, { body: text + " ".repeat(1000) }))
      expect(large.status).toBe(413)
      const missed = yield* Effect.promise(() => handler(request))
      expect(missed.status).toBe(500)
      expect(String(log[0])).toContain("reference")
    }))

  it.live("interrupts a request when its signal aborts before the response begins", () =>
    Effect.gen(function*() {
      const { interrupted, server, waiting } = yield* make
      const handler = yield* handlerOf(server)
      const left = new AbortController()
      const pending = handler(requestOf(call("wait"), { signal: left.signal }))
      yield* Deferred.await(waiting)
      left.abort()
      yield* Deferred.await(interrupted)
      expect((yield* Effect.promise(() => pending)).status).toBe(499)
    }))

  it.live("interrupts a request with a signal that was aborted beforehand", () =>
    Effect.gen(function*() {
      const { interrupted, server } = yield* make
      const handler = yield* handlerOf(server)
      const sent = call("wait")
      const { body } = sent
      // The body is already read, as on platforms that read it first.
      const request = requestOf({ ...sent, body: undefined }, { signal: AbortSignal.abort() })
      yield* Effect.promise(() => handler(request, { body }))
      yield* Deferred.await(interrupted)
    }))

  it.live("responds 499 if the body breaks off", () =>
    Effect.gen(function*() {
      const handler = yield* handlerOf((yield* make).server)
      const body = new ReadableStream({
        start: (controller) => {
          controller.enqueue(new TextEncoder().encode("{"))
        },
        pull: (controller) => controller.error(new Error("reset"))
      })
      const broken = yield* Effect.promise(() =>
        handler(requestOf(call("whoami"), { body, duplex: "half" } as RequestInit))
      )
      expect([broken.status, broken.body]).toEqual([499, null])
    }))

  it.live("reads a body only up to the limit", () =>
    Effect.gen(function*() {
      const handler = yield* handlerOf((yield* make).server, { limits: { maxMessageBytes: 10_000 } })
      const log = { chunks: 0, cancelled: false }
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          log.chunks++
          controller.enqueue(new Uint8Array(1000))
        },
        cancel: () => {
          log.cancelled = true
        }
      })
      const sent = call("whoami")
      const large = yield* Effect.promise(() => handler(requestOf(sent, { body, duplex: "half" } as RequestInit)))
      expect(large.status).toBe(413)
      expect(log).toEqual({ chunks: 11, cancelled: true })
    }))
})

describe("a response", () => {
  const reader = (response: Response) => response.body!.getReader()

  it.live("slows the handler to the speed of the stream's reader", () =>
    Effect.gen(function*() {
      const { interrupted, reports, server } = yield* make
      const handler = yield* handlerOf(server)
      const response = yield* Effect.promise(() => handler(requestOf(call("flood", {}, progress))))
      expect(response.headers.get("content-type")).toBe("text/event-stream")
      const chunks = reader(response)
      for (let read = 1; read <= 100; read++) {
        // Enough time for the handler to send more than it should.
        for (let turn = 0; read % 20 === 1 && turn < 100; turn++) yield* Effect.yieldNow
        const { value } = yield* Effect.promise(() => chunks.read())
        expect(new TextDecoder().decode(value)).toContain(`"progress":${read},`)
        // 16 KiB in messages of one kilobyte, and the message that is being sent.
        expect(reports.count - read).toBeLessThan(20)
      }
      expect(reports.count).toBeGreaterThanOrEqual(100)
      yield* Effect.promise(() => chunks.cancel())
      yield* Deferred.await(interrupted)
    }))

  it.live("interrupts its suspended handler when the reader cancels or the signal aborts", () =>
    Effect.gen(function*() {
      for (const how of ["cancel", "abort"]) {
        const { interrupted, server } = yield* make
        const handler = yield* handlerOf(server)
        const left = new AbortController()
        const sent = requestOf(call("flood", {}, progress), { signal: left.signal })
        const response = yield* Effect.promise(() => handler(sent))
        if (how === "cancel") yield* Effect.promise(() => response.body!.cancel())
        else left.abort()
        yield* Deferred.await(interrupted)
      }
    }))

  it.live("no longer observes the signal once it is complete", () =>
    Effect.gen(function*() {
      const handler = yield* handlerOf((yield* make).server, { alwaysStream: true })
      const left = new AbortController()
      const listeners = new Set<unknown>()
      const { signal } = left
      const { addEventListener, removeEventListener } = signal
      const request = requestOf(call("whoami"))
      Object.defineProperty(request, "signal", {
        value: Object.assign(signal, {
          addEventListener: (...args: Parameters<typeof addEventListener>) => {
            listeners.add(args[1])
            addEventListener.apply(signal, args)
          },
          removeEventListener: (...args: Parameters<typeof removeEventListener>) => {
            listeners.delete(args[1])
            removeEventListener.apply(signal, args)
          }
        })
      })
      const response = yield* Effect.promise(() => handler(request))
      expect(yield* Effect.promise(() => response.text())).toContain("nobody")
      expect(listeners.size).toBe(0)
    }))
})

describe("mount", () => {
  const builds = { count: 0 }
  const server = (fails: () => boolean) => {
    const counted = Layer.effectDiscard(Effect.suspend(() => {
      builds.count++
      return fails() ? Effect.fail("no database") : Effect.void
    }))
    return Layer.provide(
      McpServer.layer({ name: "mounted", version: "1" }, Tool.layer(whoami, () => Effect.succeed("me"))),
      counted
    )
  }

  it("builds the server once, at the first request, and closes it", async () => {
    builds.count = 0
    const ended: Array<string> = []
    const closing = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => void ended.push("server"))))
    const { close, handler } = WebHttp.mount(Layer.provide(server(() => false), closing), { allowedHosts: "any" })
    expect(builds.count).toBe(0)
    const replies = await Promise.all([1, 2, 3].map(() => handler(requestOf(call("whoami")))))
    expect(await Promise.all(replies.map(textOf))).toEqual(["me", "me", "me"])
    expect(builds.count).toBe(1)
    await Promise.all([close(), close()])
    expect(ended).toEqual(["server"])
    expect((await handler(requestOf(call("whoami")))).status).toBe(503)
    expect(builds.count).toBe(1)
  })

  it("fails a request with the server's error, and tries again with the next request", async () => {
    let fails = true
    const { close, handler } = WebHttp.mount(server(() => fails), { allowedHosts: "any" })
    await expect(handler(requestOf(call("whoami")))).rejects.toBe("no database")
    fails = false
    expect(await textOf(await handler(requestOf(call("whoami"))))).toBe("me")
    await close()
  })

  it("responds with 503 if it is closed before it is built", async () => {
    builds.count = 0
    const { close, handler } = WebHttp.mount(server(() => false))
    await close()
    expect((await handler(requestOf(call("whoami")))).status).toBe(503)
    expect(builds.count).toBe(0)
  })

  it("serves a Hono route for all verbs", async () => {
    const { close, handler } = WebHttp.mount(server(() => false), { allowedHosts: "any" })
    const app = new Hono().all("/mcp", (c) => handler(c.req.raw))
    expect(await textOf(await app.request(requestOf(call("whoami"))))).toBe("me")
    expect((await app.request("/mcp", { method: "PUT" })).status).toBe(405)
    await close()
  })
})

describe("platforms", () => {
  it("runs with web standards only, and without eval", async () => {
    const program = `
      import * as Cors from "@skein/server/Cors"
      import * as McpServer from "@skein/server/McpServer"
      import * as Tool from "@skein/server/Tool"
      import * as WebHttp from "@skein/server/WebHttp"
      import * as Effect from "effect/Effect"
      import * as Schema from "effect/Schema"
      const greet = Tool.make("greet", { input: { name: Schema.String } })
      const server = McpServer.layer(
        { name: "neutral", version: "1" },
        Tool.layer(greet, ({ name }) => Effect.succeed("Hello " + name))
      )
      export const { handler, close } = WebHttp.mount(server, { cors: Cors.make() })`
    const built = await esbuild.build({
      stdin: { contents: program, loader: "ts", resolveDir: fileURLToPath(new URL("..", import.meta.url)) },
      bundle: true,
      write: false,
      metafile: true,
      platform: "neutral",
      format: "iife",
      globalName: "worker",
      conditions: ["@skein/source"],
      logLevel: "silent"
    })
    expect(Object.values(built.metafile.outputs).flatMap(({ imports }) => imports)).toEqual([])
    const globals = {
      AbortController,
      Headers,
      ReadableStream,
      Request,
      Response,
      TextDecoder,
      TextEncoder,
      URL,
      btoa,
      clearInterval,
      clearTimeout,
      crypto,
      performance,
      queueMicrotask,
      setInterval,
      setTimeout
    }
    const context = vm.createContext({ ...globals }, { codeGeneration: { strings: false, wasm: false } })
    vm.runInContext(`${built.outputFiles[0]!.text};globalThis.worker = worker`, context)
    const { worker } = context as { readonly worker: WebHttp.Mounted }
    const sent = call("greet", { name: "Ada" })
    expect(await textOf(await worker.handler(requestOf(sent)))).toBe("Hello Ada")
    await worker.close()
  })
})

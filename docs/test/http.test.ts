/** The programs of `http.md` and of the pages for operators. Each program that is a process runs as one here, on a free port. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Cors from "@skein/server/Cors"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as WebHttp from "@skein/server/WebHttp"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as Scope from "effect/Scope"
import { readFileSync } from "node:fs"
import { createServer, type IncomingMessage } from "node:http"
import { join } from "node:path"
import { logVariables } from "../../packages/server/src/internal/base/environment.ts"
import { rows as variables } from "../../packages/server/src/internal/http/endpoint/variables.ts"
import { Hello } from "../programs/hello.ts"
import { Listening as Configured } from "../programs/httpConfig.ts"
import { Reports } from "../programs/polling.ts"
import { tracedTo } from "../programs/telemetry.ts"
import { call, classic, type Headers, initialize, modern, textOf } from "./process.ts"
import { type Running, start } from "./runtime.ts"

const hello = call("greet", { name: "Ada" })

const running = new Map<string, Promise<Running>>()
const programs = ["smallest", "mounted", "fastify", "router", "deployed", "serverCard"] as const

beforeAll(async () => {
  for (const name of programs) running.set(name, start(name))
  await Promise.all(running.values())
  // Several processes start at once, on machines under load too.
}, 120_000)
afterAll(async () => {
  for (const one of running.values()) (await one).child.kill("SIGKILL")
})

const at = async (name: typeof programs[number]): Promise<string> => (await running.get(name)!).url

describe.each(["smallest", "mounted", "fastify", "router"] as const)("programs/%s.ts", (name) => {
  it("serves sessions and stateless requests on one path, and rejects other origins", async () => {
    const url = await at(name)
    expect(await textOf(await fetch(url, hello))).toBe("Hello, Ada!")
    const opened = await fetch(url, initialize())
    const session = opened.headers.get("mcp-session-id")!
    await opened.arrayBuffer()
    expect((await fetch(url, classic({ method: "notifications/initialized" }, { "mcp-session-id": session }))).status)
      .toBe(202)
    const greet = { id: 1, method: "tools/call", params: { name: "greet", arguments: { name: "Ada" } } }
    expect(await textOf(await fetch(url, classic(greet, { "mcp-session-id": session })))).toBe("Hello, Ada!")
    expect((await fetch(url, { method: "DELETE", headers: { "mcp-session-id": session } })).status).toBe(204)
    expect((await fetch(url, classic(greet, { "mcp-session-id": session }))).status).toBe(404)
    const page = await fetch(url, call("greet", { name: "Ada" }, { origin: "https://evil.example" }))
    expect([page.status, await textOf(page)]).toEqual([403, expect.stringContaining("-32600")])
    const simple = await fetch(url, { method: "POST", headers: { "content-type": "text/plain" }, body: "{}" })
    expect(simple.status).toBe(415)
  })
})

describe("other routes", () => {
  it.each(["mounted", "router"] as const)("programs/%s.ts serves them", async (name) => {
    expect(await (await fetch((await at(name)).replace("/mcp", "/health"))).text()).toBe("ok")
  })

  it("programs/router.ts passes the principal to handlers", async () => {
    const url = await at("router")
    expect(await textOf(await fetch(url, call("whoami", {}, { authorization: "Bearer ada" })))).toBe("ada")
    expect(await textOf(await fetch(url, call("whoami")))).toBe("anonymous")
  })
})

describe("programs/deployed.ts", () => {
  // `fetch` cannot set the `Host` header.
  const health = async (host: string, path = "/mcp", init: RequestInit = hello): Promise<IncomingMessage> => {
    const { hostname, port } = new URL(await at("deployed"))
    const { request } = await import("node:http")
    return new Promise((resolve, reject) => {
      const { body, headers, method } = init
      const sent = request(
        { hostname, port, path, method, headers: { ...headers as Record<string, string>, host } },
        (answer) => {
          answer.resume()
          resolve(answer)
        }
      )
      sent.on("error", reject)
      sent.end(body)
    })
  }

  it("accepts only its own name, and lets only pages of one origin read", async () => {
    expect((await health("mcp.example.com")).statusCode).toBe(200)
    expect((await health("localhost")).statusCode).toBe(403)
    const page = {
      ...hello,
      headers: { ...hello.headers, origin: "https://app.example.com" }
    }
    const answer = await health("mcp.example.com", "/mcp", page)
    expect(answer.headers["access-control-allow-origin"]).toBe("https://app.example.com")
  })

  it("serves the transport of 2024-11-05 too", async () => {
    const { hostname, port } = new URL(await at("deployed"))
    const { get } = await import("node:http")
    const first = await new Promise<string>((resolve, reject) => {
      get(
        { hostname, port, path: "/sse", headers: { host: "mcp.example.com", accept: "text/event-stream" } },
        (answer) => {
          answer.once("data", (chunk) => {
            resolve(String(chunk))
            answer.destroy()
          })
        }
      ).on("error", reject)
    })
    expect(first).toMatch(/^event: endpoint\ndata: \/messages\?sessionId=[\w-]{22}/)
  })
})

describe("recipes/hosting.md", () => {
  it("names variables that exist", () => {
    const page = readFileSync(join(import.meta.dirname, "../recipes/hosting.md"), "utf8")
    const named = new Set(Array.from(page.matchAll(/SKEIN_(\w+)/g), ([, name]) => name!))
    expect(named.size).toBeGreaterThan(3)
    expect([...named].filter((name) => !variables().some((row) => row.name === name))).toEqual([])
  })
})

describe("http.md", () => {
  it("serves a server card, and the catalog of the domain", async () => {
    const { url } = await running.get("serverCard")!
    const card = await (await fetch(`${url}/server-card`)).json()
    expect(card).toMatchObject({
      name: "com.example/hello",
      description: "Greets people by name.",
      remotes: [{ url: "https://mcp.example.com/mcp" }]
    })
    const catalog = await (await fetch(new URL("/.well-known/ai-catalog.json", url))).json()
    expect(catalog).toMatchObject({ entries: [{ url: "https://mcp.example.com/mcp/server-card" }] })
  })

  it("configuration.md lists every variable of the environment with its option", () => {
    const page = readFileSync(join(import.meta.dirname, "../configuration.md"), "utf8")
    const rows = Array.from(
      page.matchAll(/^\| `SKEIN_(\w+)` +\| `([\w.]+)` +\|(.*)\|$/gm),
      ([, name, option, value]) => ({ name, option, isForStdio: /stdio/i.test(value!) })
    )
    expect(rows).toEqual(
      variables().map(({ name, option }) => ({
        name,
        option,
        isForStdio: Object.hasOwn(logVariables, option)
      }))
    )
  })

  it("lists every status of an endpoint, and no others", async () => {
    const { handler } = WebHttp.mount(Hello, { cors: Cors.make(), limits: { maxMessageBytes: 10_000 } })
    const url = "http://localhost/mcp"
    const answered = new Map<number, number | undefined>()
    const seen = new Set<string>()
    const note = (status: number, code: number | undefined): void => {
      answered.set(status, code)
      seen.add(`${status} ${code ?? ""}`.trim())
    }
    const ask = async (init: RequestInit & { readonly headers?: Headers }, to = url): Promise<Response> => {
      const answer = await handler(new Request(to, init))
      const text = await answer.clone().text()
      const body = (text === "" ? {} : JSON.parse(text)) as { readonly error?: { readonly code: number } }
      note(answer.status, body.error?.code)
      return answer
    }
    const expectLast = async (init: Parameters<typeof ask>[0], status: number, code?: number, to?: string) => {
      expect([(await ask(init, to)).status, answered.get(status)]).toEqual([status, code])
    }
    await expectLast(hello, 200)
    const session = { "mcp-session-id": (await ask(initialize())).headers.get("mcp-session-id")! }
    await expectLast(classic({ method: "notifications/initialized" }, session), 202)
    await expectLast({
      method: "OPTIONS",
      headers: { origin: "http://localhost", "access-control-request-method": "POST" }
    }, 204)
    const without = (name: string, value?: string): Parameters<typeof ask>[0] => {
      const { [name]: _, ...rest } = hello.headers
      return { ...hello, headers: value === undefined ? rest : { ...rest, [name]: value } }
    }
    await expectLast({ ...hello, body: "{" }, 400, -32700)
    await expectLast({ ...hello, body: "{}" }, 400, -32600)
    await expectLast(classic({ id: 1, method: "tools/list" }), 400, -32600)
    await expectLast(without("mcp-method"), 400, -32020)
    await expectLast(without("mcp-protocol-version", "1999-01-01"), 400, -32020)
    await expectLast(classic({ id: 1, method: "tools/list" }, { "mcp-protocol-version": "1999-01-01" }), 400, -32022)
    await expectLast({ headers: { ...session, accept: "text/event-stream", "last-event-id": "7-7" } }, 400, -32600)
    await expectLast(without("host", "evil.example"), 403, -32600)
    await expectLast(without("origin", "https://evil.example"), 403, -32600)
    await expectLast(hello, 404, -32600, "http://localhost/other")
    await expectLast(classic({ id: 1, method: "tools/list" }, { "mcp-session-id": "none" }), 404, -32600)
    await expectLast(modern("tools/juggle"), 404, -32601)
    await expectLast({ method: "PUT" }, 405, -32600)
    expect((await ask({ method: "PUT" })).headers.get("allow")).toBe("GET, POST, DELETE, OPTIONS")
    await expectLast(without("accept", "application/json"), 406, -32600)
    await expectLast(call("greet", { name: "x".repeat(10_000) }), 413, -32600)
    await expectLast(without("content-type", "text/plain"), 415, -32600)
    await expectLast({ method: "DELETE", headers: session }, 204)
    const unknown = WebHttp.mount(Hello.pipe(Layer.provide(Logger.layer([]))), {
      principal: () => Effect.die("no database")
    })
    const quiet = await unknown.handler(new Request(url, hello))
    note(quiet.status, ((await quiet.json()) as { readonly error: { readonly code: number } }).error.code)
    expect(answered.get(500)).toBe(-32603)
    const page = readFileSync(join(import.meta.dirname, "../http.md"), "utf8")
    const documented = Array.from(
      page.matchAll(/^- (\d{3})(?:, `(-\d+)`)?[:,] /gm),
      ([, status, code = Number(status) < 400 ? "" : "-32600"]) => `${status} ${code}`.trim()
    )
    // Node sends 408 and 431. `limits.test.ts` tests 503, `asking.test.ts` the missing capability, and tests of
    // `@skein/server` the error of an interrupted request.
    const others = ["200 -32603", "400 -32021", "408 -32600", "431 -32600", "503 -32603"]
    expect(documented.filter((one) => !seen.has(one))).toEqual(others)
    expect([...seen].filter((one) => !documented.includes(one))).toEqual([])
  })
})

describe("programs/operated.ts", () => {
  it("answers probes, serves routes beside the endpoint, logs JSON, and drains before it exits", async () => {
    const env = { SKEIN_DRAIN_DELAY: "1s", SKEIN_LOG_FORMAT: "json", WEBHOOK_SECRET: "s3cret" }
    const { child, url } = await start("operated", { env })
    const logs: Array<string> = []
    child.stderr!.on("data", (chunk) => void logs.push(String(chunk)))
    const exited = new Promise((resolve) => child.once("exit", resolve))
    const at = (path: string, init?: RequestInit) => fetch(url.replace("/mcp", path), init)
    expect([(await at("/livez")).status, (await at("/readyz")).status]).toEqual([200, 200])
    expect(await textOf(await fetch(url, call("price")))).toBe("3 €")
    const change = { method: "POST", body: "4" }
    expect((await at("/prices/tea", change)).status).toBe(401)
    expect((await at("/prices/tea", { ...change, headers: { "x-secret": "s3cret" } })).status).toBe(204)
    expect(await textOf(await fetch(url, call("price")))).toBe("4 €")
    expect(await (await at("/metrics")).text()).toMatch(/^mcp_server_operation_duration\w*\{.*tools\/call/m)
    child.kill("SIGTERM")
    while ((await at("/readyz")).status !== 503) await new Promise((resolve) => setTimeout(resolve, 10))
    expect(await textOf(await fetch(url, call("price")))).toBe("4 €")
    expect(await exited).toBe(143)
    const records = logs.join("").trim().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>)
    const record = records.find(({ message }) => message === "the price of tea has changed")!
    expect(record).toMatchObject({ level: "INFO", annotations: { price: 4 } })
    // The recipe shows this record, as one line.
    const page = readFileSync(join(import.meta.dirname, "../recipes/logs.md"), "utf8")
    const [, shown = ""] = /```text\n(\{"message":"the price.*)\n```/.exec(page) ?? []
    expect(Object.keys(JSON.parse(shown) as object).toSorted()).toEqual(Object.keys(record).toSorted())
  })
})

const listen = <E>(layer: Layer.Layer<NodeHttp.Server, E>): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(Effect.orDie(Layer.build(layer)), (context) => Context.get(context, NodeHttp.Server).url)

const fetched = (url: string, init: RequestInit): Effect.Effect<Response> => Effect.promise(() => fetch(url, init))

describe("programs/polling.ts", () => {
  it.live("2025-11-25 · returns the result to a client that reconnects", () =>
    Effect.gen(function*() {
      const url = yield* listen(NodeHttp.layer({ port: 0 }).pipe(Layer.provide(Reports)))
      const session = (yield* fetched(url, initialize())).headers.get("mcp-session-id")!
      const answer = yield* fetched(
        url,
        classic({ id: 1, method: "tools/call", params: { name: "report" } }, { "mcp-session-id": session })
      )
      const before = yield* Effect.promise(() => answer.text())
      expect(before).not.toContain("The report")
      const [, last = ""] = /id: (\S+)/.exec(before) ?? []
      expect(before).toContain("retry: 10")
      const headers = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": last }
      const resumed = yield* fetched(url, { headers })
      expect(yield* Effect.promise(() => resumed.text())).toContain("The report")
    }))
})

describe("programs/httpConfig.ts", () => {
  it.live("listens with the options of its variables", () =>
    Effect.gen(function*() {
      const env = { TEA_SHOP_PORT: "0", TEA_SHOP_PATH: "/tea" }
      const url = yield* listen(Layer.provide(Configured, ConfigProvider.layer(ConfigProvider.fromEnv({ env }))))
      expect(url).toMatch(/\/tea$/)
      expect(yield* Effect.promise(async () => textOf(await fetch(url, hello)))).toBe("Hello, Ada!")
      expect((yield* fetched(url.replace("/tea", "/readyz"), {})).status).toBe(200)
    }))
})

describe("programs/telemetry.ts", () => {
  it.live("exports a span for each request", () =>
    Effect.gen(function*() {
      const received: Array<string> = []
      const collector = createServer((request, response) => {
        request.on("data", (chunk) => void received.push(String(chunk)))
        request.on("end", () => response.end("{}"))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void collector.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => void collector.close().closeAllConnections())
      )
      const { port } = collector.address() as { readonly port: number }
      yield* Effect.scoped(Effect.gen(function*() {
        const url = yield* listen(NodeHttp.layer({ port: 0 }).pipe(Layer.provide(tracedTo(`http://127.0.0.1:${port}`))))
        expect(yield* Effect.promise(async () => textOf(await fetch(url, call("greet"))))).toBe("Hello")
      }))
      // The remaining spans are exported when the server ends.
      expect(received.join("")).toContain("\"name\":\"tools/call greet\"")
    }))
})

// Last, because these tests end the processes.
describe.each(["smallest", "mounted", "fastify", "router"] as const)(
  "programs/%s.ts, on SIGTERM",
  (name) => {
    it("ends open streams with their result, and exits", async () => {
      const { child, url } = await running.get(name)!
      const listening = await fetch(
        url,
        modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
      )
      expect(listening.headers.get("content-type")).toBe("text/event-stream")
      expect(listening.headers.get("x-accel-buffering")).toBe("no")
      const rest = listening.text()
      const exited = new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)))
      child.kill("SIGTERM")
      const events = await rest
      expect(events).toContain("notifications/subscriptions/acknowledged")
      expect(events).toMatch(/"id":1,"result"/)
      // Skein's own `runMain` and Effect's exit with a code for the signal. A program that only closes its server exits with 0.
      expect(await exited).toBe(name === "smallest" ? 143 : name === "router" ? 130 : 0)
    })
  }
)

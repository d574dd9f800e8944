/** Options of a client that take async functions: middleware, credentials, headers, stores, roots. */
import { afterEach, describe, expect, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { z } from "zod"
import { AsyncClient, type Options } from "../src/AsyncClient.ts"
import { ClientError, Denied } from "../src/ClientError.ts"
import * as Credentials from "../src/Credentials.ts"
import * as Middleware from "../src/Middleware.ts"
import { PoolError } from "../src/PoolError.ts"
import * as ResponseCache from "../src/ResponseCache.ts"

const scopes: Array<Scope.Closeable> = []
afterEach(async () => {
  for (const scope of scopes.splice(0)) await Effect.runPromise(Scope.close(scope, Exit.void))
})

/** Starts a server over HTTP that stops after the test. */
const start = <A>(server: Effect.Effect<A, never, Scope.Scope>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  scopes.push(scope)
  return Effect.runPromise(Scope.provide(server, scope))
}

const hello = { content: [{ type: "text", text: "hello" }], resultType: "complete" }

const scripted = (script: ScriptedServer.Script = () => ScriptedServer.success(hello), options?: Options) => {
  const server = ScriptedServer.make(ScriptedServer.handshake("2026-07-28", script))
  return AsyncClient.connect(server.transport, options).then((client) => ({ client, server }))
}

const failureOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => "no error", (error) => error)

describe("Middleware.async", () => {
  it("changes the parameters and the result of a call", async () => {
    const middleware = Middleware.async(async (call, next) => {
      const result = await next({ ...call, params: { ...call.params, arguments: { key: "***" } } })
      return { ...result, content: [{ type: "text", text: `${call.method.name} of ${call.server}` }] }
    })
    const { client, server } = await scripted(undefined, { middleware: [middleware], label: "shop" })
    const { content } = await client.callTool("greet", { key: "secret" })
    expect(content).toEqual([{ type: "text", text: "tools/call of shop" }])
    expect(server.requests("tools/call")[0]?.params).toMatchObject({ arguments: { key: "***" } })
    await client.close()
  })

  it("makes the call again after the error of next", async () => {
    const script: ScriptedServer.Script = () =>
      failures.length === 0 ? ScriptedServer.failure(-32000, "busy") : ScriptedServer.success(hello)
    const failures: Array<unknown> = []
    const middleware = Middleware.async(async (_, next) => {
      try {
        return await next()
      } catch (error) {
        failures.push(error)
        return next()
      }
    })
    const { client } = await scripted(script, { middleware: [middleware] })
    expect(await client.callTool("greet")).toMatchObject(hello)
    expect(failures).toMatchObject([{ _tag: "ClientError", reason: { _tag: "ProtocolError" } }])
    await client.close()
  })

  it("fails the call with the error that the function throws, and sends nothing", async () => {
    let error: Error = new ClientError({ reason: new Denied({ message: "not here" }) })
    const middleware = Middleware.async(() => {
      throw error
    })
    const { client, server } = await scripted(undefined, { middleware: [middleware] })
    expect(await failureOf(client.callTool("greet"))).toBe(error)
    error = new RangeError("a bug")
    expect(await failureOf(client.callTool("greet"))).toBe(error)
    expect(server.requests("tools/call")).toEqual([])
    await client.close()
  })

  it("aborts the signal and cancels the call of next when the call is aborted", async () => {
    const controller = new AbortController()
    const inside = Promise.withResolvers<AbortSignal>()
    const middleware = Middleware.async((_, next, { signal }) => {
      inside.resolve(signal)
      return next()
    })
    const { client, server } = await scripted(() => "no response", { middleware: [middleware] })
    const call = failureOf(client.callTool("greet", {}, { signal: controller.signal }))
    const signal = await inside.promise
    await expect.poll(() => server.requests("tools/call").length).toBe(1)
    controller.abort("enough")
    expect(await call).toBe("enough")
    await expect.poll(() => server.notifications("notifications/cancelled").length).toBe(1)
    expect(signal.aborted).toBe(true)
    await client.close()
  })
})

describe("over HTTP", () => {
  it("requests headers of a function for each request", async () => {
    const server = await start(ScriptedHttpServer.make(ScriptedHttpServer.session((hit) => hit.respondResult())))
    let count = 0
    const client = await AsyncClient.connect({ url: server.url, headers: async () => ({ "x-count": `${++count}` }) }, {
      revisions: ["2025-11-25"]
    })
    await client.ping()
    await client.close()
    const counts = server.byMethod("POST").map(({ headers }) => Number(headers["x-count"]))
    expect(counts).toHaveLength(3)
    expect(new Set(counts).size).toBe(3)
  })

  it("fails a request whose function of headers rejects, and sends nothing", async () => {
    const server = await start(ScriptedHttpServer.make((hit) => hit.respondResult()))
    const missing = new Error("no key")
    const headers = () => Promise.reject(missing)
    const error = await failureOf(AsyncClient.connect({ url: server.url, headers }))
    expect(error).toMatchObject({ _tag: "ClientError", reason: { cause: { cause: missing } } })
    expect(server.exchanges).toEqual([])
  })

  it("sends the headers of async credentials, and again after a refusal that they handle", async () => {
    const server = await start(
      ScriptedHttpServer.make((hit) =>
        hit.headers["x-key"] === "new"
          ? ScriptedHttpServer.session((hit) => hit.respondResult())(hit)
          : hit.respond(401, "", { "www-authenticate": "Key" })
      )
    )
    let key = "old"
    const seen: Array<unknown> = []
    const credentials = Credentials.async({
      headers: async () => ({ "x-key": key }),
      refused: async ({ attempt, status, wwwAuthenticate }, { signal }) => {
        seen.push([attempt, status, wwwAuthenticate, signal.aborted])
        key = "new"
        return true
      }
    })
    const client = await AsyncClient.connect({ url: server.url, credentials }, { revisions: ["2025-11-25"] })
    await client.ping()
    await client.close()
    expect(seen).toEqual([[1, 401, "Key", false]])
  })

  it("rejects with Unauthorized, whose cause is the error of the async credentials", async () => {
    const server = await start(ScriptedHttpServer.make((hit) => hit.respond(401)))
    const failed = new Error("the user has left")
    const credentials = Credentials.async({ headers: () => ({}), refused: () => Promise.reject(failed) })
    const error = await failureOf(AsyncClient.connect({ url: server.url, credentials }))
    expect(error).toMatchObject({ reason: { _tag: "Unauthorized", cause: failed } })
    const silent = Credentials.async({ headers: () => ({}) })
    expect(await failureOf(AsyncClient.connect({ url: server.url, credentials: silent })))
      .toMatchObject({ reason: { _tag: "Unauthorized" } })
  })
})

describe("ResponseCache.async", () => {
  it("stores responses for other clients, and asks the server where the store rejects", async () => {
    const entries = new Map<string, ResponseCache.Entry>()
    let isBroken = false
    const store = ResponseCache.async({
      get: async (key) => {
        if (isBroken) throw new Error("gone")
        return entries.get(JSON.stringify(key))
      },
      set: async (key, entry) => entries.set(JSON.stringify(key), entry),
      invalidate: () => entries.clear()
    })
    const script: ScriptedServer.Script = () =>
      ScriptedServer.success({ tools: [], ttlMs: 60_000, cacheScope: "public", resultType: "complete" })
    const open = () => scripted(script, { cache: { store, server: "https://example.com/mcp" } })
    const [one, two] = [await open(), await open()]
    await one.client.listTools()
    await two.client.listTools()
    expect([one, two].map(({ server }) => server.requests("tools/list").length)).toEqual([1, 0])
    isBroken = true
    await two.client.listTools()
    expect(two.server.requests("tools/list")).toHaveLength(1)
    expect(entries.size).toBe(1)
    one.client.clearCache()
    await expect.poll(() => entries.size).toBe(0)
    await one.client.close()
    await two.client.close()
  })
})

describe("AsyncClient", () => {
  it("2025-11-25 · notifies the server of each element of an iterable of roots", async () => {
    const next = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    const roots = async function*() {
      yield [{ uri: "file:///one" }]
      await next.promise
      yield [{ uri: "file:///two" }]
      await end.promise
      throw new Error("no further roots")
    }
    const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
    const client = await AsyncClient.connect(server.transport, { revisions: ["2025-11-25"], roots: roots() })
    const ask = async (id: number): Promise<unknown> => {
      server.send(JsonRpc.request(id, "roots/list"))
      await expect.poll(() => server.responses.length).toBe(id)
      return server.responses[id - 1]
    }
    expect(await ask(1)).toMatchObject({ result: { roots: [{ uri: "file:///one" }] } })
    // The fiber that notifies the server begins in one of the next turns.
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    next.resolve()
    await expect.poll(() => server.notifications("notifications/roots/list_changed").length).toBe(1)
    end.resolve()
    expect(await ask(2)).toMatchObject({ result: { roots: [{ uri: "file:///two" }] } })
    await client.close()
  })

  it("sends a request by the name of its method", async () => {
    const { client, server } = await scripted(({ method, params }) =>
      ScriptedServer.success(
        method === "tools/list"
          ? { tools: [], resultType: "complete" }
          : { jobs: [params?.["state"]], resultType: "complete" }
      )
    )
    expect(await client.request("com.example/jobs", { state: "running" })).toMatchObject({ jobs: ["running"] })
    expect(await client.request("tools/list")).toMatchObject({ tools: [] })
    // A method of another revision is not sent.
    expect(await failureOf(client.request("logging/setLevel", { level: "info" })))
      .toMatchObject({ reason: { _tag: "Unsupported" } })
    expect(server.methods).not.toContain("logging/setLevel")
    await client.close()
  })

  it("has the tools of one server for a model, with their own names", async () => {
    const server = new AsyncServer({ name: "shop", version: "1.0.0", instructions: "Buy tea." })
      .tool("price", { input: z.object({ tea: z.string() }) }, ({ tea }) => `${tea}: 4`)
      .tool("delete", {}, () => "gone")
    const client = await AsyncClient.connect(server.transport())
    const toolkit = await client.toolkit({ include: (_, { name }) => name !== "delete", schemas: "openai" })
    expect(toolkit.tools).toMatchObject([{ name: "price", server: undefined, tool: { name: "price" } }])
    expect(toolkit.instructions).toContain("Buy tea.")
    expect(await toolkit.call("price", { tea: "oolong" })).toMatchObject({ content: [{ text: "oolong: 4" }] })
    const error = await failureOf(toolkit.call("delete"))
    expect(error).toBeInstanceOf(PoolError)
    expect(error).toMatchObject({ reason: { _tag: "ToolNotFound", tool: "delete" } })
    await client.close()
  })
})

/** Servers of the package `skein` inside of HTTP applications. */
import { describe, expect, it } from "@effect/vitest"
import { AsyncClient } from "@skein/client/AsyncClient"
import * as Express from "express"
import Fastify from "fastify"
import { Hono } from "hono"
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { AsyncServer, Refusal } from "skein"
import {
  bridge,
  expressHandler,
  fastifyPlugin,
  honoHandler,
  httpPaths,
  nodeHandler,
  type NodeOptions,
  webHandler
} from "skein/http"
import { callText } from "../server/kit.ts"

const shop = () =>
  new AsyncServer({ name: "shop", version: "1.0.0" }).tool(
    "who",
    {},
    (_, { principal }) => principal?.id ?? "nobody"
  )

const broken = () => shop().tool("who", {}, () => "the name exists")

/** Connects a client, and returns the text of the tool. */
const ask = async (url: string, fetch?: typeof globalThis.fetch): Promise<string> => {
  const headers = { authorization: "Bearer ada" }
  const client = await AsyncClient.connect({ url, headers, ...(fetch === undefined ? undefined : { fetch }) } as never)
  try {
    return await callText(client, "who")
  } finally {
    await client.close()
  }
}

/** Listens on a free port while a function runs. */
const listening = async <A>(listener: RequestListener, run: (origin: string) => Promise<A>): Promise<A> => {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  try {
    return await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

type Next = (error?: unknown) => void
type Middleware = (request: IncomingMessage, response: ServerResponse, next: Next) => void

/** An application of Express, whose own types are another package. */
interface ExpressApplication extends RequestListener {
  (request: IncomingMessage, response: ServerResponse): void
  use(...handlers: ReadonlyArray<Middleware>): void
  use(handler: (error: Error, request: IncomingMessage, response: ServerResponse, next: Next) => void): void
  all(path: string, handler: Middleware): void
}

const express = Express.default as unknown as { (): ExpressApplication; json(): Middleware }

const options: NodeOptions = {
  principal: async ({ headers }) => {
    if (headers.authorization !== "Bearer ada") throw new Refusal({ status: 401, message: "Unauthorized" })
    return { id: "ada" }
  }
}

describe("node:http", () => {
  it("passes requests to a server, whose principal an async function finds", async () => {
    const { close, handler } = await nodeHandler(shop(), options)
    await listening(handler, async (origin) => {
      expect(await ask(`${origin}/mcp`)).toBe("ada")
      const refused = await fetch(`${origin}/mcp`, { method: "POST" })
      expect([refused.status, await refused.text()]).toMatchObject([401, expect.stringContaining("Unauthorized")])
      await close()
    })
  })

  it("rejects if the server cannot be built", () => expect(nodeHandler(broken())).rejects.toThrow("who"))
})

describe("frameworks", () => {
  it("answers the requests of Express, with a parsed body", async () => {
    const mcp = expressHandler(shop(), {
      principal: (request: IncomingMessage & { readonly user?: string }) =>
        request.user === undefined ? undefined : { id: request.user }
    })
    const app = express()
    app.use(express.json(), (request, _, next) => next(void Object.assign(request, { user: "grace" })))
    app.all("/mcp", mcp)
    await listening(app, async (origin) => {
      expect(await ask(`${origin}/mcp`)).toBe("grace")
      await mcp.close()
    })
  })

  it("passes an error of the start to Express, and starts again with the next request", async () => {
    const app = express()
    const errors: Array<string> = []
    app.all("/mcp", expressHandler(broken()))
    app.use((error: Error, _: IncomingMessage, response: ServerResponse, _next: Next) => {
      errors.push(error.message)
      response.writeHead(500).end()
    })
    await listening(app, async (origin) => {
      for (const _ of [1, 2]) expect((await fetch(`${origin}/mcp`, { method: "POST" })).status).toBe(500)
      expect(errors).toHaveLength(2)
    })
  })

  it("is a plugin of Fastify, and ends with the application", async () => {
    const app = Fastify()
    await app.register(fastifyPlugin(shop(), options))
    const origin = await app.listen({ port: 0, host: "127.0.0.1" })
    try {
      expect(await ask(`${origin}/mcp`)).toBe("ada")
    } finally {
      await app.close()
    }
  })

  it("answers the requests of Hono", async () => {
    const mcp = honoHandler(shop(), {
      principal: async (request) => request.headers.has("authorization") ? { id: "ada" } : undefined
    })
    const app = new Hono()
    app.all("/mcp", mcp)
    expect(await ask("http://localhost/mcp", async (input, init) => app.fetch(new Request(input, init)))).toBe("ada")
    await mcp.close()
  })

  it("answers web requests, and rejects while the server cannot be built", async () => {
    const { close, handler } = webHandler(shop())
    expect(await ask("http://localhost/mcp", (input, init) => handler(new Request(input, init)))).toBe("nobody")
    await close()
    const request = new Request("http://localhost/mcp", { method: "POST" })
    await expect(webHandler(broken()).handler(request)).rejects.toThrow("who")
  })
})

describe("httpPaths", () => {
  it("returns the paths of the endpoint, of HTTP+SSE and of the card", () => {
    const serverCard = { url: "https://tea.example/mcp" }
    expect(httpPaths({ legacySse: true, serverCard })).toEqual([
      "/mcp",
      "/sse",
      "/messages",
      "/mcp/server-card",
      "/.well-known/ai-catalog.json"
    ])
  })
})

describe("routes", () => {
  it("answers the requests beside the endpoint by method", async () => {
    const [started, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const server = shop()
      .route("GET", "/version", () => Response.json({ version: "1.0.0" }))
      .route("POST", "/version", async (request) => new Response((await request.text()).toUpperCase()))
      .route("*", "/any/:id", ({ method, url }) => new Response(`${method} ${new URL(url).pathname}`))
      .route("GET", "/fails", () => {
        throw new Error("password")
      })
      .route("GET", "/slow", ({ signal }) => {
        signal.addEventListener("abort", () => aborted.resolve())
        started.resolve()
        return new Promise<Response>(() => {})
      })
    expect(() => server.route("GET", "/version", () => new Response())).toThrow("there is a route GET /version already")
    expect(() => server.route("GET", "version" as never, () => new Response())).toThrow("begins with \"/\"")
    const { close, url } = await server.listen({ port: 0, serverCard: { url: "https://tea.example/mcp" } })
    expect(() => server.route("GET", "/late", () => new Response())).toThrow("add the route GET /late before")
    const get = (path: string, init?: RequestInit) => fetch(new URL(path, url), init)
    try {
      expect(await ask(url)).toBe("nobody")
      expect(await get("/version").then((answer) => answer.json())).toEqual({ version: "1.0.0" })
      expect((await get("/version", { method: "HEAD" })).status).toBe(200)
      expect(await get("/version", { method: "POST", body: "tea" }).then((answer) => answer.text())).toBe("TEA")
      const refused = await get("/version", { method: "DELETE" })
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, POST"])
      expect(await get("/any/1", { method: "PUT" }).then((answer) => answer.text())).toBe("PUT /any/1")
      const failed = await get("/fails")
      expect([failed.status, (await failed.text()).includes("password")]).toEqual([500, false])
      expect((await get("/none")).status).toBe(404)
      expect(await get("/mcp/server-card").then((answer) => answer.json())).toMatchObject({ version: "1.0.0" })
      const controller = new AbortController()
      const slow = get("/slow", { signal: controller.signal }).catch(() => "aborted")
      await started.promise
      controller.abort()
      expect(await slow).toBe("aborted")
      await aborted.promise
    } finally {
      await close()
    }
  })
})

describe("bridge", () => {
  it("serves the server of a transport over HTTP", async () => {
    const { close, url } = await bridge(shop().transport(), { port: 0, maxServers: 2 })
    try {
      expect(await ask(url)).toBe("nobody")
    } finally {
      await close()
    }
    await expect(bridge(shop().transport(), { host: "256.0.0.1" })).rejects.toThrow("256.0.0.1")
  })
})

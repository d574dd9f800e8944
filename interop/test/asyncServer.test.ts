/**
 * A server without effects, with clients: definitions and updates while it runs, middleware, routes, probes and tasks.
 */
import { describe, expect, it, vi } from "@effect/vitest"
import { AsyncClient } from "@skein/client/AsyncClient"
import * as Revision from "@skein/protocol/Revision"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as McpError from "@skein/server/McpError"
import * as Middleware from "@skein/server/Middleware"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as Tool from "@skein/server/Tool"

const shop = () =>
  new AsyncServer({ name: "shop", version: "1.0.0" })
    .tool("price", {}, () => "3 €")
    .resource("shop://menu", {}, () => "# Tea")

describe.each(Revision.all)("%s", (revision) => {
  it("adds and removes definitions while it runs", async () => {
    const server = shop()
    await expect(server.add(Tool.async(Tool.make("early"), () => ""))).rejects.toThrow("the server shop does not run")
    await using client = await AsyncClient.connect(server.transport(), { revisions: [revision] })
    const names = async () => (await client.listTools()).map(({ name }) => name)
    const seen: Array<string> = []
    const watching = (async () => {
      for await (const change of client.changes({ tools: true })) seen.push(change._tag)
    })()
    await vi.waitFor(() => expect(seen).toEqual(["Subscribed"]), 60_000)
    const remove = await server.add(
      Tool.async(Tool.make("late"), () => "later"),
      Tool.async(Tool.make("too"), () => "")
    )
    expect(await names()).toEqual(["price", "late", "too"])
    expect(await client.callTool("late")).toMatchObject({ content: [{ text: "later" }] })
    // A failure removes what was added before it.
    const clash = server.add(Tool.async(Tool.make("new"), () => ""), Tool.async(Tool.make("late"), () => ""))
    await expect(clash).rejects.toMatchObject({ _tag: "DefinitionError", reason: { _tag: "DuplicateName" } })
    expect(await names()).toEqual(["price", "late", "too"])
    await remove()
    expect(await names()).toEqual(["price"])
    await vi.waitFor(() => expect(seen).toContain("ToolListChanged"), 60_000)
    await client.close()
    await watching
    await vi.waitFor(() => expect(server.add()).rejects.toThrow("does not run"), 60_000)
  })

  it("notifies subscribers of an updated resource", async () => {
    const server = shop()
    await server.updated("shop://menu")
    await using client = await AsyncClient.connect(server.transport(), { revisions: [revision] })
    const seen: Array<unknown> = []
    for await (const change of client.changes({ uris: ["shop://menu"] })) {
      seen.push(change._tag === "ResourceUpdated" ? change.uri : change._tag)
      if (change._tag === "ResourceUpdated") break
      await server.updated("shop://other")
      await server.updated("shop://menu")
    }
    expect(seen).toEqual(["Subscribed", "shop://menu"])
  })

  it("passes requests through an async middleware", async () => {
    const seen: Array<string> = []
    const server = shop().tool("closed", {}, () => "open").use(
      Middleware.async(async (request, next, { signal }) => {
        const name = (request.params as { readonly name?: string } | undefined)?.name
        if (name === "closed") throw McpError.other(503, "Closed until 8:00")
        if (name === "broken") throw new Error("secret")
        const result = await next()
        seen.push(`${request.method} ${signal.aborted}`)
        return name === "price" ? { ...result as object, content: [{ type: "text", text: "4 €" }] } as never : result
      })
    )
    await using client = await AsyncClient.connect(server.transport(), { revisions: [revision] })
    expect(await client.callTool("price")).toMatchObject({ content: [{ text: "4 €" }] })
    expect(seen).toContain("tools/call false")
    await expect(client.callTool("closed")).rejects.toThrow("Closed until 8:00")
    expect(await client.callTool("broken")).toMatchObject({
      isError: true,
      content: [{
        text: expect.stringMatching(/^The tool broken failed unexpectedly\. The log .* reference [\da-f-]+$/)
      }]
    })
    await expect(client.callTool("unknown")).rejects.toThrow("unknown")
  })
})

describe("listening", () => {
  it("answers probes by an async check, and routes by functions of web standards", async () => {
    let isUp = true
    const check = vi.fn(async (signal: AbortSignal) => {
      signal.throwIfAborted()
      if (!isUp) throw new Error("no database")
    })
    const { close, url } = await shop().listen({
      port: 0,
      health: { check },
      routes: NodeRoutes.handlers({
        "/version": () => Response.json({ version: "1.0.0" }),
        "/echo/*": async (request) =>
          new Response(`${request.method} ${new URL(request.url).pathname} ${await request.text()}`, { status: 201 }),
        "/broken": () => {
          throw new Error("secret")
        },
        "/rejects": () => Promise.reject(new Error("secret"))
      })
    })
    const get = async (path: string, init?: RequestInit) => {
      const response = await fetch(new URL(path, url), init)
      return [response.status, await response.text()]
    }
    try {
      expect(await get("/readyz")).toEqual([200, "{\"status\":\"ok\"}"])
      isUp = false
      expect(await get("/readyz")).toEqual([503, "{\"status\":\"unavailable\"}"])
      expect(check).toHaveBeenCalledTimes(2)
      expect(await get("/version")).toEqual([200, "{\"version\":\"1.0.0\"}"])
      expect(await get("/echo/a/b", { method: "POST", body: "tea" })).toEqual([201, "POST /echo/a/b tea"])
      for (const path of ["/broken", "/rejects"]) {
        const [status, text] = await get(path)
        expect(status).toBe(500)
        expect(text).not.toContain("secret")
      }
      expect((await get("/else"))[0]).toBe(404)
      expect((await get("/version", { headers: { origin: "https://evil.example" } }))[0]).toBe(403)
    } finally {
      await close()
    }
  })
})

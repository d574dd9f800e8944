/** The programs of `recipes/serverless.md`, which serve requests of web standards. */
import { AsyncClient, type HttpOptions } from "skein/client"
import { describe, expect, it } from "vitest"
import hono from "../../programs/hono.ts"
import * as next from "../../programs/next.ts"
import vercel from "../../programs/vercel.ts"
import workers from "../../programs/workers.ts"

type Serve = (request: Request) => Response | Promise<Response>

/** Connects a client to a function, in a revision of each lifecycle. */
const eachClient = async (
  serve: Serve,
  url: string,
  run: (client: AsyncClient, opened: Array<Response>) => Promise<void>,
  headers: HttpOptions["headers"] = {}
): Promise<void> => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    const responses: Array<Response> = []
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const response = await serve(new Request(input, init))
      responses.push(response)
      return response
    }
    await using client = await AsyncClient.connect({ url, fetch, headers }, { revisions: [revision] })
    await run(client, responses)
  }
}

const greet = async (client: AsyncClient) =>
  expect((await client.callTool("greet", { name: "Ada" })).content).toMatchObject([{ text: "Hello, Ada!" }])

const url = "https://mcp.example.com/mcp"

describe("recipes/serverless.md", () => {
  it("programs/hono.ts serves other routes, and passes the principal on", async () => {
    expect(await (await hono.request("https://mcp.example.com/health")).text()).toBe("ok")
    await eachClient((request) => hono.request(request), url, async (client) => {
      await greet(client)
      expect((await client.callTool("whoami")).content).toMatchObject([{ text: "ada" }])
    }, { authorization: "Bearer ada" })
    expect((await hono.request("https://other.example.com/mcp", { method: "POST" })).status).toBe(403)
  })

  it("programs/next.ts and programs/workers.ts serve all revisions without sessions", async () => {
    for (const serve of [next.POST, workers.fetch]) {
      await eachClient(serve, url, async (client, responses) => {
        await greet(client)
        expect(responses.map(({ headers }) => headers.get("mcp-session-id")).filter((id) => id !== null)).toEqual([])
      })
    }
    expect((await next.GET(new Request(url))).status).toBe(405)
  })

  it("programs/vercel.ts serves the server of programs/functions.ts at /api/mcp, and no other path", async () => {
    await eachClient(vercel.fetch, "https://my-server.vercel.app/api/mcp", greet)
    expect((await vercel.fetch(new Request("https://my-server.vercel.app/mcp", { method: "POST" }))).status).toBe(404)
  })
})

/** The programs of the recipes whose handlers are async functions. */
import { AsyncClient, ClientError } from "skein/client"
import { describe, expect, it } from "vitest"
import { regions, transportTo } from "../../programs/headers.ts"
import { whileStarted } from "../runtime.ts"

describe("programs/apiKey.ts", () => {
  it("answers the owner of a key, and 401 without a known one", () =>
    whileStarted("apiKey", async (url) => {
      const connect = (authorization: string | undefined) =>
        AsyncClient.connect({ url, headers: authorization === undefined ? {} : { authorization } })
      for (const [key, owner] of [["first", "ada"], ["a=b", "grace"]]) {
        await using client = await connect(`Bearer ${key}`)
        expect((await client.callTool("whoami")).content).toMatchObject([{ text: owner }])
      }
      for (const header of [undefined, "Bearer second", "Bearer ada", "Basic first"]) {
        const error = await connect(header).catch((error: unknown) => error)
        expect(error).toBeInstanceOf(ClientError)
        expect(error).toMatchObject({ reason: { _tag: "Unauthorized", status: 401 } })
      }
    }, { env: { API_KEYS: "ada=first,grace=a=b" } }))
})

describe("programs/headers.ts", () => {
  it("reads a header that the client sends, and sends a parameter as one", async () => {
    const { close, url } = await regions.listen({ port: 0 })
    try {
      await using client = await AsyncClient.connect(transportTo(url))
      expect((await client.callTool("locale")).content).toMatchObject([{ text: "de" }])
      await client.listTools()
      const { content } = await client.callTool("report", { region: "north" })
      expect(content).toMatchObject([{ text: "All is well in north" }])
    } finally {
      await close()
    }
  })
})

describe("programs/mounted.ts", () => {
  it("serves the endpoint beside the other routes of an application", () =>
    whileStarted("mounted", async (url) => {
      await using client = await AsyncClient.connect(url)
      expect((await client.callTool("greet", { name: "Ada" })).content).toMatchObject([{ text: "Hello, Ada!" }])
      expect(await (await fetch(new URL("/health", url))).text()).toBe("ok")
    }))
})

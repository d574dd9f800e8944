/**
 * A server with hundreds of tools behind a tool search, over real HTTP: its lists, searches, calls and changes, in two
 * sessions of two principals, with the clients of Skein and of the SDK.
 */
import { AsyncClient } from "@skein/client/AsyncClient"
import type { Change } from "@skein/client/Changes"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as ToolSearch from "@skein/server/ToolSearch"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { afterEach, describe, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

const topics = ["invoice", "calendar", "mail", "photo", "stock", "travel", "music", "recipe", "garden", "weather"]

/** 300 tools: 30 for each topic. */
const many = topics.flatMap((topic) =>
  Array.from({ length: 30 }, (_, n) =>
    Tool.layer(
      Tool.make(`${topic}_${n}`, { description: `Does the ${topic} work number ${n}`, input: { text: Schema.String } }),
      ({ text }) => Effect.succeed(`${topic} ${n}: ${text}`)
    ))
)

const forecast = Tool.layer(
  Tool.make("forecast", {
    description: "Returns the temperature of tomorrow",
    input: { region: Schema.String.annotate({ "x-mcp-header": "Region" }) },
    output: { celsius: Schema.Int }
  }),
  ({ region }) => Effect.as(Progress.report({ progress: 1, message: region }), { celsius: region.length })
)

const reserve = Tool.layer(
  Tool.make("reserve", { description: "Reserves a table" }),
  () =>
    Effect.map(
      Elicitation.accepted(Elicitation.form("For how many?", { people: Schema.Int })),
      ({ people }) => `A table for ${people}`
    )
)

const audit = Catalog.visibleTo(
  ({ principal }) => principal?.id === "ada",
  Tool.layer(Tool.make("audit", { description: "Lists the temperature of the safe" }), () => Effect.succeed("cold"))
)

/** Tools beside the search, which change the tools behind it. */
const changing = [
  Tool.layer(Tool.make("add", { input: { name: Schema.String } }), ({ name }) =>
    Effect.as(
      Catalog.persistent(Tool.add(Tool.make(name, { description: "Is new" }), () => Effect.succeed(`${name} answers`))),
      "added"
    )),
  Tool.layer(
    Tool.make("enable", { input: { name: Schema.String, isEnabled: Schema.Boolean } }),
    ({ isEnabled, name }) => Effect.as(Catalog.setEnabled("tool", name, isEnabled), "changed")
  )
] as const

const searchTools = ["search_tools", "describe_tool", "call_tool"]

const office = McpServer.layer(
  // Several pages.
  { name: "office", version: "1.0.0", pageSize: 50 },
  ToolSearch.layer({ always: ["music_7"] }, ...many, forecast, reserve, audit),
  ...changing
)

let server: RunningServer | undefined
const clients: Array<AsyncClient> = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
  await server?.close()
  server = undefined
})

const start = async (layer: typeof office) => {
  server = await startServer(layer, {
    principal: ({ headers }) => {
      const id = headers["x-user"]
      return typeof id === "string" ? { id } : undefined
    }
  })
  return server.http.url
}

const connect = async (url: string, revision: "2025-11-25" | "2026-07-28", user: string) => {
  const client = await AsyncClient.connect(NodeHttp.transport({ url, headers: { "x-user": user } }), {
    revisions: [revision],
    elicit: () => ({ action: "accept", content: { people: user.length } })
  })
  clients.push(client)
  return client
}

const textOf = ({ content: [block] }: { readonly content: ReadonlyArray<object> }) =>
  block !== undefined && "text" in block ? block.text : undefined

const listOf = async (client: AsyncClient) => (await client.listTools()).map(({ name }) => name)

const Found = Schema.Struct({ tools: Schema.Array(Schema.Struct({ name: Schema.String })), total: Schema.Int })

const search = async (client: AsyncClient, query: string, limit?: number) => {
  const args = limit === undefined ? { query } : { query, limit }
  const { tools, total } = await client.callTool("search_tools", args, { output: Found })
  return { names: tools.map(({ name }) => name), total }
}

/** Records the changes of the tools until the client is closed. */
const follow = async (client: AsyncClient) => {
  const seen: Array<Change["_tag"]> = []
  const subscribed = new Promise<void>((resolve) => {
    void (async () => {
      for await (const { _tag } of client.changes({ tools: true })) {
        if (_tag === "Subscribed") resolve()
        else seen.push(_tag)
      }
    })()
  })
  await subscribed
  return seen
}

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(`${revision} · a tool search over 303 tools`, () => {
    it("lists three tools to each session, and finds the tools that its principal may see", async () => {
      const url = await start(office)
      const [ada, bob] = [await connect(url, revision, "ada"), await connect(url, revision, "bob")]
      for (const client of [ada, bob]) {
        expect(await listOf(client)).toEqual(["music_7", ...searchTools, "add", "enable"])
      }
      expect(await search(ada, "temperature")).toEqual({ names: ["forecast", "audit"], total: 2 })
      expect(await search(bob, "temperature")).toEqual({ names: ["forecast"], total: 1 })
      expect(await search(bob, "work with an invoice")).toMatchObject({ names: { length: 10 }, total: 300 })
      expect((await search(bob, "garden 29")).names[0]).toBe("garden_29")
      expect(await search(bob, "recipe", 3)).toMatchObject({ names: { length: 3 }, total: 30 })
      const described = await bob.callTool("describe_tool", { name: "forecast" })
      expect(JSON.parse(String(textOf(described)))).toMatchObject({
        name: "forecast",
        inputSchema: { required: ["region"] },
        outputSchema: { required: ["celsius"] }
      })
      expect((await bob.callTool("describe_tool", { name: "audit" })).isError).toBe(true)
      expect(await bob.callTool("call_tool", { name: "audit" })).toMatchObject({
        isError: true,
        content: [{ text: "There is no tool \"audit\". Find the names of the tools with search_tools." }]
      })
      expect(textOf(await ada.callTool("call_tool", { name: "audit" }))).toBe("cold")
    })

    it("calls tools by their names, with their progress, questions and structured content", async () => {
      const url = await start(office)
      const [ada, bob] = [await connect(url, revision, "ada"), await connect(url, revision, "bob")]
      const progress: Array<string | undefined> = []
      // The headers of 2026-07-28 repeat the params of the request, and not those of the tool behind it.
      const called = await ada.callTool("call_tool", { name: "forecast", arguments: { region: "Delft" } }, {
        onProgress: ({ message }) => void progress.push(message)
      })
      expect([called.structuredContent, progress]).toEqual([{ celsius: 5 }, ["Delft"]])
      const [one, other, direct] = await Promise.all([
        ada.callTool("call_tool", { name: "reserve" }),
        bob.callTool("call_tool", { name: "reserve" }),
        bob.callTool("photo_12", { text: "x" })
      ])
      expect([one, other, direct].map(textOf)).toEqual(["A table for 3", "A table for 3", "photo 12: x"])
      const calls = Array.from({ length: 100 }, (_, n) =>
        (n % 2 === 0 ? ada : bob).callTool("call_tool", {
          name: `${topics[n % 10]}_${n % 30}`,
          arguments: { text: `${n}` }
        }))
      expect((await Promise.all(calls)).map(textOf)).toEqual(
        Array.from({ length: 100 }, (_, n) => `${topics[n % 10]} ${n % 30}: ${n}`)
      )
    })

    it("reports the changes of the tools to both sessions, which then find the new ones", async () => {
      const url = await start(office)
      const [ada, bob] = [await connect(url, revision, "ada"), await connect(url, revision, "bob")]
      const changes = [await follow(ada), await follow(bob)]
      await ada.callTool("enable", { name: "forecast", isEnabled: false })
      await eventually(() => expect(changes.every((seen) => seen.includes("ToolListChanged"))).toBe(true))
      for (const client of [ada, bob]) expect((await search(client, "forecast")).names).toEqual([])
      await bob.callTool("enable", { name: "forecast", isEnabled: true })
      for (const client of [ada, bob]) expect((await search(client, "forecast")).names).toEqual(["forecast"])
    })

    it("lists all tools once there are few, and the search once there are many again", async () => {
      const url = await start(McpServer.layer(
        { name: "small", version: "1.0.0", pageSize: 2 },
        ToolSearch.layer({ above: 3 }, ...many.slice(0, 3), forecast),
        ...changing
      ))
      const [ada, bob] = [await connect(url, revision, "ada"), await connect(url, revision, "bob")]
      const changes = [await follow(ada), await follow(bob)]
      const all = ["invoice_0", "invoice_1", "invoice_2", "forecast"]
      for (const client of [ada, bob]) expect(await listOf(client)).toEqual([...searchTools, "add", "enable"])
      await bob.callTool("enable", { name: "invoice_1", isEnabled: false })
      await eventually(() => expect(changes.every((seen) => seen.includes("ToolListChanged"))).toBe(true))
      for (const client of [ada, bob]) {
        expect(await listOf(client)).toEqual([...all.filter((name) => name !== "invoice_1"), "add", "enable"])
      }
      for (const seen of changes) seen.length = 0
      await ada.callTool("enable", { name: "invoice_1", isEnabled: true })
      await eventually(() => expect(changes.every((seen) => seen.includes("ToolListChanged"))).toBe(true))
      for (const client of [ada, bob]) expect(await listOf(client)).toEqual([...searchTools, "add", "enable"])
      // A tool that is added while the server runs is one of the server.
      for (const seen of changes) seen.length = 0
      await ada.callTool("add", { name: "extra" })
      await eventually(() => expect(changes.every((seen) => seen.includes("ToolListChanged"))).toBe(true))
      expect(await listOf(bob)).toEqual([...searchTools, "add", "enable", "extra"])
      expect(textOf(await bob.callTool("extra"))).toBe("extra answers")
    })
  })
}

describe("clients of the SDK", () => {
  for (const [name, open] of [["v1", SdkV1.connectInteractive], ["v2", SdkV2.connectInteractive]] as const) {
    it(`${name} lists, finds and calls tools`, async () => {
      await start(office)
      const client = await open(server!.http)
      expect((await client.tools()).map(({ name }) => name)).toEqual(["music_7", ...searchTools, "add", "enable"])
      const found = await client.call("search_tools", { query: "temperature" })
      expect(found.structuredContent).toMatchObject({ tools: [{ name: "forecast", arguments: ["region"] }], total: 1 })
      const called = await client.call("call_tool", { name: "forecast", arguments: { region: "Delft" } })
      expect(called.structuredContent).toEqual({ celsius: 5 })
      await client.close()
    })
  }
})

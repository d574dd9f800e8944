/** Servers of parts, in the package `skein`. */
import { describe, expect, it } from "@effect/vitest"
import {
  AsyncServer,
  catalogTools,
  disabled,
  guarded,
  invalidRequest,
  memoryState,
  mount,
  prompt,
  resource,
  state,
  tool,
  toolSearch,
  toolVersions,
  transformTools,
  visibleTo
} from "skein"
import { z } from "zod"
import { callText, withClient, withTransport } from "./kit.ts"

const shop = () => new AsyncServer({ name: "shop", version: "1.0.0" })
const names = (tools: ReadonlyArray<{ readonly name: string }>) => tools.map(({ name }) => name)

describe("mount", () => {
  it("prefixes the names and URIs of definitions and of whole servers", () => {
    const weather = new AsyncServer({ name: "weather", version: "1.0.0" })
      .use(memoryState({ maxEntries: 10 }))
      .tool("forecast", {}, () => "sunny")
    return withClient(
      shop().use(
        mount("data", tool("list", {}, () => "listed"), resource("data://cities", {}, () => "Delft")),
        mount({ prefix: "weather", separator: "." }, weather)
      ),
      async (client) => {
        expect(names(await client.listTools())).toEqual(["data_list", "weather.forecast"])
        expect(await callText(client, "weather.forecast")).toBe("sunny")
        expect(await client.readResource("data://data/cities")).toMatchObject({ contents: [{ text: "Delft" }] })
      }
    )
  })
})

describe("visibility", () => {
  it("shows definitions to some callers, and refuses others", async () => {
    const server = shop().use(
      visibleTo(({ principal }) => principal?.id === "admin", tool("reset", {}, () => "reset")),
      guarded(
        ({ principal }) => principal === undefined ? invalidRequest("members only") : undefined,
        tool("order", {}, () => "ordered")
      )
    )
    await withClient(server, async (client) => {
      expect(names(await client.listTools())).toEqual(["order"])
      await expect(client.callTool("order")).rejects.toThrow("members only")
    })
    await withTransport(server.transport({ principal: { id: "admin" } }), async (client) => {
      expect(names(await client.listTools())).toEqual(["reset", "order"])
      expect(await callText(client, "order")).toBe("ordered")
    })
  })

  it("enables a definition that was disabled", () => {
    const server = shop().use(disabled(tool("cellar", {}, () => "open")), tool("other", {}, () => "x"))
    return withClient(server, async (client) => {
      await expect(client.callTool("cellar")).rejects.toThrow("cellar")
      await server.setEnabled("tool", "cellar", true)
      expect(await callText(client, "cellar")).toBe("open")
      await expect(server.setEnabled("tool", "attic", true)).rejects.toThrow("attic")
    })
  })
})

describe("tools", () => {
  it("hides tools behind a search", () =>
    withClient(
      shop().use(toolSearch(
        { above: 1, always: ["today"] },
        tool("send_mail", { description: "Sends a letter" }, () => "sent"),
        tool("today", {}, () => "Monday")
      )),
      async (client) => {
        expect(names(await client.listTools())).toEqual(["today", "search_tools", "describe_tool", "call_tool"])
        expect(await callText(client, "call_tool", { name: "send_mail" })).toBe("sent")
        const found = await client.callTool("search_tools", { query: "letter" })
        expect(found.structuredContent).toMatchObject({ tools: [{ name: "send_mail" }] })
      }
    ))

  it("serves several versions of a tool", () =>
    withClient(
      shop().use(toolVersions(
        tool("bill", { version: "1.0" }, () => "old"),
        tool("bill", { version: "2.0" }, () => "new")
      )),
      async (client) => {
        expect(await callText(client, "bill")).toBe("new")
        const [listed] = await client.listTools()
        expect(listed?._meta?.["io.github.skein-mcp/versions"]).toEqual(["2.0", "1.0"])
      }
    ))

  it("changes names and arguments", () =>
    withClient(
      shop().use(transformTools(
        {
          except: { tags: ["internal"] },
          change: { createOrder: { name: "order", arguments: { shop: { value: "delft" }, cups: { default: 1 } } } }
        },
        tool(
          "createOrder",
          { input: z.object({ shop: z.string(), cups: z.int() }) },
          ({ cups, shop }) => `${cups} in ${shop}`
        ),
        tool("secret", { tags: ["internal"] }, () => "x")
      )),
      async (client) => {
        expect(names(await client.listTools())).toEqual(["order"])
        expect(await callText(client, "order")).toBe("1 in delft")
      }
    ))

  it("offers resources and prompts as tools", () =>
    withClient(
      shop().use(
        resource("shop://menu", {}, () => "# Tea"),
        prompt("p", {}, () => "x"),
        catalogTools({ getPrompt: false })
      ),
      async (client) => {
        expect(names(await client.listTools())).toEqual(["list_resources", "read_resource", "list_prompts"])
        expect(await callText(client, "read_resource", { uri: "shop://menu" })).toBe("# Tea")
      }
    ))
})

describe("state in a part", () => {
  it("keeps the state of a whole server that is mounted", () => {
    const count = state("count", { initial: 0, scope: "session", stateless: "user" })
    const part = new AsyncServer({ name: "part", version: "1.0.0" })
      .use(memoryState())
      .tool("count", {}, (_, { state }) => state(count).update((n) => n + 1))
    return withTransport(shop().use(mount("part", part)).transport({ principal: { id: "ada" } }), async (client) => {
      await client.callTool("part_count")
      expect(await callText(client, "part_count")).toBe("2")
    })
  })
})

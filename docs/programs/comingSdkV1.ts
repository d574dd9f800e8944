import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import { z } from "zod"
import { prices } from "./comingPrices.ts"

const server = new McpServer({ name: "shop", version: "1.0.0" })
const text = (text: string) => ({ content: [{ type: "text" as const, text }] })

server.registerTool(
  "price",
  {
    description: "Returns the price of a tea.",
    inputSchema: { tea: z.string(), grams: z.number().int().default(100) }
  },
  async ({ grams, tea }) => {
    const cents = prices[tea]
    return cents === undefined
      ? { ...text(`There is no tea "${tea}"`), isError: true }
      : text(`${(cents * grams) / 10_000} €`)
  }
)

server.registerTool("order", { inputSchema: { tea: z.string() } }, async ({ tea }) => {
  const answer = await server.server.elicitInput({
    message: `How much ${tea}?`,
    requestedSchema: { type: "object", properties: { grams: { type: "integer", minimum: 50 } }, required: ["grams"] }
  })
  if (answer.action !== "accept") return text("Nothing is ordered")
  return text(`${String(answer.content?.["grams"])} g of ${tea}`)
})

server.registerResource("prices", "shop://prices", { mimeType: "application/json" }, async (uri) => ({
  contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify(prices) }]
}))

server.registerPrompt("advise", { argsSchema: { guest: z.string() } }, ({ guest }) => ({
  messages: [{ role: "user", content: { type: "text", text: `Recommend a tea to ${guest}.` } }]
}))

await server.connect(new StdioServerTransport())

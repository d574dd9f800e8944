import { acceptedContent, inputRequired, inputResponse, McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { z } from "zod"
import { prices } from "./comingPrices.ts"

const text = (text: string) => ({ content: [{ type: "text" as const, text }] })

const makeServer = () => {
  const server = new McpServer({ name: "shop", version: "1.0.0" })

  server.registerTool(
    "price",
    {
      description: "Returns the price of a tea.",
      inputSchema: z.object({ tea: z.string(), grams: z.number().int().default(100) })
    },
    async ({ grams, tea }) => {
      const cents = prices[tea]
      return cents === undefined
        ? { ...text(`There is no tea "${tea}"`), isError: true }
        : text(`${(cents * grams) / 10_000} €`)
    }
  )

  server.registerTool("order", { inputSchema: z.object({ tea: z.string() }) }, async ({ tea }, { mcpReq }) => {
    if (inputResponse(mcpReq.inputResponses, "amount").kind === "missing") {
      return inputRequired({
        inputRequests: {
          amount: inputRequired.elicit({
            message: `How much ${tea}?`,
            requestedSchema: {
              type: "object",
              properties: { grams: { type: "integer", minimum: 50 } },
              required: ["grams"]
            }
          })
        }
      })
    }
    const answer = acceptedContent<{ grams: number }>(mcpReq.inputResponses, "amount")
    return text(answer === undefined ? "Nothing is ordered" : `${answer.grams} g of ${tea}`)
  })

  server.registerResource("prices", "shop://prices", { mimeType: "application/json" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify(prices) }]
  }))

  server.registerPrompt("advise", { argsSchema: z.object({ guest: z.string() }) }, ({ guest }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Recommend a tea to ${guest}.` } }]
  }))

  return server
}

serveStdio(makeServer)

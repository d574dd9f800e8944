/** Researches a topic in steps: searches, asks which sources to read, reads them, and writes a report. Over stdio. */
import {
  acceptedContent,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  McpServer,
  type ServerContext
} from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { randomBytes } from "node:crypto"
import { setTimeout } from "node:timers/promises"
import { z } from "zod"
import { read, search, type Source } from "./library.ts"

const requestState = createRequestStateCodec<{ readonly topic: string; readonly found: ReadonlyArray<Source> }>({
  key: randomBytes(32)
})

const readWithRetry = async (id: string, signal: AbortSignal): Promise<string> => {
  for (let delay = 50, retries = 3;; delay *= 2, retries--) {
    try {
      return await read(id, signal)
    } catch (error) {
      if (retries === 0 || signal.aborted) throw error
      await setTimeout(delay, undefined, { signal })
    }
  }
}

/** Reports progress, if the client wants it. */
const progress = async ({ mcpReq }: ServerContext, progress: number, total: number, message: string) => {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return
  await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total, message } })
}

serveStdio(() => {
  const server = new McpServer({ name: "research", version: "1.0.0" }, { requestState })
  server.registerTool(
    "research",
    {
      description: "Researches a topic and returns a report. Asks which sources to read.",
      inputSchema: z.object({ topic: z.string().min(2) })
    },
    async ({ topic }, context) => {
      const { inputResponses, signal } = context.mcpReq
      const answer = inputResponse(inputResponses, "sources")
      if (answer.kind === "missing") {
        const found = await search(topic, signal)
        if (found.length === 0) throw new Error(`No source knows "${topic}": try another topic`)
        const sources = inputRequired.elicit({
          message: "Which sources shall I read?",
          requestedSchema: {
            type: "object",
            properties: {
              ids: {
                type: "array",
                minItems: 1,
                items: { anyOf: found.map(({ id, title }) => ({ const: id, title })) }
              }
            },
            required: ["ids"]
          }
        })
        return inputRequired({ inputRequests: { sources }, requestState: await requestState.mint({ topic, found }) })
      }
      const { found } = context.mcpReq.requestState<{ readonly found: ReadonlyArray<Source> }>()!
      const Ids = z.object({ ids: z.array(z.enum(found.map(({ id }) => id))).min(1) })
      const ids = acceptedContent(inputResponses, "sources", Ids)?.ids
      if (ids === undefined) throw new Error("The user chose no source")
      let done = 0
      const texts = await Promise.all(ids.map(async (id) => {
        const title = found.find((source) => source.id === id)!.title
        const text = await readWithRetry(id, signal)
        await progress(context, ++done, ids.length, title)
        return `## ${title}\n\n${text}`
      }))
      return { content: [{ type: "text", text: `# ${topic}\n\n${texts.join("\n\n")}` }] }
    }
  )
  return server
})

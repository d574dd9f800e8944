/** The part of the application that uses servers: their tools, and their questions to the user. */
import type { AsyncClientPool, PoolOptions } from "skein/client"

/** Asks the user. `undefined`: the user does not answer. The signal aborts when the question is no longer open. */
export type Ask = (question: string, signal: AbortSignal) => Promise<string | undefined>

/** Answers the questions of the servers, field by field. */
export const answering = (ask: Ask): PoolOptions => ({
  elicit: async ({ message, problem, requestedSchema, server }, { signal }) => {
    const content: Record<string, string | number | boolean> = {}
    for (const [name, field] of Object.entries(requestedSchema.properties)) {
      const text = await ask(`${server.label} asks: ${message} (${field.title ?? name}) `, signal)
      if (text === undefined || text === "") return { action: "decline" }
      content[name] = field.type === "boolean" ? /^y/i.test(text) : field.type === "string" ? text : Number(text)
    }
    return problem(content) === undefined ? { action: "accept", content } : { action: "decline" }
  }
})

/** The tools of all servers: a line for each tool, or for a server that cannot be listed. */
export const listTools = async (pool: AsyncClientPool): Promise<ReadonlyArray<string>> =>
  (await pool.tools()).flatMap(({ error, items, server }) =>
    error === undefined
      ? items.map(({ description, name }) => `${server} ${name}: ${description ?? ""}`)
      : [`${server}: ${error.message}`]
  )

/** Calls a tool, and returns the text of its result. */
export const callTool = async (
  pool: AsyncClientPool,
  server: string,
  tool: string,
  args: Record<string, unknown> = {}
): Promise<string> => {
  const client = await pool.client(server)
  const { content } = await client.callTool(tool, args)
  return content.map((block) => block.type === "text" ? block.text : `[${block.type}]`).join("\n")
}

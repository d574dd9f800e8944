/**
 * Lists the tools of the configured servers, or calls one: `npm run dev -- example reserve '{"day":"Monday"}'`.
 */
import { createInterface } from "node:readline/promises"
import { AsyncClientPool, NodeConfig } from "skein/client"
import { answering, type Ask, callTool, listTools } from "./host.ts"

const ask: Ask = async (question, signal) => {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return await terminal.question(question, { signal })
  } finally {
    terminal.close()
  }
}

const main = async (server?: string, tool?: string, args = "{}"): Promise<void> => {
  const config = NodeConfig.file(process.env["MCP_CONFIG"] ?? "mcp.json")
  const pool = await AsyncClientPool.fromConfig(config, answering(ask))
  try {
    const text = server === undefined || tool === undefined
      ? (await listTools(pool)).join("\n")
      : await callTool(pool, server, tool, JSON.parse(args))
    console.log(text)
  } finally {
    await pool.close()
  }
}

main(...process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message)
  process.exitCode = 1
})

/**
 * Lists the tools of the configured servers, or calls one: `npm run dev -- example reserve '{"day":"Monday"}'`.
 */
import * as ClientPool from "@skein/client/ClientPool"
import * as NodeConfig from "@skein/client/NodeConfig"
import { createInterface } from "node:readline/promises"
import { type Ask, openHost } from "./host.ts"

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
  const host = openHost(ClientPool.layerFromConfig(config), ask)
  try {
    const text = server === undefined || tool === undefined
      ? (await host.listTools()).join("\n")
      : await host.callTool(server, tool, JSON.parse(args))
    console.log(text)
  } finally {
    await host.close()
  }
}

main(...process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message)
  process.exitCode = 1
})

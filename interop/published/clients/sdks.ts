/** The official SDK in old and new versions, and libraries that expose its methods. */
import { type Any, clientInfo, type Connect, type Connection, load } from "./library.ts"

const progressOptions = (onProgress: ((note: unknown) => void) | undefined) =>
  onProgress === undefined ? undefined : { onprogress: onProgress }

/** All pages of a list. Version 2 returns all of them at once, without a cursor. */
const pages = async (list: (params: Any) => Promise<Any>, member: string): Promise<ReadonlyArray<unknown>> => {
  const items: Array<unknown> = []
  let cursor: string | undefined
  do {
    const page = await list(cursor === undefined ? {} : { cursor })
    items.push(...page[member])
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return items
}

/** The connection of an SDK client, version 1 or 2. */
export const methodsOf = (client: Any, resultSchema: boolean): Connection => ({
  handshake: () => ({
    version: client.getServerVersion(),
    instructions: client.getInstructions?.(),
    capabilities: client.getServerCapabilities()
  }),
  tools: () => pages((params) => client.listTools(params), "tools"),
  call: (name, args, onProgress) =>
    resultSchema
      ? client.callTool({ name, arguments: args }, undefined, progressOptions(onProgress))
      : client.callTool({ name, arguments: args }, progressOptions(onProgress)),
  hasProgress: true,
  resources: () => pages((params) => client.listResources(params), "resources"),
  templates: () => pages((params) => client.listResourceTemplates(params), "resourceTemplates"),
  read: (uri) => client.readResource({ uri }),
  prompts: () => pages((params) => client.listPrompts(params), "prompts"),
  prompt: (name, args) => client.getPrompt({ name, arguments: args }),
  close: () => client.close()
})

/** Connects a client of version 1, installed as `name`. */
export const openSdk1 = async (name: string, server: Parameters<Connect>[0]): Promise<Any> => {
  const { Client } = await load(`${name}/client/index.js`)
  const client = new Client(clientInfo, { capabilities: {} })
  if (server.transport === "stdio") {
    const { StdioClientTransport } = await load(`${name}/client/stdio.js`)
    await client.connect(new StdioClientTransport({ command: server.command, args: server.args, stderr: "ignore" }))
  } else if (server.transport === "http") {
    const { StreamableHTTPClientTransport } = await load(`${name}/client/streamableHttp.js`)
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url)))
  } else {
    const { SSEClientTransport } = await load(`${name}/client/sse.js`)
    await client.connect(new SSEClientTransport(new URL(server.url)))
  }
  return client
}

export const sdk1 = (name: string): Connect => async (server) => methodsOf(await openSdk1(name, server), true)

/** Version 2 of the official SDK. `mode` is `legacy` (its default) or `auto`, which negotiates the newest revision. */
export const sdk2 = (name: string, mode: "legacy" | "auto"): Connect => async (server) => {
  const { Client, SSEClientTransport, StreamableHTTPClientTransport } = await load(name)
  const client = new Client(clientInfo, mode === "legacy" ? {} : { versionNegotiation: { mode } })
  if (server.transport === "stdio") {
    const { StdioClientTransport } = await load(`${name}/stdio`)
    await client.connect(new StdioClientTransport({ command: server.command, args: server.args, stderr: "ignore" }))
  } else {
    const Transport = server.transport === "http" ? StreamableHTTPClientTransport : SSEClientTransport
    await client.connect(new Transport(new URL(server.url)))
  }
  return methodsOf(client, false)
}

/** `mcp-client`. */
export const mcpClient: Connect = async (server) => {
  const { MCPClient } = await load("mcp-client")
  const client = new MCPClient(clientInfo)
  await client.connect(
    server.transport === "stdio"
      ? { type: "stdio", command: server.command, args: server.args, stderr: "ignore" }
      : { type: server.transport === "sse" ? "sse" : "httpStream", url: server.url }
  )
  return {
    tools: () => client.getAllTools(),
    call: (name, args, onProgress) =>
      client.callTool({ name, arguments: args }, onProgress === undefined ? {} : { requestOptions: { onProgress } }),
    resources: () => client.getAllResources(),
    templates: () => client.getAllResourceTemplates(),
    read: (uri) => client.getResource({ uri }),
    prompts: () => client.getAllPrompts(),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    close: () => client.close()
  }
}

/** `@google/genai`: `mcpToTool` turns an SDK client into a tool of Gemini. */
export const googleGenAi: Connect = async (server) => {
  const { mcpToTool } = await load("@google/genai")
  const client = await openSdk1("@modelcontextprotocol/sdk", server)
  const tool = mcpToTool(client)
  return {
    tools: () => tool.tool(),
    call: async (name, args) => {
      // It calls only tools that it has listed.
      await tool.tool()
      return tool.callTool([{ name, args }])
    },
    close: () => client.close()
  }
}

/** `mcp-remote`: a bridge from stdio to a server over HTTP, used through an SDK client. */
export const mcpRemote = (bin: string): Connect => async (server) => {
  if (server.transport === "stdio") throw new Error("mcp-remote connects to URLs only")
  const strategy = server.transport === "http" ? "http-only" : "sse-only"
  const args = [bin, server.url, "--transport", strategy, "--allow-http"]
  return sdk1("@modelcontextprotocol/sdk")({ transport: "stdio", command: process.execPath, args })
}

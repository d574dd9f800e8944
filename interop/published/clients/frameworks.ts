/** Agent frameworks and other libraries with a client of their own or their own form of results. */
import { type Any, clientInfo, type Connect, load } from "./library.ts"

/** `@ai-sdk/mcp`, an implementation of its own. */
export const aiSdk: Connect = async (server) => {
  const { createMCPClient } = await load("@ai-sdk/mcp")
  const { StdioMCPTransport } = await load("@ai-sdk/mcp/mcp-stdio")
  const client = await createMCPClient({
    name: clientInfo.name,
    transport: server.transport === "stdio"
      ? new StdioMCPTransport({ command: server.command, args: server.args, stderr: "ignore" })
      : { type: server.transport, url: server.url }
  })
  // `callTool` is not public: an application calls the `execute` functions of `tools()`.
  const tools = await client.tools()
  return {
    handshake: () => client.initializeResult,
    tools: async () => (await client.listTools()).tools,
    call: async (name, args) => {
      const tool = tools[name]
      if (tool === undefined) throw new Error("the library has no such tool")
      return tool.execute(args, { toolCallId: "1", messages: [] })
    },
    resources: async () => (await client.listResources()).resources,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    read: (uri) => client.readResource({ uri }),
    prompts: async () => (await client.listPrompts()).prompts,
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    close: () => client.close()
  }
}

/** `@mastra/mcp`. */
export const mastra: Connect = async (server) => {
  const { MCPClient } = await load("@mastra/mcp")
  const client = new MCPClient({
    id: Math.random().toString(36),
    servers: {
      it: server.transport === "stdio"
        ? { command: server.command, args: server.args, stderr: "ignore" }
        : { url: new URL(server.url) }
    }
  })
  const { it: tools } = await client.listToolsets()
  return {
    tools: async () =>
      Object.values(tools as Record<string, Any>).map(({ description, id }) => ({ name: id, description })),
    call: async (name, args) => {
      const tool = tools[name]
      if (tool === undefined) throw new Error("the library has no such tool")
      return tool.execute(args, {})
    },
    resources: async () => (await client.resources.list()).it,
    templates: async () => (await client.resources.templates()).it,
    read: (uri) => client.resources.read("it", uri),
    prompts: async () => (await client.prompts.list()).it,
    prompt: (name, args) => client.prompts.get({ serverName: "it", name, args }),
    close: () => client.disconnect()
  }
}

/** `mcporter`. */
export const mcporter: Connect = async (server) => {
  const { createRuntime } = await load("mcporter")
  const runtime = await createRuntime({
    servers: [{
      name: "it",
      command: server.transport === "stdio"
        ? { kind: "stdio", command: server.command, args: server.args, cwd: process.cwd() }
        : { kind: "http", url: new URL(server.url) }
    }],
    logger: { info() {}, warn() {}, error() {}, debug() {} }
  })
  return {
    handshake: async () => ({ instructions: await runtime.getInstructions?.("it") }),
    tools: () => runtime.listTools("it", { includeSchema: true }),
    call: (name, args) => runtime.callTool("it", name, { args }),
    resources: () => runtime.listResources("it"),
    read: (uri) => runtime.readResource("it", uri),
    close: () => runtime.close()
  }
}

/** `@openai/agents-core`. */
export const openAiAgents: Connect = async (server) => {
  const { MCPServerSSE, MCPServerStdio, MCPServerStreamableHttp } = await load("@openai/agents-core")
  // Its default is 5 seconds, which a busy machine may need to start a server.
  const options = { name: "it", clientSessionTimeoutSeconds: 60 }
  const client = server.transport === "stdio"
    ? new MCPServerStdio({ ...options, command: server.command, args: server.args })
    : new (server.transport === "http" ? MCPServerStreamableHttp : MCPServerSSE)({ ...options, url: server.url })
  await client.connect()
  return {
    tools: () => client.listTools(),
    call: (name, args) => client.callToolResult(name, args),
    resources: () => client.listResources(),
    templates: () => client.listResourceTemplates(),
    read: (uri) => client.readResource(uri),
    close: () => client.close()
  }
}

/** `@strands-agents/sdk`. */
export const strands: Connect = async (server) => {
  const { McpClient } = await load("@strands-agents/sdk")
  const [client] = await McpClient.loadServers({
    it: server.transport === "stdio"
      ? { command: server.command, args: server.args }
      : { url: server.url, transport: server.transport === "http" ? "streamable-http" : "sse" }
  })
  await client.connect()
  const tools: ReadonlyArray<Any> = await client.listTools()
  return {
    handshake: () => ({
      version: client.serverVersion,
      capabilities: client.serverCapabilities,
      instructions: client.serverInstructions
    }),
    tools: async () => tools.map(({ toolSpec }) => toolSpec),
    call: async (name, args) => {
      const tool = tools.find((tool) => tool.name === name)
      if (tool === undefined) throw new Error("the library has no such tool")
      return client.callTool(tool, args)
    },
    close: () => client.disconnect()
  }
}

/** `@huggingface/mcp-client`, which lists tools in the form of chat completions, and calls them for a model only. */
export const huggingFace: Connect = async (server) => {
  const { McpClient } = await load("@huggingface/mcp-client")
  const client = new McpClient({ endpointUrl: "http://127.0.0.1:9", model: "none" })
  await client.addMcpServer(
    server.transport === "stdio"
      ? { type: "stdio", config: { command: server.command, args: server.args } }
      : { type: server.transport, config: { url: server.url, options: {} } }
  )
  return {
    tools: async () => client.availableTools,
    call: async () => {
      throw new Error("the library calls tools for a model only")
    },
    close: () => client.cleanup()
  }
}

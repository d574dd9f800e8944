/**
 * A small server made with a published library for servers, on a port of 127.0.0.1:
 * `node frameworkServer.ts <library> <port>`. It lists more members than its revision has, as such servers do.
 */
import { type Any, load } from "./clients/library.ts"

const info = { name: "framework", version: "1.0.0", title: "A framework" }

/** Serves a handler of the Fetch API. */
const serve = async (fetch: (request: Request) => Promise<Response | null>, port: number) => {
  const { serve } = await load("@hono/node-server")
  const handle = async (request: Request) => await fetch(request) ?? new Response(null, { status: 404 })
  serve({ fetch: handle, port, hostname: "127.0.0.1" })
}

const schemas = async () => {
  const { z } = await load("zod")
  return {
    z,
    numbers: z.object({ a: z.number(), b: z.number().optional() }),
    sum: z.object({ sum: z.number() })
  }
}

const added = ({ a, b = 0 }: { readonly a: number; readonly b?: number }) => ({
  content: [{ type: "text", text: `${a + b}` }],
  structuredContent: { sum: a + b }
})

const noted = (uri: string) => ({ contents: [{ uri, text: "A note.", mimeType: "text/plain" }] })

const asked = { messages: [{ role: "user", content: { type: "text", text: "Add two numbers." } }] }

const makers: Readonly<Record<string, (port: number) => Promise<unknown>>> = {
  "mcp-lite": async (port) => {
    const { InMemorySessionAdapter, McpServer, StreamableHttpTransport } = await load("mcp-lite")
    const { numbers, sum, z } = await schemas()
    const server = new McpServer({ ...info, schemaAdapter: (schema: Any) => z.toJSONSchema(schema) })
    server.tool("add", {
      description: "Adds",
      title: "Add",
      inputSchema: numbers,
      outputSchema: sum,
      _meta: { shown: true },
      handler: added
    })
    server.tool("fail", {
      handler: () => {
        throw new Error("out of order")
      }
    })
    server.resource(
      "note://one",
      { name: "One", title: "The first", mimeType: "text/plain" },
      (uri: URL) => noted(uri.href)
    )
    server.prompt("ask", { title: "Ask", handler: () => asked })
    const transport = new StreamableHttpTransport({
      sessionAdapter: new InMemorySessionAdapter({ maxEventBufferSize: 1_024 })
    })
    return serve(transport.bind(server), port)
  },
  tmcp: async (port) => {
    const { McpServer } = await load("tmcp")
    const { ZodJsonSchemaAdapter } = await load("@tmcp/adapter-zod")
    const { HttpTransport } = await load("@tmcp/transport-http")
    const { numbers, sum } = await schemas()
    const server = new McpServer(info, {
      adapter: new ZodJsonSchemaAdapter(),
      capabilities: { tools: { listChanged: true }, prompts: {}, resources: {} }
    })
    server.tool({ name: "add", description: "Adds", title: "Add", schema: numbers, outputSchema: sum }, added)
    server.tool({ name: "fail", description: "Fails" }, () => {
      throw new Error("out of order")
    })
    server.resource({ name: "One", description: "The first", uri: "note://one" }, noted)
    server.prompt({ name: "ask", description: "Asks" }, () => asked)
    const transport = new HttpTransport(server, { path: "/mcp" })
    return serve((request) => transport.respond(request), port)
  },
  fastmcp: async (port) => {
    const { FastMCP, UserError } = await load("fastmcp")
    const { numbers } = await schemas()
    const server = new FastMCP({ name: info.name, version: info.version })
    server.addTool({
      name: "add",
      description: "Adds",
      annotations: { title: "Add", readOnlyHint: true },
      parameters: numbers,
      execute: async ({ a, b = 0 }: { readonly a: number; readonly b?: number }) => `${a + b}`
    })
    server.addTool({
      name: "fail",
      description: "Fails",
      execute: async () => {
        throw new UserError("out of order")
      }
    })
    server.addResource({
      uri: "note://one",
      name: "One",
      mimeType: "text/plain",
      load: async () => ({ text: "A note." })
    })
    server.addPrompt({ name: "ask", description: "Asks", load: async () => "Add two numbers." })
    await server.start({ transportType: "httpStream", httpStream: { port, host: "127.0.0.1" } })
  }
}

const [, , library, port] = process.argv
await makers[library!]!(Number(port))

/** The client of `@modelcontextprotocol/client` 2. */
import { Client } from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import type { AnyClient, Block, CallOutcome, Connect } from "./clients.ts"

const modern = "2026-07-28"

export const connect: Connect = async ({ args, command }, revision) => {
  const transport = new StdioClientTransport({ command, args: [...args] })
  const client = new Client({ name: "interop", version: "1.0.0" }, {
    ...(revision === undefined
      ? {}
      : revision === "auto"
      ? { versionNegotiation: { mode: "auto" } }
      : revision === modern
      ? { versionNegotiation: { mode: { pin: modern } } }
      : { supportedProtocolVersions: [revision] })
  })
  const complaints: Array<Error> = []
  client.onerror = (error) => complaints.push(error)
  await client.connect(transport)
  return {
    revision: client.getNegotiatedProtocolVersion(),
    serverName: client.getServerVersion()?.name,
    instructions: client.getInstructions(),
    pid: transport.pid ?? undefined,
    complaints,
    tools: async () => (await client.listTools()).tools as unknown as ReadonlyArray<Block>,
    call: async (name, args, { onProgress, signal } = {}) => {
      const result = await client.callTool({ name, arguments: { ...args } }, {
        ...(signal === undefined ? {} : { signal }),
        ...(onProgress === undefined ? {} : {
          onprogress: ({ message, progress, total }) => onProgress({ progress, total, message })
        })
      })
      return { ...result, isError: result.isError === true } as unknown as CallOutcome
    },
    // It walks the pages by itself.
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    templates: async () =>
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    read: async (uri) => (await client.readResource({ uri })).contents as ReadonlyArray<Block>,
    prompts: async () => (await client.listPrompts()).prompts as unknown as ReadonlyArray<Block>,
    prompt: async (name, args) =>
      (await client.getPrompt({ name, arguments: { ...args } })).messages as unknown as ReadonlyArray<Block>,
    close: () => client.close()
  } satisfies AnyClient
}

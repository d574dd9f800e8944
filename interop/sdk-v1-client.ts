/** The client of `@modelcontextprotocol/sdk` 1. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import type { AnyClient, Block, CallOutcome, Connect } from "./clients.ts"

/** The SDK always asks for its newest revision: here the request is changed on its way out. */
class AskingFor extends StdioClientTransport {
  revision: string | undefined
  agreed: string | undefined
  override send(message: JSONRPCMessage): Promise<void> {
    if (this.revision !== undefined && "method" in message && message.method === "initialize") {
      return super.send({ ...message, params: { ...message.params, protocolVersion: this.revision } })
    }
    return super.send(message)
  }
  setProtocolVersion(version: string): void {
    this.agreed = version
  }
}

export const connect: Connect = async ({ args, command }, revision) => {
  const transport = new AskingFor({ command, args: [...args] })
  transport.revision = revision === "auto" ? undefined : revision
  const client = new Client({ name: "interop", version: "1.0.0" })
  const complaints: Array<Error> = []
  client.onerror = (error) => complaints.push(error)
  await client.connect(transport as Parameters<Client["connect"]>[0])
  return {
    revision: transport.agreed,
    serverName: client.getServerVersion()?.name,
    instructions: client.getInstructions(),
    pid: transport.pid ?? undefined,
    complaints,
    tools: async () => (await client.listTools()).tools,
    call: async (name, args, { onProgress, signal } = {}) => {
      const result = await client.callTool({ name, arguments: { ...args } }, undefined, {
        ...(signal === undefined ? {} : { signal }),
        ...(onProgress === undefined ? {} : {
          onprogress: ({ message, progress, total }) => onProgress({ progress, total, message })
        })
      })
      return { ...result, isError: result.isError === true } as unknown as CallOutcome
    },
    resources: async () => {
      const uris: Array<string> = []
      let cursor: string | undefined
      do {
        const page = await client.listResources(cursor === undefined ? {} : { cursor })
        uris.push(...page.resources.map(({ uri }) => uri))
        cursor = page.nextCursor
      } while (cursor !== undefined)
      return uris
    },
    templates: async () =>
      (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    read: async (uri) => (await client.readResource({ uri })).contents as ReadonlyArray<Block>,
    prompts: async () => (await client.listPrompts()).prompts,
    prompt: async (name, args) =>
      (await client.getPrompt({ name, arguments: { ...args } })).messages as unknown as ReadonlyArray<Block>,
    close: () => client.close()
  } satisfies AnyClient
}

/** The client of `@modelcontextprotocol/client` 2. */
import * as Sdk from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import type { Revision } from "@skein/protocol/Revision"
import * as Clients from "./clients.ts"
import type { AnyClient, Block, CallOptions, CallOutcome, Connect, Heard, Sent, TalkingClient } from "./clients.ts"

const modern = "2026-07-28"

const speaking = (revision: Revision | "auto" | undefined): Sdk.ClientOptions =>
  revision === undefined
    ? {}
    : revision === "auto"
    ? { versionNegotiation: { mode: "auto" } }
    : revision === modern
    ? { versionNegotiation: { mode: { pin: modern } } }
    : { supportedProtocolVersions: [revision] }

const options = ({ onProgress, signal }: CallOptions) => ({
  ...(signal === undefined ? {} : { signal }),
  ...(onProgress === undefined ? {} : {
    onprogress: ({ message, progress, total }: Sdk.Progress) => onProgress({ progress, total, message })
  })
})

const outcome = (result: Sdk.CallToolResult) =>
  ({ ...result, isError: result.isError === true }) as unknown as CallOutcome

const face = (client: Sdk.Client) => ({
  revision: client.getNegotiatedProtocolVersion(),
  serverName: client.getServerVersion()?.name,
  instructions: client.getInstructions(),
  tools: async () => (await client.listTools()).tools as unknown as ReadonlyArray<Block>,
  call: async (name: string, args: Block, given: CallOptions = {}) =>
    outcome(await client.callTool({ name, arguments: { ...args } }, options(given))),
  // It walks the pages by itself.
  resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
  templates: async () => (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  read: async (uri: string) => (await client.readResource({ uri })).contents as ReadonlyArray<Block>,
  prompts: async () => (await client.listPrompts()).prompts as unknown as ReadonlyArray<Block>,
  prompt: async (name: string, args: Readonly<Record<string, string>>) =>
    (await client.getPrompt({ name, arguments: { ...args } })).messages as unknown as ReadonlyArray<Block>,
  close: () => client.close()
})

export const connect: Connect = async ({ args, command }, revision) => {
  const transport = new StdioClientTransport({ command, args: [...args] })
  const client = new Sdk.Client({ name: "interop", version: "1.0.0" }, speaking(revision))
  const complaints: Array<Error> = []
  client.onerror = (error) => complaints.push(error)
  await client.connect(transport)
  return { ...face(client), pid: transport.pid ?? undefined, complaints } satisfies AnyClient
}

export interface TalkOptions extends Clients.TalkOptions {
  /** Whether it says that it can be asked anything; true by default. */
  readonly able?: boolean
}

export const talk = async (
  server: Clients.ServerCommand | Clients.ServerAddress,
  { able = true, revision, user = "Ada" }: TalkOptions = {}
): Promise<TalkingClient & { readonly client: Sdk.Client }> => {
  const sent: Array<Sent> = []
  const asked: Array<string> = []
  const complaints: Array<Error> = []
  const heard: Heard = { updated: [], lists: [], logs: [], completed: [] }
  const fetch = Clients.recording(sent)
  const http = "url" in server && server.transport === "http"
    ? new Sdk.StreamableHTTPClientTransport(new URL(server.url), { fetch, reconnectionOptions: Clients.soon })
    : undefined
  const transport = http ?? ("url" in server
    ? new Sdk.SSEClientTransport(new URL(server.url), { fetch })
    : new StdioClientTransport({ command: server.command, args: [...server.args] }))
  const capabilities = able ? Clients.capabilities : {}
  const client = new Sdk.Client({ name: user, version: "1.0.0" }, { ...speaking(revision), capabilities })
  client.onerror = (error) => complaints.push(error)
  const answers = Clients.answers(user)
  if (able) {
    client.setRequestHandler("elicitation/create", ({ method, params }) => {
      asked.push(method)
      return answers.elicit(params)
    })
    client.setRequestHandler("sampling/createMessage", ({ method }) => {
      asked.push(method)
      return answers.sample
    })
    client.setRequestHandler("roots/list", ({ method }) => {
      asked.push(method)
      return answers.roots
    })
  }
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void heard.updated.push(params.uri))
  client.setNotificationHandler(
    "notifications/elicitation/complete",
    ({ params }) => void heard.completed.push(params.elicitationId)
  )
  client.setNotificationHandler("notifications/tools/list_changed", () => void heard.lists.push("tools"))
  client.setNotificationHandler("notifications/message", ({ params }) => void heard.logs.push(params))
  await client.connect(transport)
  const anyone = face(client)
  const isModern = anyone.revision === modern
  const complete = async (params: Sdk.CompleteRequest["params"]) => (await client.complete(params)).completion.values
  return {
    ...anyone,
    client,
    pid: undefined,
    complaints,
    heard,
    asked,
    sent,
    get sessionId() {
      return http?.sessionId
    },
    watch: async ({ resource, tools }) => {
      if (isModern) {
        const subscription = await client.listen({
          ...(tools === undefined ? {} : { toolsListChanged: tools }),
          ...(resource === undefined ? {} : { resourceSubscriptions: [resource] })
        })
        return () => subscription.close()
      }
      if (resource === undefined) return async () => {}
      await client.subscribeResource({ uri: resource })
      return async () => void await client.unsubscribeResource({ uri: resource })
    },
    logged: async (level, name, args) => {
      if (!isModern) {
        await client.setLoggingLevel(level)
        return anyone.call(name, args)
      }
      const _meta = { [Sdk.LOG_LEVEL_META_KEY]: level }
      return outcome(await client.callTool({ name, arguments: { ...args }, _meta }))
    },
    completePrompt: (name, argument, value) =>
      complete({ ref: { type: "ref/prompt", name }, argument: { name: argument, value } }),
    completeTemplate: (uri, variable, value) =>
      complete({ ref: { type: "ref/resource", uri }, argument: { name: variable, value } }),
    ping: () => client.ping(),
    terminate: async () => http?.terminateSession()
  }
}

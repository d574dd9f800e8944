/** Wraps the client of `@modelcontextprotocol/client` 2 as a `TestClient`. */
import * as Sdk from "@modelcontextprotocol/client"
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio"
import type { Revision } from "@skein/protocol/Revision"
import * as Clients from "./testClient.ts"
import type {
  Block,
  CallOptions,
  CallOutcome,
  Connect,
  InteractiveClient,
  Received,
  SentRequest,
  TestClient
} from "./testClient.ts"

const modern = "2026-07-28"

export const revisionOptions = (revision: Revision | "auto" | undefined): Sdk.ClientOptions =>
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

const methodsOf = (client: Sdk.Client) => ({
  revision: client.getNegotiatedProtocolVersion(),
  serverName: client.getServerVersion()?.name,
  instructions: client.getInstructions(),
  tools: async () => (await client.listTools()).tools as unknown as ReadonlyArray<Block>,
  call: async (name: string, args: Block, given: CallOptions = {}) =>
    outcome(await client.callTool({ name, arguments: { ...args } }, options(given))),
  // The SDK requests all pages.
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
  const client = new Sdk.Client({ name: "interop", version: "1.0.0" }, revisionOptions(revision))
  const clientErrors: Array<Error> = []
  client.onerror = (error) => clientErrors.push(error)
  await client.connect(transport)
  return { ...methodsOf(client), pid: transport.pid ?? undefined, clientErrors } satisfies TestClient
}

export interface InteractiveOptions extends Clients.InteractiveOptions {
  /** Whether the client declares capabilities for server requests; true by default. */
  readonly canBeAsked?: boolean
}

export const connectInteractive = async (
  server: Clients.ServerCommand | Clients.ServerAddress,
  { canBeAsked = true, revision, user = "Ada" }: InteractiveOptions = {}
): Promise<InteractiveClient & { readonly client: Sdk.Client }> => {
  const sent: Array<SentRequest> = []
  const asked: Array<string> = []
  const clientErrors: Array<Error> = []
  const received: Received = { updated: [], lists: [], logs: [], completed: [] }
  const fetch = Clients.recordingFetch(sent)
  const http = "url" in server && server.transport === "http"
    ? new Sdk.StreamableHTTPClientTransport(new URL(server.url), {
      fetch,
      reconnectionOptions: Clients.fastReconnection
    })
    : undefined
  const transport = http ?? ("url" in server
    ? new Sdk.SSEClientTransport(new URL(server.url), { fetch })
    : new StdioClientTransport({ command: server.command, args: [...server.args] }))
  const capabilities = canBeAsked ? Clients.capabilities : {}
  const client = new Sdk.Client({ name: user, version: "1.0.0" }, { ...revisionOptions(revision), capabilities })
  client.onerror = (error) => clientErrors.push(error)
  const userAnswers = Clients.userAnswers(user)
  if (canBeAsked) {
    client.setRequestHandler("elicitation/create", ({ method, params }) => {
      asked.push(method)
      return userAnswers.elicit(params)
    })
    client.setRequestHandler("sampling/createMessage", ({ method }) => {
      asked.push(method)
      return userAnswers.sample
    })
    client.setRequestHandler("roots/list", ({ method }) => {
      asked.push(method)
      return userAnswers.roots
    })
  }
  client.setNotificationHandler(
    "notifications/resources/updated",
    ({ params }) => void received.updated.push(params.uri)
  )
  client.setNotificationHandler(
    "notifications/elicitation/complete",
    ({ params }) => void received.completed.push(params.elicitationId)
  )
  client.setNotificationHandler("notifications/tools/list_changed", () => void received.lists.push("tools"))
  client.setNotificationHandler("notifications/message", ({ params }) => void received.logs.push(params))
  await client.connect(transport)
  const methods = methodsOf(client)
  const isModern = methods.revision === modern
  const complete = async (params: Sdk.CompleteRequest["params"]) => (await client.complete(params)).completion.values
  return {
    ...methods,
    client,
    pid: undefined,
    clientErrors,
    received,
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
        return methods.call(name, args)
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

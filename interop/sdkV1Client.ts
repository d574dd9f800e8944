/** Wraps the client of `@modelcontextprotocol/sdk` 1 as a `TestClient`. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Types from "@modelcontextprotocol/sdk/types.js"
import * as Clients from "./testClient.ts"
import type {
  Block,
  CallOptions,
  CallOutcome,
  Connect,
  ConnectInteractive,
  Received,
  SentRequest,
  TestClient
} from "./testClient.ts"

/**
 * Replaces the revision in `initialize`, since the SDK always requests its newest one. Returns a function for the
 * negotiated revision.
 */
export const requestRevision = (transport: Transport, revision: string | undefined): () => string | undefined => {
  let agreed: string | undefined
  const send = transport.send.bind(transport)
  const set = transport.setProtocolVersion?.bind(transport)
  transport.send = (message, options) =>
    revision !== undefined && "method" in message && message.method === "initialize"
      ? send({ ...message, params: { ...message.params, protocolVersion: revision } }, options)
      : send(message, options)
  transport.setProtocolVersion = (version) => {
    agreed = version
    set?.(version)
  }
  return () => agreed
}

const options = ({ onProgress, signal }: CallOptions) => ({
  ...(signal === undefined ? {} : { signal }),
  ...(onProgress === undefined ? {} : {
    onprogress: ({ message, progress, total }: Types.Progress) => onProgress({ progress, total, message })
  })
})

const methodsOf = (client: Client) => ({
  serverName: client.getServerVersion()?.name,
  instructions: client.getInstructions(),
  tools: async () => (await client.listTools()).tools,
  call: async (name: string, args: Block, given: CallOptions = {}) => {
    const result = await client.callTool({ name, arguments: { ...args } }, undefined, options(given))
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
  templates: async () => (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  read: async (uri: string) => (await client.readResource({ uri })).contents as ReadonlyArray<Block>,
  prompts: async () => (await client.listPrompts()).prompts,
  prompt: async (name: string, args: Readonly<Record<string, string>>) =>
    (await client.getPrompt({ name, arguments: { ...args } })).messages as unknown as ReadonlyArray<Block>,
  close: () => client.close()
})

export const connect: Connect = async ({ args, command }, revision) => {
  const transport = new StdioClientTransport({ command, args: [...args] })
  const agreed = requestRevision(transport, revision === "auto" ? undefined : revision)
  const client = new Client({ name: "interop", version: "1.0.0" })
  const clientErrors: Array<Error> = []
  client.onerror = (error) => clientErrors.push(error)
  await client.connect(transport)
  return {
    ...methodsOf(client),
    revision: agreed(),
    pid: transport.pid ?? undefined,
    clientErrors
  } satisfies TestClient
}

export const connectInteractive: ConnectInteractive = async (server, { revision, user = "Ada" } = {}) => {
  const sent: Array<SentRequest> = []
  const asked: Array<string> = []
  const clientErrors: Array<Error> = []
  const received: Received = { updated: [], lists: [], logs: [], completed: [] }
  const fetch = Clients.recordingFetch(sent)
  const http = "url" in server && server.transport === "http"
    ? new StreamableHTTPClientTransport(new URL(server.url), { fetch, reconnectionOptions: Clients.fastReconnection })
    : undefined
  const transport = http ?? ("url" in server
    ? new SSEClientTransport(new URL(server.url), { fetch })
    : new StdioClientTransport({ command: server.command, args: [...server.args] }))
  const agreed = requestRevision(transport as Transport, revision === "auto" ? undefined : revision)
  const client = new Client({ name: user, version: "1.0.0" }, { capabilities: Clients.capabilities })
  client.onerror = (error) => clientErrors.push(error)
  const userAnswers = Clients.userAnswers(user)
  client.setRequestHandler(Types.ElicitRequestSchema, ({ method, params }) => {
    asked.push(method)
    return userAnswers.elicit(params)
  })
  client.setRequestHandler(Types.CreateMessageRequestSchema, ({ method }) => {
    asked.push(method)
    return userAnswers.sample
  })
  client.setRequestHandler(Types.ListRootsRequestSchema, ({ method }) => {
    asked.push(method)
    return userAnswers.roots
  })
  client.setNotificationHandler(Types.ResourceUpdatedNotificationSchema, ({ params }) => {
    received.updated.push(params.uri)
  })
  client.setNotificationHandler(Types.ElicitationCompleteNotificationSchema, ({ params }) => {
    received.completed.push(params.elicitationId)
  })
  client.setNotificationHandler(Types.ToolListChangedNotificationSchema, () => void received.lists.push("tools"))
  client.setNotificationHandler(Types.LoggingMessageNotificationSchema, ({ params }) => void received.logs.push(params))
  await client.connect(transport as Transport)
  const methods = methodsOf(client)
  const complete = async (params: Types.CompleteRequest["params"]) => (await client.complete(params)).completion.values
  return {
    ...methods,
    revision: agreed(),
    pid: undefined,
    clientErrors,
    received,
    asked,
    sent,
    get sessionId() {
      return http?.sessionId
    },
    watch: async ({ resource }) => {
      if (resource === undefined) return async () => {}
      await client.subscribeResource({ uri: resource })
      return async () => void await client.unsubscribeResource({ uri: resource })
    },
    logged: async (level, name, args) => {
      await client.setLoggingLevel(level)
      return methods.call(name, args)
    },
    completePrompt: (name, argument, value) =>
      complete({ ref: { type: "ref/prompt", name }, argument: { name: argument, value } }),
    completeTemplate: (uri, variable, value) =>
      complete({ ref: { type: "ref/resource", uri }, argument: { name: variable, value } }),
    ping: () => client.ping(),
    terminate: async () => http?.terminateSession()
  }
}

/**
 * Reads a server with Skein's client and with the clients of both official SDKs, into one form that can be compared.
 */
import * as SdkV2 from "@modelcontextprotocol/client"
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio"
import { Client as SdkV1 } from "@modelcontextprotocol/sdk/client/index.js"
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js"
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"

/** How a server is started. */
export interface Command {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

/** A server: a command over stdio, or a URL. */
export type Target =
  | Command
  | {
    readonly transport: "http" | "sse"
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
  }

/** The requests beyond the handshake and the lists. */
export interface Requests {
  readonly calls: ReadonlyArray<readonly [tool: string, args: Readonly<Record<string, unknown>>]>
  readonly reads: ReadonlyArray<string>
  readonly prompts: ReadonlyArray<readonly [prompt: string, args: Readonly<Record<string, string>>]>
}

/** The results of a client, by request. A failed request has `{ code, message }`. */
export type Reading = Readonly<Record<string, unknown>>

type Json = Readonly<Record<string, unknown>>

/** One client, with the methods that a reading needs. */
interface Reader {
  readonly handshake: Json
  readonly capabilities: Json
  readonly list: (name: ListName) => Promise<unknown>
  readonly call: (name: string, args: Json) => Promise<unknown>
  readonly read: (uri: string) => Promise<unknown>
  readonly prompt: (name: string, args: Readonly<Record<string, string>>) => Promise<unknown>
}

export const listNames = ["tools", "resources", "resourceTemplates", "prompts"] as const
type ListName = typeof listNames[number]

const capabilityOf: Readonly<Record<ListName, string>> = {
  tools: "tools",
  resources: "resources",
  resourceTemplates: "resources",
  prompts: "prompts"
}

const unknownTool = "skein-no-such-tool"
const unknownResource = "skein-no-such-scheme://nothing"
const unknownPrompt = "skein-no-such-prompt"

/** Sends all requests, one after the other. */
const readAll = async (reader: Reader, { calls, prompts, reads }: Requests): Promise<Reading> => {
  const results: Record<string, unknown> = { ...reader.handshake, capabilities: reader.capabilities }
  const has = (name: string) => reader.capabilities[name] !== undefined
  const record = async (name: string, result: () => Promise<unknown>) => {
    results[name] = await result().catch((error: unknown) => ({ failed: error }))
  }
  for (const name of listNames) {
    if (has(capabilityOf[name])) await record(name, () => reader.list(name))
  }
  if (has("tools")) {
    for (const [tool, args] of calls) {
      await record(`call ${tool} ${JSON.stringify(args)}`, () => reader.call(tool, args))
    }
    await record("unknown tool", () => reader.call(unknownTool, {}))
  }
  if (has("resources")) {
    for (const uri of reads) await record(`read ${uri}`, () => reader.read(uri))
    await record("unknown resource", () => reader.read(unknownResource))
  }
  if (has("prompts")) {
    for (const [prompt, args] of prompts) {
      await record(`prompt ${prompt} ${JSON.stringify(args)}`, () => reader.prompt(prompt, args))
    }
    await record("unknown prompt", () => reader.prompt(unknownPrompt, {}))
  }
  return JSON.parse(JSON.stringify(results)) as Reading
}

// Both versions of the SDK add this prefix to the message of an error. A server of version 1 sends it as well.
const errorPrefix = /^(MCP error -?\d+: )+/

const codeOf = (code: number, message: string) => ({ code, message: message.replace(errorPrefix, "") })

const skeinFailure = ({ reason }: ClientError): unknown =>
  reason._tag === "ProtocolError"
    ? codeOf(reason.error.code ?? 0, reason.error.message)
    : { reason: reason._tag, message: reason.message }

const skeinTransport = (target: Target) =>
  "url" in target
    ? NodeHttp.transport({ url: target.url, headers: target.headers })
    : Stdio.transport({ ...target, stderr: "ignore" })

/** Reads a server with Skein's client. */
export const readWithSkein = (target: Target, requests: Requests): Promise<Reading> => {
  const program = Effect.gen(function*() {
    const client = yield* Client.make(skeinTransport(target), { probeTimeout: "30 seconds" })
    const run = <A>(effect: Effect.Effect<A, ClientError>) => Effect.runPromise(Effect.mapError(effect, skeinFailure))
    const lists = {
      tools: client.listTools,
      resources: client.listResources,
      resourceTemplates: client.listResourceTemplates,
      prompts: client.listPrompts
    }
    return yield* Effect.promise(() =>
      readAll({
        handshake: { revision: client.revision, server: client.server, instructions: client.instructions },
        capabilities: client.capabilities as Json,
        list: (name) => run<unknown>(lists[name]()),
        call: (name, args) => run(client.callTool(name, args)),
        read: (uri) => run(client.readResource(uri)),
        prompt: (name, args) => run(client.getPrompt(name, args))
      }, requests)
    )
  })
  return Effect.runPromise(Effect.provide(Effect.scoped(program), Logger.layer([])))
}

/** All pages of a list. A cursor that repeats ends it. */
const allPages = async <A>(
  page: (cursor: string | undefined) => Promise<{ readonly items: ReadonlyArray<A>; readonly next: string | undefined }>
) => {
  const items: Array<A> = []
  const seen = new Set<string | undefined>()
  let cursor: string | undefined
  do {
    seen.add(cursor)
    const { items: more, next } = await page(cursor)
    items.push(...more)
    cursor = next
  } while (cursor !== undefined && !seen.has(cursor))
  return items
}

const sdkFailure = (error: unknown): unknown => {
  const { code, message } = error as { readonly code?: number; readonly message: string }
  return code === undefined ? { message } : codeOf(code, message)
}

const rejectWith = <A>(promise: Promise<A>): Promise<A> =>
  promise.catch((error: unknown) => Promise.reject(sdkFailure(error)))

const client = { name: "interop", version: "1.0.0" }

/** Reads a server with the client of `@modelcontextprotocol/sdk` 1. */
export const readWithSdkV1 = async (target: Target, requests: Requests): Promise<Reading> => {
  const transport = ("url" in target
    ? target.transport === "http"
      ? new StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: target.headers } })
      : new SSEClientTransport(new URL(target.url), { requestInit: { headers: target.headers } })
    : new StdioV1({ ...target, args: [...target.args], stderr: "ignore" })) as Transport
  let revision: string | undefined
  const set = transport.setProtocolVersion?.bind(transport)
  transport.setProtocolVersion = (version) => {
    revision = version
    set?.(version)
  }
  const sdk = new SdkV1(client)
  await sdk.connect(transport)
  const pages = {
    tools: async (cursor: { cursor?: string }) => {
      const { nextCursor, tools } = await sdk.listTools(cursor)
      return { items: tools as ReadonlyArray<unknown>, next: nextCursor }
    },
    resources: async (cursor: { cursor?: string }) => {
      const { nextCursor, resources } = await sdk.listResources(cursor)
      return { items: resources as ReadonlyArray<unknown>, next: nextCursor }
    },
    resourceTemplates: async (cursor: { cursor?: string }) => {
      const { nextCursor, resourceTemplates } = await sdk.listResourceTemplates(cursor)
      return { items: resourceTemplates as ReadonlyArray<unknown>, next: nextCursor }
    },
    prompts: async (cursor: { cursor?: string }) => {
      const { nextCursor, prompts } = await sdk.listPrompts(cursor)
      return { items: prompts as ReadonlyArray<unknown>, next: nextCursor }
    }
  }
  try {
    return await readAll({
      handshake: { revision, server: sdk.getServerVersion(), instructions: sdk.getInstructions() },
      capabilities: sdk.getServerCapabilities() as Json,
      list: (name) => rejectWith(allPages((cursor) => pages[name](cursor === undefined ? {} : { cursor }))),
      call: (name, args) => rejectWith(sdk.callTool({ name, arguments: args })),
      read: (uri) => rejectWith(sdk.readResource({ uri })),
      prompt: (name, args) => rejectWith(sdk.getPrompt({ name, arguments: args }))
    }, requests)
  } finally {
    await sdk.close()
  }
}

/** Reads a server with the client of `@modelcontextprotocol/client` 2, which negotiates the newest revision. */
export const readWithSdkV2 = async (target: Target, requests: Requests): Promise<Reading> => {
  const transport = "url" in target
    ? target.transport === "http"
      ? new SdkV2.StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: target.headers } })
      : new SdkV2.SSEClientTransport(new URL(target.url), { requestInit: { headers: target.headers } })
    : new StdioV2({ ...target, args: [...target.args], stderr: "ignore" })
  const sdk = new SdkV2.Client(client, { versionNegotiation: { mode: "auto" } })
  await sdk.connect(transport)
  const lists: Readonly<Record<ListName, () => Promise<unknown>>> = {
    tools: async () => (await sdk.listTools()).tools,
    resources: async () => (await sdk.listResources()).resources,
    resourceTemplates: async () => (await sdk.listResourceTemplates()).resourceTemplates,
    prompts: async () => (await sdk.listPrompts()).prompts
  }
  try {
    return await readAll({
      handshake: {
        revision: sdk.getNegotiatedProtocolVersion(),
        server: sdk.getServerVersion(),
        instructions: sdk.getInstructions()
      },
      capabilities: sdk.getServerCapabilities() as Json,
      list: (name) => rejectWith(lists[name]()),
      call: (name, args) => rejectWith(sdk.callTool({ name, arguments: { ...args } })),
      read: (uri) => rejectWith(sdk.readResource({ uri })),
      prompt: (name, args) => rejectWith(sdk.getPrompt({ name, arguments: { ...args } }))
    }, requests)
  } finally {
    await sdk.close()
  }
}

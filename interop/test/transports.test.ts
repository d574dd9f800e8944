/**
 * What the transports of the official clients can do, and their clients do not do by themselves: to be taken up by another process,
 * and to send batches.
 */
import * as V2 from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Block, soon } from "../clients.ts"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import * as Talk from "../fixtures/skein-talk.ts"
import * as SdkV2 from "../sdk-v2-client.ts"
import { serve, type Serving } from "../serving.ts"

let talk: Serving
beforeAll(async () => {
  talk = await serve(Talk.server())
})
afterAll(() => talk.close())

const about = { name: "interop", version: "1" }
const params = { name: "steps", arguments: {} }

interface Resumption {
  readonly resumptionToken?: string
  readonly onresumptiontoken?: (token: string) => void
  readonly onprogress?: (progress: { readonly progress: number }) => void
}

/** A client that begins a session, or goes on with one. */
interface Process {
  readonly sessionId: string | undefined
  readonly steps: (options: Resumption) => Promise<unknown>
  readonly terminate: () => Promise<void>
  readonly close: () => Promise<void>
}

const begun: Readonly<Record<string, (sessionId?: string) => Promise<Process>>> = {
  "sdk-v1": async (sessionId) => {
    const client = new Client(about)
    const options = { reconnectionOptions: soon, ...(sessionId === undefined ? {} : { sessionId }) }
    const transport = new StreamableHTTPClientTransport(new URL(talk.http.url), options)
    await client.connect(transport as Parameters<Client["connect"]>[0])
    return {
      sessionId: transport.sessionId,
      steps: (options) => client.request({ method: "tools/call", params }, CallToolResultSchema, options),
      terminate: () => transport.terminateSession(),
      close: () => client.close()
    }
  },
  "sdk-v2": async (sessionId) => {
    const client = new V2.Client(about)
    const options = sessionId === undefined ? {} : { sessionId, protocolVersion: "2025-11-25" }
    const transport = new V2.StreamableHTTPClientTransport(new URL(talk.http.url), {
      reconnectionOptions: soon,
      ...options
    })
    await client.connect(transport)
    return {
      sessionId: transport.sessionId,
      steps: (options) => client.callTool(params, options),
      terminate: () => transport.terminateSession(),
      close: () => client.close()
    }
  }
}

for (const [name, begin] of Object.entries(begun)) {
  it(`2025-11-25 · ${name}: what one client has begun another goes on with, from the last event that was seen`, async () => {
    const first = await begin()
    const tokens: Array<string> = []
    const progress: Array<number> = []
    const left = first.steps({
      onresumptiontoken: (token) => void tokens.push(token),
      onprogress: (note) => void progress.push(note.progress)
    }).then(() => "answered", () => "left")
    await eventually(() => expect(progress).toEqual([1, 2, 3]))
    await first.close()
    expect(await left).toBe("left")

    const helper = await SdkV2.talk(talk.http, { revision: "2026-07-28" })
    expect(textOf(await helper.call("release", {}))).toBe("1")
    await helper.close()

    const second = await begin(first.sessionId)
    const resumptionToken = tokens.at(-1)!
    expect(textOf(await second.steps({ resumptionToken }) as { content: ReadonlyArray<Block> })).toBe("four steps")
    await second.terminate()
    await second.close()
    await eventually(() => expect([talk.endpoint.sessions, talk.endpoint.streams]).toEqual([0, 0]))
  })
}

describe("2025-03-26 · implementations MUST support receiving JSON-RPC batches", () => {
  const transports = {
    "sdk-v1": () => new StreamableHTTPClientTransport(new URL(talk.http.url)),
    "sdk-v2": () => new V2.StreamableHTTPClientTransport(new URL(talk.http.url))
  }
  for (const [name, make] of Object.entries(transports)) {
    it(`those that the transport of ${name} sends`, async () => {
      const transport = make()
      const heard: Array<{ readonly id?: unknown; readonly result?: unknown; readonly error?: unknown }> = []
      transport.onmessage = (message: object) => void heard.push(message)
      await transport.start()
      const request = (id: number, method: string, params = {}) => ({ jsonrpc: "2.0" as const, id, method, params })
      const call = (id: number, name: string, args = {}) => request(id, "tools/call", { name, arguments: args })
      await transport.send(
        request(0, "initialize", { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: about })
      )
      transport.setProtocolVersion("2025-03-26")
      await transport.send({ jsonrpc: "2.0", method: "notifications/initialized" })
      await transport.send([
        request(1, "ping"),
        call(2, "region", { region: "eu" }),
        { jsonrpc: "2.0", method: "notifications/roots/list_changed" },
        request(3, "no/such/method")
      ])
      await eventually(() => expect(heard).toHaveLength(4))
      expect(heard.slice(1).toSorted((a, b) => Number(a.id) - Number(b.id))).toMatchObject([
        { id: 1, result: {} },
        { id: 2, result: { content: [{ text: "Working in eu" }] } },
        { id: 3, error: { code: -32601 } }
      ])
      await transport.terminateSession()
      await transport.close()
      expect(talk.endpoint.sessions).toBe(0)
    })
  }
})

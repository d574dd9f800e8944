/**
 * Features of the official client transports that the clients do not use themselves: continuing a session in another
 * process, and batches.
 */
import * as V2 from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Block, fastReconnection } from "../testClient.ts"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import * as Interactive from "../fixtures/skeinInteractive.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

let server: RunningServer
beforeAll(async () => {
  server = await startServer(Interactive.server())
})
afterAll(() => server.close())

const clientInfo = { name: "interop", version: "1" }
const params = { name: "steps", arguments: {} }

interface Resumption {
  readonly resumptionToken?: string
  readonly onresumptiontoken?: (token: string) => void
  readonly onprogress?: (progress: { readonly progress: number }) => void
}

/** A client that opens a session, or continues one. */
interface SessionClient {
  readonly sessionId: string | undefined
  readonly steps: (options: Resumption) => Promise<unknown>
  readonly terminate: () => Promise<void>
  readonly close: () => Promise<void>
}

const connectors: Readonly<Record<string, (sessionId?: string) => Promise<SessionClient>>> = {
  "sdk-v1": async (sessionId) => {
    const client = new Client(clientInfo)
    const options = { reconnectionOptions: fastReconnection, ...(sessionId === undefined ? {} : { sessionId }) }
    const transport = new StreamableHTTPClientTransport(new URL(server.http.url), options)
    await client.connect(transport as Parameters<Client["connect"]>[0])
    return {
      sessionId: transport.sessionId,
      steps: (options) => client.request({ method: "tools/call", params }, CallToolResultSchema, options),
      terminate: () => transport.terminateSession(),
      close: () => client.close()
    }
  },
  "sdk-v2": async (sessionId) => {
    const client = new V2.Client(clientInfo)
    const options = sessionId === undefined ? {} : { sessionId, protocolVersion: "2025-11-25" }
    const transport = new V2.StreamableHTTPClientTransport(new URL(server.http.url), {
      reconnectionOptions: fastReconnection,
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

for (const [name, connect] of Object.entries(connectors)) {
  it(`2025-11-25 · ${name}: a second client continues the session and call of the first, from its last event`, async () => {
    const first = await connect()
    const tokens: Array<string> = []
    const progress: Array<number> = []
    const outcome = first.steps({
      onresumptiontoken: (token) => void tokens.push(token),
      onprogress: (note) => void progress.push(note.progress)
    }).then(() => "succeeded", () => "abandoned")
    await eventually(() => expect(progress).toEqual([1, 2, 3]))
    await first.close()
    expect(await outcome).toBe("abandoned")

    const helper = await SdkV2.connectInteractive(server.http, { revision: "2026-07-28" })
    expect(textOf(await helper.call("release", {}))).toBe("1")
    await helper.close()

    const second = await connect(first.sessionId)
    const resumptionToken = tokens.at(-1)!
    expect(textOf(await second.steps({ resumptionToken }) as { content: ReadonlyArray<Block> })).toBe("four steps")
    await second.terminate()
    await second.close()
    await eventually(() => expect([server.endpoint.sessions, server.endpoint.streams]).toEqual([0, 0]))
  })
}

describe("2025-03-26 · implementations MUST support receiving JSON-RPC batches", () => {
  const transports = {
    "sdk-v1": () => new StreamableHTTPClientTransport(new URL(server.http.url)),
    "sdk-v2": () => new V2.StreamableHTTPClientTransport(new URL(server.http.url))
  }
  for (const [name, make] of Object.entries(transports)) {
    it(`from the transport of ${name}`, async () => {
      const transport = make()
      const received: Array<{ readonly id?: unknown; readonly result?: unknown; readonly error?: unknown }> = []
      transport.onmessage = (message: object) => void received.push(message)
      await transport.start()
      const request = (id: number, method: string, params = {}) => ({ jsonrpc: "2.0" as const, id, method, params })
      const call = (id: number, name: string, args = {}) => request(id, "tools/call", { name, arguments: args })
      await transport.send(
        request(0, "initialize", { protocolVersion: "2025-03-26", capabilities: {}, clientInfo })
      )
      transport.setProtocolVersion("2025-03-26")
      await transport.send({ jsonrpc: "2.0", method: "notifications/initialized" })
      await transport.send([
        request(1, "ping"),
        call(2, "region", { region: "eu" }),
        { jsonrpc: "2.0", method: "notifications/roots/list_changed" },
        request(3, "no/such/method")
      ])
      await eventually(() => expect(received).toHaveLength(4))
      expect(received.slice(1).toSorted((a, b) => Number(a.id) - Number(b.id))).toMatchObject([
        { id: 1, result: {} },
        { id: 2, result: { content: [{ text: "Working in eu" }] } },
        { id: 3, error: { code: -32601 } }
      ])
      await transport.terminateSession()
      await transport.close()
      expect(server.endpoint.sessions).toBe(0)
    })
  }
})

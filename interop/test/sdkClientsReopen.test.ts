/**
 * Official clients that open a session where another one was: behind a bridge that gives all its clients one child
 * process, and over HTTP+SSE after the stream broke.
 */
import * as V2 from "@modelcontextprotocol/client"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js"
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { afterEach, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import * as Features from "../fixtures/skeinFeatures.ts"
import { startServer } from "../skeinServer.ts"
import { tcpProxy } from "../tcpProxy.ts"

const clientInfo = { name: "interop", version: "1" }
const closing: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A transport of a bridge: it writes to the child, and receives everything that the child writes. */
class Bridged implements Transport {
  onmessage?: (message: JSONRPCMessage) => void
  onclose?: () => void
  readonly #child: ChildProcess

  constructor(child: ChildProcess) {
    this.#child = child
    createInterface({ input: child.stdout! }).on("line", (line) => this.onmessage?.(JSON.parse(line)))
  }

  async start(): Promise<void> {}

  async send(message: JSONRPCMessage): Promise<void> {
    this.#child.stdin!.write(`${JSON.stringify(message)}\n`)
  }

  async close(): Promise<void> {
    delete this.onmessage
    this.onclose?.()
  }
}

it("serves official clients one after the other over one stdio pipe, with a call of the first in flight", async () => {
  const server = fileURLToPath(new URL("../fixtures/skeinFeaturesServer.ts", import.meta.url))
  const child = spawn(process.execPath, ["--conditions=@skein/source", server], { stdio: ["pipe", "pipe", "inherit"] })
  closing.push(() => child.kill("SIGKILL"))
  for (let round = 0; round < 2; round++) {
    const first = new Client(clientInfo)
    await first.connect(new Bridged(child) as Transport)
    expect((await first.listTools()).tools.length).toBeGreaterThan(0)
    // Without a cancellation, as when a bridge drops its client.
    void first.callTool({ name: "slow", arguments: {} }).catch(() => {})
    await first.close()

    const second = new V2.Client(clientInfo)
    await second.connect(new Bridged(child) as unknown as V2.Transport)
    for (let call = 0; call < 5; call++) expect((await second.listTools()).tools.length).toBeGreaterThan(0)
    await second.close()
  }
}, 60_000)

it("serves the official client 1 over HTTP+SSE after its stream broke, without a second initialize", async () => {
  const server = await startServer(Features.server)
  closing.push(server.close)
  const proxy = await tcpProxy(server.port)
  closing.push(proxy.close)
  const methods: Array<string> = []
  const transport = new SSEClientTransport(new URL(proxy.proxied(server.sse.url)))
  const send = transport.send.bind(transport)
  transport.send = (message) => {
    if ("method" in message) methods.push(message.method)
    return send(message)
  }
  const client = new Client(clientInfo)
  closing.push(() => client.close())
  await client.connect(transport)
  const { tools } = await client.listTools()
  proxy.cut()()
  await eventually(() => expect(server.endpoint.streams).toBe(0))
  await eventually(() => expect(server.endpoint.streams).toBe(1))
  await eventually(async () => expect((await client.listTools()).tools.length).toBe(tools.length))
  expect(methods.filter((method) => method === "initialize")).toHaveLength(1)
}, 60_000)

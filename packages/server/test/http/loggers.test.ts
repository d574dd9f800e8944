/** A server that is mounted in an application without Effect has its own loggers, and its adapter uses them. */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { modern } from "./kit.ts"

const make = () => {
  const heard: Array<string> = []
  const logger = Logger.make(({ message }) => void heard.push(String(message)))
  const server = McpServer.layer(
    { name: "mounted", version: "1" },
    Tool.layer(Tool.make("t"), () => Effect.succeed("t"))
  )
  return { heard, server: Layer.provide(server, Logger.layer([logger])) }
}

const principal = () => Effect.die("no database")
const { body, headers } = modern("tools/call", { name: "t" })
const init = { method: "POST", headers: headers as Record<string, string>, body: JSON.stringify(body) }

describe("a mounted server's loggers", () => {
  it("receive the messages of the web-standard adapter", async () => {
    const { heard, server } = make()
    const { close, handler } = WebHttp.mount(server, { principal })
    expect((await handler(new Request("http://localhost/mcp", init))).status).toBe(500)
    expect(heard[0]).toContain("failed to find the principal of a request")
    await close()
  })

  it("receive the messages of the node:http adapter", async () => {
    const { heard, server } = make()
    const { close, handler } = await NodeHttp.mount(server, { principal })
    const host = createServer((request, response) => handler(request, response))
    await new Promise<void>((resolve) => void host.listen(0, "127.0.0.1", resolve))
    const answer = await fetch(`http://127.0.0.1:${(host.address() as AddressInfo).port}/mcp`, init)
    expect(answer.status).toBe(500)
    expect(heard[0]).toContain("failed to find the principal of a request")
    await close()
    host.close()
    host.closeAllConnections()
  })
})

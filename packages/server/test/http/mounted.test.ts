/** A server that is mounted in an application without Effect: its loggers, and its shutdown. */
import { describe, expect, it } from "@effect/vitest"
import * as Trace from "@skein/runtime/Trace"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { modern } from "./kit.ts"

const make = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  const server = McpServer.layer(
    { name: "mounted", version: "1" },
    Tool.layer(Tool.make("t"), () => Effect.succeed("t"))
  )
  return { lines, server: Layer.provide(server, Logger.layer([logger])) }
}

const principal = () => Effect.die("no database")
const { body, headers } = modern("tools/call", { name: "t" })
const init = { method: "POST", headers: headers as Record<string, string>, body: JSON.stringify(body) }

describe("mount", () => {
  it("sends the messages of the web-standard adapter to the server's loggers", async () => {
    const { lines, server } = make()
    const { close, handler } = WebHttp.mount(server, { principal })
    expect((await handler(new Request("http://localhost/mcp", init))).status).toBe(500)
    expect(lines[0]).toContain("failed to find the principal of a request")
    await close()
  })

  it("sends the messages of the node:http adapter to the server's loggers", async () => {
    const { lines, server } = make()
    const { close, handler } = await NodeHttp.mount(server, { principal })
    const host = createServer((request, response) => handler(request, response))
    await new Promise<void>((resolve) => void host.listen(0, "127.0.0.1", resolve))
    const answer = await fetch(`http://127.0.0.1:${(host.address() as AddressInfo).port}/mcp`, init)
    expect(answer.status).toBe(500)
    expect(lines[0]).toContain("failed to find the principal of a request")
    await close()
    host.close()
    host.closeAllConnections()
  })

  it("closes the connections of its streams on close, so that its application does not wait for them", async () => {
    const { close, handler } = await NodeHttp.mount(make().server)
    const host = createServer((request, response) => handler(request, response))
    host.keepAliveTimeout = 600_000
    await new Promise<void>((resolve) => void host.listen(0, "127.0.0.1", resolve))
    const { body, headers } = modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
    const init = { method: "POST", headers: headers as Record<string, string>, body: JSON.stringify(body) }
    const answer = await fetch(`http://127.0.0.1:${(host.address() as AddressInfo).port}/mcp`, init)
    const closed = new Promise<void>((resolve) => void host.close(() => resolve()))
    await close()
    // The stream ends with its result and without a reset.
    expect(await answer.text()).toMatch(/"id":1,"result"[^\n]*\n\n$/)
    await closed
  })

  it("gives handlers the services that Trace.Around finds when the head of a request has arrived", async () => {
    const Visit = Context.Reference<string>("test/Visit", { defaultValue: () => "none" })
    let visits = 0
    const around = () => Context.make(Visit, `visit ${++visits}`)
    const server = McpServer.layer(
      { name: "mounted", version: "1" },
      Tool.layer(Tool.make("t"), () => Effect.map(Visit, (visit) => visit))
    ).pipe(Layer.provideMerge(Layer.succeed(Trace.Around, around)))
    const web = WebHttp.mount(server)
    const node = await NodeHttp.mount(server)
    const host = createServer((request, response) => node.handler(request, response))
    await new Promise<void>((resolve) => void host.listen(0, "127.0.0.1", resolve))
    const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}/mcp`
    const answers = [
      await fetch(url, init),
      await web.handler(new Request("http://localhost/mcp", init)),
      await web.handler(new Request("http://localhost/mcp", init), { context: Context.make(Visit, "its own") })
    ]
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect(texts[0]).toContain("visit 1")
    expect(texts[1]).toContain("visit 2")
    expect(texts[2]).toContain("its own")
    await Promise.all([node.close(), web.close()])
    host.close()
    host.closeAllConnections()
  })
})

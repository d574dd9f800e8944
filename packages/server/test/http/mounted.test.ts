/** A handler within an application's `node:http` server, at its shutdown. */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { modern } from "./kit.ts"

const server = McpServer.layer({ name: "mounted", version: "1" }, Tool.layer(Tool.make("t"), () => Effect.succeed("t")))

describe("a mounted server that is closed", () => {
  it("closes the connections of its streams, so that its application does not wait for them", async () => {
    const { close, handler } = await NodeHttp.mount(server)
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
})

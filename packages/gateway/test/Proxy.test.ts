/** Connections that an application cannot make. */
import { describe, expect, it } from "@effect/vitest"
import type * as Client from "@skein/client/Client"
import * as Proxy from "@skein/gateway/Proxy"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { build, connect, source } from "./kit.ts"

const far = McpServer.layer(
  { name: "far", version: "1.0.0" },
  Tool.layer(Tool.make("hello"), () => Effect.succeed("Hello"))
)

const text = (client: Client.Client, name: string) =>
  Effect.map(client.callTool(name), ({ content }) => (content[0] as { readonly text: string }).text)

describe("perPrincipal", () => {
  it.live("makes another connection after a function of the application has thrown", () =>
    Effect.gen(function*() {
      const running = yield* build(far)
      let calls = 0
      const connections = Proxy.perPrincipal(() => {
        if (++calls === 1) throw new Error("no token")
        return source(running, "2026-07-28")
      })
      const proxy = Proxy.layer(source(running, "2026-07-28"), { connections })
      const near = yield* build(McpServer.layer({ name: "near", version: "1.0.0" }, proxy))
      const client = yield* connect(near, "2026-07-28")
      expect(yield* client.callTool("hello")).toMatchObject({ isError: true })
      expect(yield* text(client, "hello")).toBe("Hello")
    }))
})

/** Proxies of the servers of a configuration, and connections that an application cannot make. */
import { describe, expect, it } from "@effect/vitest"
import type * as Client from "@skein/client/Client"
import type { ConfigSource, ConfiguredServer } from "@skein/client/ClientPool"
import { InvalidEntry, PoolError } from "@skein/client/PoolError"
import * as Proxy from "@skein/gateway/Proxy"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { build, connect, type Running, source } from "./kit.ts"

const far = McpServer.layer(
  { name: "far", version: "1.0.0" },
  Tool.layer(Tool.make("hello"), () => Effect.succeed("Hello"))
)

const text = (client: Client.Client, name: string) =>
  Effect.map(client.callTool(name), ({ content }) => (content[0] as { readonly text: string }).text)

/** A configuration with a server of this process for each name, and a problem. */
const configuration = (running: Running, names: ReadonlyArray<string>): ConfigSource => ({
  name: "the test",
  read: Effect.succeed({
    servers: new Map(names.map((name) => [
      name,
      { server: { transport: InMemoryTransport.transport(running.server.serve) } } as unknown as ConfiguredServer
    ])),
    disabled: [],
    problems: [
      new PoolError({
        reason: new InvalidEntry({ message: "broken has no command", source: "the test", server: "broken" })
      })
    ]
  })
})

describe("fromConfig", () => {
  it.live("mounts each server with its name, and logs the invalid entries", () =>
    Effect.gen(function*() {
      const messages: Array<string> = []
      const logger = Logger.make(({ message }) => void messages.push(String(message)))
      const config = configuration(yield* build(far), ["one", "my two"])
      const near = yield* Effect.provide(
        build(McpServer.layer({ name: "near", version: "1.0.0" }, Proxy.fromConfig(config))),
        Logger.layer([logger])
      )
      const client = yield* connect(near, "2026-07-28")
      expect((yield* client.listTools()).map(({ name }) => name).toSorted()).toEqual(["my_two_hello", "one_hello"])
      expect(yield* text(client, "my_two_hello")).toBe("Hello")
      expect(messages).toContain("broken has no command")
    }))

  it.live("chooses the prefix and the options of each proxy", () =>
    Effect.gen(function*() {
      const config = configuration(yield* build(far), ["one", "two"])
      const proxies = Proxy.fromConfig(config, {
        prefix: (server) => server === "one" ? "" : "second",
        proxy: (server) => ({ tools: server === "one" })
      })
      const client = yield* connect(
        yield* build(McpServer.layer({ name: "near", version: "1.0.0" }, proxies)),
        "2026-07-28"
      )
      expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["hello"])
    }))
})

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

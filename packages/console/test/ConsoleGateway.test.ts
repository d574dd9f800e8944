/** The servers behind a gateway in a console. */
import { expect, it } from "@effect/vitest"
import { ConsoleSources } from "@skein/console/ConsoleSource"
import * as ConsoleGateway from "@skein/console/ConsoleGateway"
import * as Gateway from "@skein/gateway/Gateway"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const Far = McpServer.layer(
  { name: "far", version: "2.0.0" },
  Tool.layer(Tool.make("hello"), () => Effect.succeed("Hello"))
)

const query = { limit: 10, maxRows: 100, showPayloads: false }

it.live("shows the state of each server, and opens one again", () =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(Far), McpServer.McpServer)
    let connections = 0
    const counted: typeof serve = (connection) => {
      connections++
      return serve(connection)
    }
    const Desk = McpServer.layer(
      { name: "desk", version: "1.0.0" },
      Gateway.layer({
        far: { transport: InMemoryTransport.transport(counted), gateway: { required: true } },
        gone: { transport: InMemoryTransport.transport((connection) => connection.close), timeout: 100 }
      })
    )
    const services = yield* Layer.build(
      ConsoleGateway.layer.pipe(Layer.provideMerge(ConsoleSources.layer), Layer.provideMerge(Desk))
    )
    const source = Context.get(services, ConsoleSources).all.get("gateway")!
    const { nodes } = yield* source.read(query)
    expect(nodes).toMatchObject([
      {
        id: "server far",
        kind: "server",
        label: "far",
        state: "running",
        summary: "1 tool",
        details: { prefix: "far", required: true, attempts: 0, server: "far 2.0.0" },
        actions: [{ name: "restart" }]
      },
      { id: "server gone", state: expect.stringMatching(/waiting|lost/), summary: "0 tools" }
    ])
    expect(nodes[1]!.waitsFor).not.toBe("")
    expect(yield* source.act!("server far", "restart")).toMatchObject({ isDone: true })
    expect(yield* source.act!("server far", "other")).toBeUndefined()
    expect(yield* source.act!("server none", "restart")).toBeUndefined()
    while (connections < 2) yield* Effect.sleep(5)
  }))

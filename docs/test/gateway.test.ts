/** Runs `programs/gateway.ts` with a configuration in a folder of this test. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeConfig from "@skein/client/NodeConfig"
import * as Gateway from "@skein/gateway/Gateway"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { join } from "node:path"
import { Desk, restartFailing } from "../programs/gateway.ts"
import { read } from "./blocks.ts"
import { Members } from "../../packages/gateway/src/internal/servers/members.ts"

/** The configuration of the page, whose servers are a program of this repository. */
const shown = /```json\n([^`]*)```/.exec(read("gateway.md"))![1]!

it("has a configuration whose members are valid", () => {
  const { mcpServers } = JSON.parse(shown) as { readonly mcpServers: Readonly<Record<string, { gateway: unknown }>> }
  const decode = Schema.decodeUnknownResult(Members, { onExcessProperty: "error" })
  for (const { gateway } of Object.values(mcpServers)) expect(decode(gateway)).toMatchObject({ _tag: "Success" })
})

it("has a row for each member", () => {
  const rows = Array.from(read("gateway.md").matchAll(/^\| (`[^|]*) \|/gm), ([, names]) => names!).join()
  for (const name of Object.keys(Members.fields)) expect(rows).toContain(`\`${name}`)
})

it.live("offers the servers of a configuration, and operates them", () =>
  Effect.gen(function*() {
    const program = join(import.meta.dirname, "../../examples/hello/server.ts")
    const args = ["--conditions=@skein/source", program]
    const config = NodeConfig.object({
      mcpServers: { files: { command: process.execPath, args, gateway: { prefix: "fs" } }, gone: { command: "/none" } }
    })
    const context = yield* Layer.build(
      McpServer.layer({ name: "desk", version: "1.0.0" }, Gateway.fromConfig(config))
    )
    const client = yield* Client.make(InMemoryTransport.transport(Context.get(context, McpServer.McpServer).serve))
    const [tool] = yield* client.listTools()
    expect(tool!.name).toMatch(/^fs_/)
    const catalog = Context.get(context, Catalog.Catalog)
    yield* Effect.provideService(restartFailing, Catalog.Catalog, catalog)
    const { servers } = yield* Effect.provideService(Gateway.current, Catalog.Catalog, catalog)
    expect(yield* servers).toMatchObject([
      { name: "files", state: "connected", prefix: "fs", processes: [{ pid: expect.any(Number) }] },
      { name: "gone", entries: { tools: 0 }, processes: [] }
    ])
    expect(Layer.isLayer(Desk)).toBe(true)
  }))

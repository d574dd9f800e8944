/** Runs `programs/remoteServers.ts` with remote servers in this process. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import type * as Proxy from "@skein/gateway/Proxy"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import type { Principal } from "@skein/server/Principal"
import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Programs from "../programs/remoteServers.ts"
import { read } from "./blocks.ts"

const Notes = McpServer.layer(
  { name: "notes", version: "1.0.0" },
  Tool.layer(Tool.make("find", { annotations: { readOnlyHint: true } }), () => Effect.succeed("found")),
  Tool.layer(Tool.make("write"), () => Effect.succeed("written")),
  Resource.layer(Resource.make("notes://today"), Effect.succeed("tea")),
  Resource.layer(Resource.make("secret://key"), Effect.succeed("key"))
)

const serve = <E>(server: Layer.Layer<McpServer.McpServer, E>) =>
  Effect.map(Layer.build(server), (context) => Context.get(context, McpServer.McpServer).serve)

const connect = (proxy: McpServer.Definitions, principal?: Principal) =>
  Effect.gen(function*() {
    const server = McpServer.layer({ name: "desk", version: "1.0.0" }, proxy) as Layer.Layer<
      McpServer.McpServer,
      unknown
    >
    const serving = yield* serve(server)
    return yield* Client.make(InMemoryTransport.transport(serving, principal === undefined ? {} : { principal }))
  })

it.live("takes the selected entries over", () =>
  Effect.gen(function*() {
    const client = yield* connect(Programs.readOnly(InMemoryTransport.transport(yield* serve(Notes))))
    expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["find"])
    expect((yield* client.listResources()).map(({ uri }) => uri)).toEqual(["notes://today"])
    expect((yield* Effect.flip(client.readResource("secret://key"))).reason._tag).toBe("ProtocolError")
  }))

it.live("gives the entries other names, and calls them by their own", () =>
  Effect.gen(function*() {
    const renamed = yield* connect(Programs.renamed(InMemoryTransport.transport(yield* serve(Notes))))
    expect((yield* renamed.listTools()).map(({ name }) => name)).toEqual(["tool.find", "tool.write"])
    expect((yield* renamed.callTool("tool.find")).content).toMatchObject([{ text: "found" }])
    expect((yield* renamed.readResource("notes://today")).contents).toMatchObject([{ text: "tea" }])
  }))

it.live("shows the remote server to administrators only", () =>
  Effect.gen(function*() {
    const proxy = Programs.forAdmins(InMemoryTransport.transport(yield* serve(Notes)))
    const admin = yield* connect(proxy, { id: "1", role: "admin" })
    const user = yield* connect(proxy, { id: "2" })
    expect((yield* admin.listTools()).length).toBe(2)
    expect(yield* user.listTools()).toEqual([])
  }))

it.live("stores the lists, and offers them before the remote server is reached", () =>
  Effect.gen(function*() {
    let stored: Proxy.Lists | undefined
    const store = (lists: Proxy.Lists) => Effect.sync(() => void (stored = lists))
    const transport = InMemoryTransport.transport(yield* serve(Notes))
    yield* connect(Programs.remembered(transport, undefined, store))
    expect(stored?.tools).toHaveLength(2)
    const down = InMemoryTransport.transport((connection) => connection.close)
    const client = yield* connect(Programs.remembered(down, stored, store))
    expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["find", "write"])
    const failed = yield* Effect.flip(client.callTool("find"))
    expect(failed.reason).toMatchObject({ error: { data: { reason: "RemoteUnavailable" } } })
  }))

it("has a row for each reason of a failure", () => {
  const page = read("remote-servers.md")
  const source = read("../packages/gateway/src/internal/connection/remoteError.ts")
  const reasons = Array.from(source.matchAll(/^ {2}\| "(\w+)"$/gm), ([, reason]) => reason!)
  expect(reasons.length).toBeGreaterThan(5)
  for (const reason of reasons) expect(page).toContain(`| \`${reason}\``)
})

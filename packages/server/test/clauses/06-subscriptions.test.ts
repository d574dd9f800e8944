/**
 * Notifications of changes and their recipients (list_changed; resources/updated; subscriptions), over every transport.
 */
import { expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import type * as kit from "../kit.ts"
import * as transports from "./transports.ts"

const resource = (uri: string) => Resource.layer(Resource.make(uri), Effect.succeed("text"))

/** A server whose tools change it. */
const server = McpServer.layer(
  { name: "test", version: "1" },
  Tool.layer(
    Tool.make("grow"),
    () => Effect.as(Catalog.persistent(Tool.add(Tool.make("grown"), () => Effect.succeed("ok"))), "grown")
  ),
  Tool.layer(Tool.make("touch"), () => Effect.as(Catalog.updated("r://a"), "touched")),
  resource("r://a"),
  resource("r://b")
) as kit.Server

const changed = "notifications/tools/list_changed"
const updated = "notifications/resources/updated"
const id = "io.modelcontextprotocol/subscriptionId"

for (const [{ connect, name }, revision] of transports.each) {
  const session = Revision.era(revision) === "session"

  it.live(`${revision} · ${name} · notifies of a changed list and of a subscribed resource, and of nothing else`, () =>
    Effect.gen(function*() {
      const client = yield* connect(server, revision)
      if (session) {
        expect((yield* client.request("resources/subscribe", { uri: "r://a" })).result).toEqual({})
      } else {
        yield* Effect.forkScoped(client.request("subscriptions/listen", {
          notifications: { toolsListChanged: true, resourceSubscriptions: ["r://a", "r://b"] }
        }))
        yield* client.receive(({ method }) => method === "notifications/subscriptions/acknowledged")
      }
      yield* client.request("tools/call", { name: "grow" })
      yield* client.receive(({ method }) => method === changed)
      yield* client.request("tools/call", { name: "touch" })
      const { params } = yield* client.receive(({ method }) => method === updated)
      expect(params.uri).toBe("r://a")
      expect(params._meta?.[id]).toEqual(session ? undefined : 1)
      expect((yield* client.request("tools/list")).result.tools.length).toBe(3)
      if (session) {
        expect((yield* client.request("resources/unsubscribe", { uri: "r://a" })).result).toEqual({})
        yield* client.request("tools/call", { name: "touch" })
        yield* client.request("tools/list")
      }
      expect(client.received.filter(({ method }) => method === changed || method === updated).length).toBe(2)
    }))
}

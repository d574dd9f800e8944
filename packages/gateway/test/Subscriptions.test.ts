/** Subscriptions to resources of a remote server. */
import { describe, expect, it } from "@effect/vitest"
import * as Proxy from "@skein/gateway/Proxy"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { build, connect, eras, Outage, pairs, through } from "./kit.ts"
import { remote } from "./remote.ts"

const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.gen(function*() {
    while (!condition()) yield* Effect.sleep(5)
  })

describe.each(pairs(eras))("%s before %s", (front, behind) => {
  it.live("subscribes at the remote server only while somebody is subscribed, and reports updates", () =>
    Effect.gen(function*() {
      const { far, near } = yield* through(remote(), behind)
      // Subscriptions of a session, and open requests of the stateless revision.
      const watched = Effect.map(
        far.server.inspect,
        ({ requests, sessions }) =>
          sessions.reduce((sum, { requests, subscriptions }) => sum + subscriptions.length + requests.length, 0) +
          requests.length
      )
      const before = yield* watched
      const client = yield* connect(near, front)
      const seen: Array<string> = []
      const scope = yield* Scope.make()
      for (let subscriber = 0; subscriber < 2; subscriber++) {
        const changes = Stream.runForEach(
          client.changes({ uris: ["notes://today"] }),
          (change) => Effect.sync(() => seen.push("uri" in change ? `${change._tag} ${change.uri}` : change._tag))
        )
        yield* Scope.provide(Effect.forkScoped(changes, { startImmediately: true }), scope)
      }
      yield* until(() => seen.filter((line) => line === "Subscribed").length === 2)
      // Two subscribers here are one subscription there.
      expect(yield* watched).toBe(before + 1)
      yield* client.callTool("touch", { uri: "notes://today" })
      yield* until(() => seen.filter((line) => line === "ResourceUpdated notes://today").length === 2)
      yield* client.callTool("touch", { uri: "hidden://1" })
      yield* Scope.close(scope, Exit.void)
      while ((yield* watched) > before) yield* Effect.sleep(5)
      expect(seen.filter((line) => line.includes("hidden"))).toEqual([])
    }))
})

describe.each(eras)("a remote server of %s that returns", (behind) => {
  it.live("is subscribed to again, and subscribers are told that the resource may have changed", () =>
    Effect.gen(function*() {
      const running = yield* build(remote())
      const outage = new Outage(() => running)
      const proxy = Proxy.layer(outage.source(behind), { reconnect: { initialDelay: 5, maxDelay: 10 } })
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, proxy))
      const client = yield* connect(near, "2025-11-25")
      const seen: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(
          client.changes({ uris: ["notes://today"] }),
          ({ _tag }) => Effect.sync(() => seen.push(_tag))
        ),
        { startImmediately: true }
      )
      yield* until(() => seen.length === 1)
      yield* outage.stop
      yield* outage.start
      yield* until(() => seen.length === 2)
      expect(seen).toEqual(["Subscribed", "ResourceUpdated"])
    }))

  it.live("refuses a subscription while it is down", () =>
    Effect.gen(function*() {
      const running = yield* build(remote())
      const outage = new Outage(() => running)
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, Proxy.layer(outage.source(behind))))
      const client = yield* connect(near, "2025-11-25")
      yield* outage.stop
      const failed = yield* Effect.flip(Stream.runDrain(client.changes({ uris: ["notes://today"] })))
      expect(failed).toMatchObject({ reason: { error: { data: { reason: "RemoteUnavailable" } } } })
    }))
})

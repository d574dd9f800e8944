import { describe, expect, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import { type Caller, Exchange, type ResponseSink } from "@skein/runtime/RequestContext"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Catalog from "@skein/server/Catalog"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as kit from "../kit.ts"
import { acknowledged, all, filter, id, kinds, listen, pass, resource, set, template, tool, updated } from "./kit.ts"
import { internals } from "../../src/internal/catalog/catalogState.ts"

describe("subscriptions/listen", () => {
  it.effect("2026-07-28 · MUST send the acknowledgment first, with the subset that the server agreed to honor", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({}, [tool("t"), resource("r://a"), template])
      const client = yield* connect()
      const asked = yield* listen(client, {
        toolsListChanged: true,
        promptsListChanged: true,
        resourcesListChanged: false,
        resourceSubscriptions: ["r://a", "r://nothing", "notes://1", "r://a", "no uri at all"],
        taskIds: ["1"]
      })
      const notifications = { toolsListChanged: true, resourceSubscriptions: ["r://a", "notes://1"] }
      expect(client.received).toEqual([
        { jsonrpc: "2.0", method: acknowledged, params: { _meta: { [id]: asked }, notifications } }
      ])
    }))

  it.effect("2026-07-28 · omitting a field is equivalent to not subscribing; an empty filter has no events", () =>
    Effect.gen(function*() {
      const { connect, offer, run } = yield* set()
      const client = yield* connect()
      yield* listen(client, {})
      for (const kind of all) yield* offer(kind, "new")
      yield* run(Catalog.updated("r://r"))
      yield* pass("1 second")
      expect(client.received.map(({ params }) => params.notifications)).toEqual([{}])
      expect((yield* client.error("subscriptions/listen", {})).code).toBe(-32602)
    }))

  for (const asked of [7, 0, "7", "", "a b"]) {
    it.effect(`2026-07-28 · the value is the JSON-RPC ID of the listen request, unchanged: ${JSON.stringify(asked)}`, () =>
      Effect.gen(function*() {
        const { connect, offer, run } = yield* set()
        const client = yield* connect()
        yield* listen(client, { toolsListChanged: true, resourceSubscriptions: ["r://r"] }, asked)
        yield* run(Catalog.updated("r://r"))
        yield* offer("tools", "new")
        yield* pass(50)
        expect(client.received.map(({ method, params }) => [method, params._meta[id], params.uri])).toEqual([
          [acknowledged, asked, undefined],
          [updated, asked, "r://r"],
          [kinds.tools[1], asked, undefined]
        ])
      }))
  }

  it.effect("2026-07-28 · a client MAY have multiple active subscriptions concurrently, each with its own ID", () =>
    Effect.gen(function*() {
      const { connect, subscriptions, offer, run } = yield* set()
      const client = yield* connect()
      const tools = yield* listen(client, { toolsListChanged: true })
      const watch = yield* listen(client, { resourceSubscriptions: ["r://r"] })
      const again = yield* listen(client, { resourceSubscriptions: ["r://r"] })
      yield* offer("tools", "new")
      yield* run(Catalog.updated("r://r"))
      yield* pass(50)
      const notified = client.received.slice(3).map(({ method, params }) => [method, params._meta[id]])
      expect(notified).toEqual([[updated, watch], [updated, again], [kinds.tools[1], tools]])
      // The client cancels one: nothing more is sent for it, not even a response.
      client.notify("notifications/cancelled", { requestId: watch })
      yield* kit.settle
      expect([...subscriptions.listens].map(({ request }) => request.id)).toEqual([tools, again])
      yield* run(Catalog.updated("r://r"))
      yield* kit.settle
      expect(client.received.slice(6).map(({ params }) => params._meta[id])).toEqual([again])
      expect(client.answers(watch)).toEqual([])
    }))

  it.effect("2026-07-28 · when the server ends it, it SHOULD respond with a completion result that carries the ID", () =>
    Effect.gen(function*() {
      const { connect, subscriptions, offer } = yield* set()
      const client = yield* connect()
      const asked = [yield* listen(client, filter("tools"), "s"), yield* listen(client, filter("tools"), 5)]
      subscriptions.shutdown()
      for (const of of asked) {
        const { result } = yield* client.answer(of)
        expect(result).toEqual({
          resultType: "complete",
          _meta: { [id]: of, "io.modelcontextprotocol/serverInfo": { name: "test", version: "1.0.0" } }
        })
      }
      yield* offer("tools", "new")
      yield* pass(50)
      expect(client.notices(kinds.tools[1])).toEqual([])
      expect([...subscriptions.listens]).toEqual([])
      // A new subscription is acknowledged and ends at once.
      const late = yield* listen(client, filter("tools"), "late")
      expect(client.received.slice(-2).map(({ id, method }) => method ?? id)).toEqual([acknowledged, late])
    }))

  it.effect("2026-07-28 · ends the subscriptions of a closing server with their result", () =>
    Effect.gen(function*() {
      const { context, subscriptions } = yield* set()
      const scope = yield* Scope.make()
      const client = yield* Scope.provide(Effect.provide(kit.connect(), context), scope)
      const asked = yield* listen(client, filter("tools"))
      yield* Scope.close(scope, Exit.void)
      yield* kit.settle
      expect(client.answers(asked).map(({ result }) => result.resultType)).toEqual(["complete"])
      expect([...subscriptions.listens]).toEqual([])
    }))

  it.effect("2026-07-28 · ends subscriptions, too, if the server's layer is released before its connections", () =>
    Effect.gen(function*() {
      const { close, connect } = yield* set()
      const client = yield* connect()
      const asked = yield* listen(client, filter("tools"))
      yield* close
      yield* kit.settle
      expect(client.answers(asked).map(({ result }) => result.resultType)).toEqual(["complete"])
    }))

  it.effect("ends a subscription at once when the client has closed its sending side", () =>
    Effect.gen(function*() {
      const { subscriptions, server } = yield* set()
      const [near, far] = yield* InMemoryTransport.make()
      let end = (): void => {}
      const peer = yield* server.serve({
        open: (receiver) => {
          end = () => receiver.end({ _tag: "ClosedByPeer" })
          near.open(receiver)
        },
        send: (message) => near.send(message),
        drained: near.drained,
        close: near.close
      })
      const client = new kit.Client(far, peer, "2026-07-28")
      const asked = yield* listen(client, filter("tools"))
      expect([...subscriptions.listens].length).toBe(1)
      end()
      // No time passes, because the test clock is not advanced.
      expect(yield* peer.ended).toEqual({ _tag: "ClosedByPeer" })
      yield* kit.settle
      expect(client.answers(asked).length).toBe(1)
    }))

  it.effect("honours the first 1,000 resources of a filter, or maxResources, and acknowledges those", () =>
    Effect.gen(function*() {
      const uris = Array.from({ length: 1001 }, (_, i) => `notes://${i}`)
      for (const [max, options] of [[1000, {}], [2, { fixed: { maxResources: 2 } }]] as const) {
        const { connect, run } = yield* set(options, [template])
        const client = yield* connect()
        yield* listen(client, { resourceSubscriptions: uris })
        expect(client.received[0].params.notifications).toEqual({ resourceSubscriptions: uris.slice(0, max) })
        for (const uri of [uris[max]!, uris[max - 1]!]) yield* run(Catalog.updated(uri))
        yield* kit.settle
        expect(client.notices(updated).map(({ params }) => params.uri)).toEqual([uris[max - 1]])
      }
    }))

  it.effect("refuses a subscription at maxListens, until another one ends", () =>
    Effect.gen(function*() {
      const { connect, subscriptions } = yield* set({ fixed: { maxListens: 2 } })
      const client = yield* connect()
      const first = yield* listen(client, filter("tools"))
      yield* listen(client, filter("tools"))
      const refused = yield* client.error("subscriptions/listen", { notifications: filter("tools") })
      expect(refused).toEqual({ code: -32603, message: "The server has 2 open subscriptions already" })
      expect([...subscriptions.listens].length).toBe(2)
      client.notify("notifications/cancelled", { requestId: first })
      yield* kit.settle
      yield* listen(client, filter("tools"))
      expect([...subscriptions.listens].length).toBe(2)
      expect(client.notices(acknowledged).length).toBe(3)
    }))

  it.effect("refuses a principal's subscription at maxListensPerPrincipal, and accepts those of other principals", () =>
    Effect.gen(function*() {
      const { subscriptions, server } = yield* set({ fixed: { maxListensPerPrincipal: 1 } })
      const ann = yield* kit.linkAs(server, { id: "ann" })
      const bob = yield* kit.linkAs(server, { id: "bob" })
      const unknown = yield* kit.linkAs(server, undefined)
      const first = yield* listen(ann, filter("tools"))
      const refused = yield* ann.error("subscriptions/listen", { notifications: {} })
      expect(refused).toEqual({
        code: -32603,
        message: "One principal may have at most 1 open subscriptions"
      })
      yield* listen(bob, filter("tools"))
      for (let i = 0; i < 3; i++) yield* listen(unknown, filter("tools"))
      expect([...subscriptions.listens].length).toBe(5)
      ann.notify("notifications/cancelled", { requestId: first })
      yield* kit.settle
      yield* listen(ann, filter("tools"))
      expect([...subscriptions.listens].length).toBe(5)
    }))

  for (const revision of Revision.sessionBased) {
    it.effect(`${revision} · responds with -32601 to subscriptions/listen`, () =>
      Effect.gen(function*() {
        const client = yield* Effect.flatMap(set(), ({ connect }) => connect(revision))
        expect((yield* client.error("subscriptions/listen", { notifications: {} })).code).toBe(-32601)
      }))
  }
})

describe("a stateless request", () => {
  /** An endpoint that serves stateless requests, and the messages that it has sent. */
  const endpoint = Effect.gen(function*() {
    const { context, subscriptions, run, server: { [internals]: core } } = yield* set({
      fixed: { maxListens: 100_000 }
    })
    const calls: Array<kit.Json> = []
    const runner = core.runner(core.catalog[internals].base)
    const sink: ResponseSink = {
      notify: (_, method, params) => {
        calls.push([method, params])
        return true
      },
      respond: ({ id }, message) => void calls.push([id, message]),
      discard: ({ id }) => void calls.push([id, "discarded"]),
      drained: () => Effect.void
    }
    const open = (id: number): Exchange => {
      const params = { notifications: { resourceSubscriptions: ["r://r"], toolsListChanged: true }, _meta: kit.meta() }
      const request = JsonRpc.request(id, "subscriptions/listen", params)
      const exchange = new Exchange(sink, request, core.identifyStateless(request, undefined) as Caller)
      runner.start(exchange)
      return exchange
    }
    return { context, subscriptions, open, run, calls }
  })

  it.effect("2026-07-28 · acknowledges a subscription before start returns, notifies it, and ends it with a result on release", () =>
    Effect.gen(function*() {
      const { subscriptions, open, run, calls } = yield* endpoint
      const exchange = open(1)
      expect(calls.map(([method]) => method)).toEqual([acknowledged])
      yield* run(Catalog.updated("r://r"))
      exchange.release!()
      yield* kit.settle
      yield* run(Catalog.updated("r://r"))
      expect(calls.map(([what]) => what)).toEqual([acknowledged, updated, 1])
      expect(calls[2][1].result._meta[id]).toBe(1)
      expect([[...subscriptions.listens].length, subscriptions.subscribedResources]).toEqual([0, 0])
    }))

  it.effect("releases 10,000 subscriptions that are opened and dropped", () =>
    Effect.gen(function*() {
      const { subscriptions, open, run, calls } = yield* endpoint
      const all = Array.from({ length: 10_000 }, (_, i) => open(i))
      expect([[...subscriptions.listens].length, subscriptions.subscribedResources]).toEqual([10_000, 1])
      for (const exchange of all) exchange.cancel()
      yield* kit.settle
      expect([[...subscriptions.listens].length, subscriptions.subscribedResources]).toEqual([0, 0])
      calls.length = 0
      yield* run(Catalog.updated("r://r"))
      expect(calls).toEqual([])
    }))
})

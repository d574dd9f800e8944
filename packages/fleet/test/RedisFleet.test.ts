/** The fleet on a real Redis, which is killed, and whose subscriptions are cut. */
import { afterAll, expect, it } from "@effect/vitest"
import * as RedisEventStore from "@skein/fleet/RedisEventStore"
import * as RedisFleet from "@skein/fleet/RedisFleet"
import * as RandomId from "@skein/runtime/RandomId"
import { EventStore } from "@skein/server/EventStore"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { contract } from "./contract.ts"
import { bounds, open, record, start, until, untilEffect } from "./kit.ts"
import { describeRedis, type RedisServer, startRedis } from "./startRedis.ts"

describeRedis("RedisFleet", (redis) => {
  const makeLayer = (namespace = RandomId.make(8)) =>
    RedisFleet.layer({ url: redis().url, namespace, leaseTimeout: "30 seconds" })

  contract(() => Effect.sync(() => makeLayer()))

  it.live("sends the changes and the end of a session to the nodes that have had it, and to no others", () =>
    Effect.gen(function*() {
      const layer = makeLayer()
      const [a, b, c] = [yield* start(layer), yield* start(layer), yield* start(layer)]
      const { id } = yield* open(a)
      yield* b.fleet.find(id, undefined)
      const change = { logLevel: "debug" }
      yield* a.fleet.change(id, change)
      yield* b.fleet.end(id)
      const last = { _tag: "Received", id: "x", text: "last" } as const
      a.fleet.broadcast(last)
      yield* until(
        "a later message has arrived",
        () => [b, c].every(({ arrived }) => arrived.some(({ _tag }) => _tag === "Received"))
      )
      const both = [{ _tag: "Changed", id, change }, { _tag: "Ended", id }]
      expect([a, b, c].map(({ arrived }) => arrived)).toEqual([both, [...both, last], [last]])
    }).pipe(Effect.scoped))

  it.live("leaves no keys of sessions that have ended or expired, and all keys are in one slot of a cluster", () =>
    Effect.gen(function*() {
      const namespace = RandomId.make(8)
      const node = yield* start(makeLayer(namespace))
      const left = yield* start(makeLayer(namespace))
      for (let n = 0; n < 20; n++) {
        const session = record(node, `principal ${n % 5}`)
        const idleTimeout = n % 2 === 0 ? 600_000 : 50
        yield* node.fleet.create(session, { ...bounds, idleTimeout }, `client ${n % 3}`)
        yield* node.fleet.change(session.id, { subscribe: "note://1" })
        if (n % 2 === 0) yield* node.fleet.end(session.id)
      }
      yield* left.close
      const prefix = `skein:{fleet:${namespace}}`
      const keys = Effect.promise(() => redis().keys(`*${namespace}*`))
      yield* untilEffect("all keys are removed", Effect.map(keys, ({ length }) => length <= 4))
      expect((yield* keys).toSorted()).toEqual(["key", "last", "nodes", "sent"].map((key) => `${prefix}:${key}`))
    }).pipe(Effect.scoped))
})

// A server that has only the slots of the fleets: it refuses a script with a key in another one.
describeRedis("RedisFleet, in a cluster", () => {
  let server: Promise<RedisServer> | undefined
  afterAll(async () => (await server)?.stop())

  const makeFleet = Effect.gen(function*() {
    const { command, url } = yield* Effect.promise(() => server ??= startRedis(true))
    const namespace = RandomId.make(8)
    const run = (...words: ReadonlyArray<string>) => Effect.promise(() => command("CLUSTER", ...words))
    const [slot] = yield* run("KEYSLOT", `skein:{fleet:${namespace}}`)
    expect(yield* run("ADDSLOTS", slot!.slice(1))).toEqual(["+OK"])
    yield* untilEffect("the cluster is ready", Effect.map(run("INFO"), (lines) => lines.includes("cluster_state:ok")))
    return { command, namespace, url, layer: RedisFleet.layer({ url, namespace }) }
  })

  contract(() => Effect.map(makeFleet, ({ layer }) => layer))

  it.live("has the events of all streams of a fleet in its slot, and refuses keys of others", () =>
    Effect.gen(function*() {
      const { command, layer, namespace } = yield* makeFleet
      expect((yield* Effect.promise(() => command("SET", "a", "1")))[0]).toContain("CLUSTERDOWN")
      const both = Layer.provideMerge(RedisEventStore.layer({ namespace }), layer)
      const store = Context.get(yield* Layer.build(both), EventStore)
      for (const session of ["a", "b"]) {
        for (const event of [1, 2]) store.append(session, 1, event, `${session}${event}`)
      }
      yield* store.flush!
      expect(yield* store.read("b", 1, 1)).toEqual(["b2"])
    }).pipe(Effect.scoped))
})

describeRedis("RedisFleet, cut off", () => {
  const server = Effect.acquireRelease(
    Effect.promise(() => startRedis()),
    (redis) => Effect.promise(() => redis.stop())
  )

  it.live("a node whose subscription is cut subscribes again, and reports a gap if messages are lost", () =>
    Effect.gen(function*() {
      const redis = yield* server
      const layer = RedisFleet.layer({ url: redis.url, namespace: "cut", leaseTimeout: "3 seconds" })
      const [one, two] = [yield* start(layer), yield* start(layer)]
      const { id } = yield* open(one)
      yield* two.fleet.find(id, undefined)
      for (let round = 1; round <= 3; round++) {
        const { gaps } = two
        yield* Effect.promise(() => redis.command("CLIENT", "KILL", "TYPE", "pubsub"))
        // A message that no one receives.
        yield* Effect.promise(() => redis.command("HINCRBY", "skein:{fleet:cut}:sent", `${two.fleet.node}`, "1"))
        yield* until("the gap is noticed", () => two.gaps > gaps)
        const change = { logLevel: `level ${round}` }
        yield* untilEffect(
          "a change is confirmed",
          Effect.match(one.fleet.change(id, change), { onFailure: () => false, onSuccess: () => true })
        )
        yield* until(
          "the change has arrived",
          () => two.arrived.some((message) => message._tag === "Changed" && message.change.logLevel === change.logLevel)
        )
      }
    }).pipe(Effect.scoped))

  it.live("fails while Redis is down, and goes on with other numbers when it has restarted without its data", () =>
    Effect.gen(function*() {
      const redis = yield* server
      const layer = RedisFleet.layer({ url: redis.url, leaseTimeout: "3 seconds" })
      const [one, two] = [yield* start(layer), yield* start(layer)]
      const { id } = yield* open(one)
      yield* Effect.promise(() => redis.kill())
      const error = yield* Effect.flip(two.fleet.find(id, undefined))
      expect(error._tag).toBe("FleetError")
      yield* Effect.promise(() => redis.start())
      yield* until("both nodes notice it", () => one.gaps > 0 && two.gaps > 0)
      expect(yield* two.fleet.find(id, undefined)).toBeUndefined()
      const three = yield* start(layer)
      expect(new Set([one, two, three].map(({ fleet }) => fleet.node)).size).toBe(3)
      const again = yield* open(one)
      yield* two.fleet.find(again.id, undefined)
      yield* one.fleet.change(again.id, { logLevel: "debug" })
      yield* until(
        "the change has arrived",
        () => two.arrived.some((message) => message._tag === "Changed" && message.id === again.id)
      )
    }).pipe(Effect.scoped))

  it.live("a node of a stopped Redis is gone for no other longer than the stop", () =>
    Effect.gen(function*() {
      const redis = yield* server
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))])
      const layer = Layer.provide(RedisFleet.layer({ url: redis.url, leaseTimeout: "2 seconds" }), logger)
      const [one, two] = [yield* start(layer), yield* start(layer)]
      const { id } = yield* open(one)
      redis.pause()
      // A node subscribes again when no message, of its renewals either, has arrived for as long as its lease.
      const ended = () => lines.filter((line) => line.includes("the subscription to Redis failed")).length
      yield* until("the leases have ended", () => ended() >= 2)
      redis.resume()
      yield* until("the nodes know each other", () => one.fleet.isServing(two.fleet.node))
      yield* untilEffect(
        "the session is found",
        Effect.match(two.fleet.find(id, undefined), {
          onFailure: () => false,
          onSuccess: (found) => found !== undefined
        })
      )
    }).pipe(Effect.scoped))
})

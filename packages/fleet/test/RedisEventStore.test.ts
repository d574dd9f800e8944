/** The event store of a fleet on a real Redis, which is killed and restarted. */
import { expect, it } from "@effect/vitest"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as RandomId from "@skein/runtime/RandomId"
import * as RedisEventStore from "@skein/fleet/RedisEventStore"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import { type Bounds, eventStoreTests } from "./eventStoreTests.ts"
import { until } from "./kit.ts"
import { describeRedis, startRedis } from "./startRedis.ts"

/** Three nodes of one new fleet. */
const open = (url: string, bounds: Bounds = {}) =>
  Effect.gen(function*() {
    const namespace = RandomId.make(8)
    const clients = yield* Effect.forEach(
      [1, 2, 3],
      () =>
        Effect.map(
          Layer.build(NodeRedis.layer({ url, disableOfflineQueue: true })),
          (context) => Context.get(context, Redis.Redis)
        )
    )
    const stores = yield* Effect.forEach(
      clients,
      (redis) => Effect.provideService(RedisEventStore.make({ ...bounds, namespace }), Redis.Redis, redis)
    )
    const [redis] = clients
    const keys = Effect.orDie(redis!.send<ReadonlyArray<string>>("KEYS", `skein:{fleet:${namespace}}:e:*`))
    const count = Effect.flatMap(
      keys,
      (keys) =>
        Effect.reduce(keys, () =>
          0, (sum, key) =>
          Effect.map(Effect.orDie(redis!.send<number>("XLEN", key)), (n) => sum + n))
    )
    return { redis: redis!, stores, keys, count }
  }).pipe(Effect.orDie)

describeRedis("RedisEventStore", (redis) => {
  eventStoreTests((bounds) => Effect.suspend(() => open(redis().url, bounds)))

  it.live("the events of a stream expire `lifetime` after the latest", () =>
    Effect.gen(function*() {
      const { keys, redis: client, stores: [store] } = yield* open(redis().url, { lifetime: 60_000 })
      for (let event = 1; event <= 10; event++) store!.append("s", 1, event, "data")
      yield* store!.flush!
      const [key] = yield* keys
      const left = yield* client.send<number>("PTTL", key!)
      expect(left).toBeGreaterThan(30_000)
      expect(left).toBeLessThanOrEqual(60_000)
    }))
})

describeRedis("RedisEventStore, while Redis restarts", () => {
  const server = Effect.acquireRelease(
    Effect.promise(() => startRedis()),
    (redis) => Effect.promise(() => redis.stop())
  )

  it.live("never reads with a gap after Redis has restarted without its data", () =>
    Effect.gen(function*() {
      const redis = yield* server
      const { stores: [one, two] } = yield* open(redis.url)
      for (const event of [1, 2]) one!.append("s", 1, event, `event ${event}`)
      yield* one!.flush!
      yield* Effect.promise(() => redis.kill())
      for (const event of [3, 4]) one!.append("s", 1, event, `event ${event}`)
      yield* until("the events are lost", () => one!.size === 0)
      yield* Effect.promise(() => redis.start())
      yield* one!.flush!
      for (const event of [5, 6]) one!.append("s", 1, event, `event ${event}`)
      yield* one!.flush!
      for (const store of [one!, two!]) {
        expect(yield* store.read("s", 1, 2)).toBeUndefined()
        expect(yield* store.read("s", 1, 4)).toEqual(["event 5", "event 6"])
      }
    }))
})

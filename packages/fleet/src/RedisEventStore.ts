/**
 * An event store in Redis or Valkey, for the nodes of a fleet: as `PostgresEventStore`, with its batches, bounds and times.
 *
 * Each stream is a key that expires `lifetime` after its latest event. A Redis without persistence is empty after a restart:
 * then clients cannot resume the streams before it.
 *
 * @example
 * const listening = NodeHttp.layer({ port: 8080 }).pipe(
 *   Layer.provide(server),
 *   Layer.provide(RedisEventStore.layer()),
 *   Layer.provide(RedisFleet.layer({ url: process.env.REDIS_URL }))
 * )
 */
import * as EventStore from "@skein/server/EventStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import type { EventBatch, EventRange, EventTable } from "./internal/events/eventTable.ts"
import { type Bounds, makeSharedEventStore } from "./internal/events/sharedEventStore.ts"
import { prefixOf } from "./internal/redis/redisBackend.ts"

export type { Bounds } from "./internal/events/sharedEventStore.ts"

/** The name of the fleet, and the bounds. */
export interface Options extends Bounds {
  /** The namespace of the `RedisFleet`: `default` by default. */
  readonly namespace?: string | undefined
}

// The keys are the streams, and the first arguments their number and the lifetime. Then there are the ranges to remove, and
// the events to add: for each the number of its key and two values. An entry has the number of its event as its id, so that
// an event which is stored already is refused. The last entries are removed by writing the others again: a stream accepts no
// entry before one that it has deleted, and Valkey does not let XSETID change that.
const writeScript = Redis.script(
  (keys: ReadonlyArray<string>, rest: ReadonlyArray<string | number>) => [...keys, ...rest],
  {
    numberOfKeys: (keys) => keys.length,
    lua: `
local lifetime, ranges = ARGV[1], tonumber(ARGV[2])
local at = 3
for _ = 1, ranges do
  local key, first, last = KEYS[tonumber(ARGV[at])], tonumber(ARGV[at + 1]), ARGV[at + 2]
  if first == 0 then redis.call('XTRIM', key, 'MINID', ARGV[at + 2])
  else
    local later = redis.call('XRANGE', key, ARGV[at + 1], '+', 'COUNT', 1)
    if #later > 0 then
      local kept = redis.call('XRANGE', key, '-', string.format('%.0f', first - 1))
      redis.call('DEL', key)
      for _, entry in ipairs(kept) do redis.call('XADD', key, entry[1], 'd', entry[2][2]) end
      if #kept > 0 then redis.call('PEXPIRE', key, lifetime) end
    end
  end
  if redis.call('EXISTS', key) == 1 and redis.call('XLEN', key) == 0 then redis.call('DEL', key) end
  at = at + 3
end
while at <= #ARGV do
  local key = KEYS[tonumber(ARGV[at])]
  local added = redis.pcall('XADD', key, ARGV[at + 1] .. '-1', 'd', ARGV[at + 2])
  if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller') then return added end
  redis.call('PEXPIRE', key, lifetime)
  at = at + 3
end`
  }
).withReturnType<null>()

const makeTable = (redis: Redis.Redis["Service"], prefix: string, lifetime: number): EventTable => {
  const keyOf = ({ session, stream }: Pick<EventRange, "session" | "stream">) => `${prefix}:e:${session}:${stream}`
  const write = redis.eval(writeScript)
  return {
    write: ({ events, ranges }: EventBatch) => {
      const numbers = new Map<string, number>()
      const numberOf = (key: string): number => {
        const number = numbers.get(key) ?? numbers.size + 1
        numbers.set(key, number)
        return number
      }
      const values = [
        Math.ceil(lifetime),
        ranges.length,
        // Entries before the id are removed, or those from the id on.
        ...ranges.flatMap((range) => [numberOf(keyOf(range)), range.first, range.last + 1]),
        ...events.flatMap((event) => [numberOf(keyOf(event)), event.event, event.data])
      ]
      return write([...numbers.keys()], values)
    },
    read: (session, stream, first) =>
      Effect.map(
        redis.send<ReadonlyArray<readonly [string, ReadonlyArray<string>]> | null>(
          "XRANGE",
          keyOf({ session, stream }),
          `${first}`,
          "+"
        ),
        (entries) => (entries ?? []).map(([id, [, data]]) => ({ event: Number(id.split("-")[0]), data: data! }))
      ),
    // Keys expire.
    removeExpired: Effect.succeed(false)
  }
}

/**
 * Makes a store. It stops with the scope.
 *
 * @example
 * const store = yield* RedisEventStore.make({ lifetime: "10 minutes" })
 */
export const make = (
  options: Options = {}
): Effect.Effect<EventStore.Store, never, Redis.Redis | Scope.Scope> =>
  Effect.flatMap(
    Redis.Redis,
    (redis) =>
      makeSharedEventStore(options, (lifetime) => makeTable(redis, prefixOf(options.namespace ?? "default"), lifetime))
  )

/**
 * Provides a store on the `Redis` of Effect, which `RedisFleet.layer` provides too.
 *
 * @example
 * const events = RedisEventStore.layer().pipe(Layer.provide(NodeRedis.layer({ url: process.env.REDIS_URL })))
 */
export const layer = (options?: Options): Layer.Layer<EventStore.EventStore, never, Redis.Redis> =>
  Layer.effect(EventStore.EventStore, make(options))

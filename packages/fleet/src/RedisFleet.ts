/**
 * A fleet on Redis or Valkey (7 or newer): as `PostgresFleet`, for deployments that have Redis, or that open thousands of sessions
 * each second.
 *
 * **Details**
 *
 * - A session is a hash. Each operation is one script, which also publishes its message: nodes receive changes in their order.
 * - All keys begin with `skein:{fleet:<namespace>}`, so that in a cluster they are in one slot: one master has a whole fleet.
 *   `layer` connects to that master, and does not follow the slot to another one.
 * - A node that has missed messages reads its sessions again, and notifies its clients of all lists once.
 * - A Redis that restarts without its data has no sessions: their clients get 404 and initialize again. With replicas, a
 *   failover can lose the latest changes.
 * - The principal and the client of a session are stored as digests; the name, the version and the capabilities of the
 *   client are not encrypted.
 *
 * Rate limits on Redis are in Effect: `RateLimiter.layerStoreRedis`.
 *
 * **Gotchas**
 *
 * - Each node needs the same secret for sealed state: `RequestState.layer`.
 * - Set `maxmemory-policy` to `noeviction`: a policy that removes keys removes sessions.
 *
 * @example
 * const fleet = RedisFleet.layer({ url: process.env.REDIS_URL })
 * NodeHttp.runMain(Layer.provideMerge(server, fleet), { port: 8080 })
 */
import { resolve } from "@skein/runtime/Options"
import type { EventBus } from "@skein/server/EventBus"
import { type Fleet, FleetError } from "@skein/server/Fleet"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import { Lease } from "./internal/events/sharedEventStore.ts"
import { makeNode } from "./internal/node/node.ts"
import { makeBackend } from "./internal/redis/redisBackend.ts"

/** The name of the fleet, and its lease. */
export interface NodeOptions {
  /** The server whose sessions these are: `default` by default. Two servers that share a Redis need two namespaces. */
  readonly namespace?: string | undefined
  /**
   * How long the lease of a node is: 5 seconds by default, and at least 1 second. A node renews it three times in this
   * time. The others take a node that does not for gone. Raise it for code that blocks the event loop for long.
   */
  readonly leaseTimeout?: Duration.Input | undefined
}

/** The connection to Redis, and the node. */
export interface Options extends NodeOptions {
  /** `redis://user:password@host:6379/0`, or `rediss://` with TLS. */
  readonly url: string
}

/**
 * Provides the fleet and the event bus with a client of the application. `layer` makes a client of its own.
 *
 * @example
 * const redis = NodeRedis.layer({ url: process.env.REDIS_URL, disableOfflineQueue: true })
 * const fleet = RedisFleet.layerClient().pipe(Layer.provideMerge(redis))
 */
export const layerClient = (options: NodeOptions = {}): Layer.Layer<Fleet | EventBus, FleetError, Redis.Redis> =>
  Layer.effectContext(Effect.gen(function*() {
    const { leaseTimeout, namespace } = resolve<NodeOptions>(
      options,
      { namespace: "default" },
      { leaseTimeout: "5 seconds" }
    )
    const leaseMillis = Math.max(1_000, Math.ceil(leaseTimeout))
    const redis = yield* Redis.Redis
    const node = yield* makeNode(yield* makeBackend(redis, namespace, leaseMillis), leaseMillis)
    return Context.add(node, Lease, leaseMillis)
  }))

/**
 * Provides the fleet, the event bus, and the client of Redis for other stores. The client is that of the npm package
 * `redis`, which is loaded when the layer is built. While Redis is down, operations fail at once.
 *
 * Fails with `FleetError` if it cannot connect.
 *
 * @example
 * const fleet = RedisFleet.layer({ url: process.env.REDIS_URL, namespace: "shop" })
 * const listening = NodeHttp.layer({ port: 8080 }).pipe(Layer.provide(server), Layer.provide(fleet))
 */
export const layer = ({ url, ...options }: Options): Layer.Layer<Fleet | EventBus | Redis.Redis, FleetError> => {
  const client = Layer.unwrap(Effect.map(
    Effect.promise(() => import("@effect/platform-node/NodeRedis")),
    (NodeRedis) => NodeRedis.layer({ url, disableOfflineQueue: true })
  ))
  const failed = (cause: Redis.RedisError): FleetError =>
    new FleetError({ message: "failed to connect to Redis", cause })
  return Layer.provideMerge(
    layerClient(options),
    Layer.effectContext(Effect.mapError(Layer.build(client), failed))
  )
}

/**
 * Additions to the cluster for runners that share a database.
 */
import { PgClient } from "@skein/sql/PgClient"
import { EntityNotAssignedToRunner } from "effect/cluster/ClusterError"
import type { PersistenceError } from "effect/cluster/ClusterError"
import { MessageStorage } from "effect/cluster/MessageStorage"
import * as Runners from "effect/cluster/Runners"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import { Sharding } from "effect/cluster/Sharding"
import type { ShardingConfig } from "effect/cluster/ShardingConfig"
import * as ShardId from "effect/cluster/ShardId"
import * as Snowflake from "effect/cluster/Snowflake"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { SqlClient } from "effect/sql/SqlClient"
import type { TaskError } from "../../TaskError.ts"
import { Database, storeError } from "../store/database.ts"

const channel = "skein_messages"

/**
 * Runners that find each other and their messages only through the database: they open no port. A process that writes a
 * message for another runner notifies all runners of its shard, in the same transaction. The runner that owns the shard
 * then polls.
 */
export const layerRunners: Layer.Layer<
  Runners.Runners,
  never,
  MessageStorage | ShardingConfig | SqlClient
> = Layer.effect(
  Runners.Runners,
  Effect.gen(function*() {
    const { sql } = new Database(yield* SqlClient)
    return yield* Runners.make({
      codecFor: Schema.toCodecJson as never,
      ping: () => Effect.void,
      onRunnerUnavailable: () => Effect.void,
      send: ({ message: { envelope: { address } } }) => Effect.fail(new EntityNotAssignedToRunner({ address })),
      // A runner that misses a notification finds the message at its next poll.
      notify: ({ message }) =>
        sql`SELECT pg_notify(${channel}, ${message.envelope.address.shardId.toString()})`.pipe(
          Effect.withTracerEnabled(false),
          Effect.ignore
        )
    })
  })
).pipe(Layer.provide(Snowflake.layerGenerator))

/** Polls for messages when another process has written one for a shard of this runner. */
export const layerMessageListener: Layer.Layer<never, TaskError, PgClient | Sharding> = Layer.effectDiscard(
  Effect.gen(function*() {
    const { listen } = yield* PgClient
    const sharding = yield* Sharding
    const run = yield* FiberSet.makeRuntime()
    const poll = () => void run(sharding.pollStorage)
    const onShard = (shard: string) => {
      if (sharding.hasShardId(ShardId.fromString(shard))) poll()
    }
    yield* Effect.mapError(listen(channel, onShard, poll), storeError)
  })
)

/**
 * Makes sure that unprocessed messages are read again. The cluster reads a message again only after ten minutes, or
 * after a reset of its shard, and it does not reset shards in two cases:
 *
 * - A runner resets the shards that it takes over once, and continues if that fails or takes long. Here the reset is
 *   retried until it succeeds.
 * - A read whose response is lost because the database has become unavailable may have happened all the same. Here the
 *   next read resets the shards first.
 */
export const layerRereadMessages: Layer.Layer<MessageStorage, never, MessageStorage> = Layer.effect(
  MessageStorage,
  Effect.gen(function*() {
    const storage = yield* MessageStorage
    const scope = yield* Effect.scope
    let hasLostRead = false
    return MessageStorage.of({
      ...storage,
      resetShards: (shards) => {
        const reset = storage.resetShards([...shards])
        return Effect.onError(reset, () => Effect.forkIn(Effect.retry(reset, Schedule.spaced("1 second")), scope))
      },
      unprocessedMessages: (shards, options) => {
        const all = [...shards]
        const noteLostRead = Effect.sync(() => void (hasLostRead = true))
        const read = Effect.onError(storage.unprocessedMessages(all, options), () => noteLostRead)
        const reset = Effect.tap(storage.resetShards(all), () => Effect.sync(() => void (hasLostRead = false)))
        return Effect.suspend(() => hasLostRead ? Effect.andThen(reset, read) : read)
      }
    })
  })
)

/**
 * Avoids a warning at shutdown. A runner that stops unregisters itself and then reads the list of runners once more; if
 * it was the only one, the cluster warns that there are "no healthy runners", on which no action is possible. Here a
 * runner that has unregistered sees the list from before.
 */
export const layerQuietUnregister: Layer.Layer<RunnerStorage, never, RunnerStorage> = Layer.effect(
  RunnerStorage,
  Effect.map(RunnerStorage, (storage) => {
    let isUnregistered = false
    let last: Effect.Success<typeof storage.getRunners> = []
    const read = Effect.tap(storage.getRunners, (runners) => Effect.sync(() => void (last = runners)))
    return RunnerStorage.of({
      ...storage,
      getRunners: Effect.suspend(() => isUnregistered ? Effect.succeed(last) : read),
      unregister: (address) =>
        Effect.suspend(() => {
          isUnregistered = true
          return storage.unregister(address)
        })
    })
  })
)

/** The second reset of lost shards. By then, no read that was under way at the first one is still running. */
const secondReset = { schedule: Schedule.spaced("2 seconds"), times: 1 }

/**
 * Before a runner writes the last reply to a message, it confirms that it still owns the message's shard: one commit,
 * and one read of all locks. Here concurrent confirmations share the next read instead of running one after the other.
 *
 * A runner that was stopped and continues reads messages until it finds that their shards belong to others; those
 * messages would not be read again for ten minutes. So a runner that has lost shards, or may have lost them, resets
 * these shards.
 */
export const layerConfirmShards: Layer.Layer<RunnerStorage, never, RunnerStorage | MessageStorage> = Layer.effect(
  RunnerStorage,
  Effect.gen(function*() {
    const storage = yield* RunnerStorage
    const messages = yield* MessageStorage
    const scope = yield* Effect.scope
    /** Shards that this runner owned, and may have lost. */
    const unconfirmed = new Set<ShardId.ShardId>()
    const resetLost = Effect.suspend(() => {
      if (unconfirmed.size === 0) return Effect.void
      const lost = [...unconfirmed]
      unconfirmed.clear()
      return Effect.forkIn(Effect.repeat(Effect.ignore(messages.resetShards(lost)), secondReset), scope)
    })
    const refresh: typeof storage.refresh = (address, shardIds) =>
      Effect.suspend(() => {
        for (const shard of shardIds) unconfirmed.add(shard)
        return Effect.tap(storage.refresh(address, shardIds), (owned) => {
          for (const shard of owned) unconfirmed.delete(shard)
          return resetLost
        })
      })
    const oneAtATime = Semaphore.makeUnsafe(1)
    let next: ShardCheck | undefined
    return RunnerStorage.of({
      ...storage,
      refresh: (address, shardIds) => {
        const shards = [...shardIds]
        // Without shards this only checks whether the database is available.
        if (shards.length === 0) return refresh(address, shards)
        return Effect.suspend(() => {
          if (next !== undefined) {
            next.shards.push(...shards)
            return Deferred.await(next.owned)
          }
          const check: ShardCheck = { shards, owned: Deferred.makeUnsafe() }
          next = check
          const run = Effect.suspend(() => {
            next = undefined
            return refresh(address, [...new Set(check.shards)])
          })
          // The check runs in a fiber of its own, since its first caller may be interrupted while others wait for it.
          return Effect.flatMap(Effect.forkIn(oneAtATime.withPermits(1)(run), scope), (fiber) => {
            fiber.addObserver((exit) => Deferred.doneUnsafe(check.owned, exit))
            return Deferred.await(check.owned)
          })
        })
      }
    })
  })
)

/** A shared confirmation of shards. */
interface ShardCheck {
  readonly shards: Array<ShardId.ShardId>
  readonly owned: Deferred.Deferred<Array<ShardId.ShardId>, PersistenceError>
}

/**
 * What runners that share a database need beside what the cluster gives them.
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
 * Runners that find each other, and their messages, in the database alone: they open no port. Who writes a message for another
 * runner notifies all of its shard, in the same transaction; the one that has the shard looks.
 */
export const runners: Layer.Layer<
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
      // Who is not notified finds the message when it polls.
      notify: ({ message }) =>
        sql`SELECT pg_notify(${channel}, ${message.envelope.address.shardId.toString()})`.pipe(
          Effect.withTracerEnabled(false),
          Effect.ignore
        )
    })
  })
).pipe(Layer.provide(Snowflake.layerGenerator))

/** Looks for messages when others have written some. */
export const attention: Layer.Layer<never, TaskError, PgClient | Sharding> = Layer.effectDiscard(
  Effect.gen(function*() {
    const { listen } = yield* PgClient
    const sharding = yield* Sharding
    const run = yield* FiberSet.makeRuntime()
    const look = () => void run(sharding.pollStorage)
    const heard = (shard: string) => {
      if (sharding.hasShardId(ShardId.fromString(shard))) look()
    }
    yield* Effect.mapError(listen(channel, heard, look), storeError)
  })
)

/**
 * What was read is not read again before ten minutes have passed, unless somebody says that it must be.
 *
 * - A runner says so of what it takes over: once, and goes on where that fails, or takes long. Here it is said until it is heard.
 * - Whoever reads, and hears no answer, because the database went away just then, may have read all the same. Nobody says so of that.
 */
export const persistent: Layer.Layer<MessageStorage, never, MessageStorage> = Layer.effect(
  MessageStorage,
  Effect.gen(function*() {
    const storage = yield* MessageStorage
    const scope = yield* Effect.scope
    let unheard = false
    return MessageStorage.of({
      ...storage,
      resetShards: (shards) => {
        const reset = storage.resetShards([...shards])
        return Effect.onError(reset, () => Effect.forkIn(Effect.retry(reset, Schedule.spaced("1 second")), scope))
      },
      unprocessedMessages: (shards, options) => {
        const all = [...shards]
        const read = Effect.onError(storage.unprocessedMessages(all, options), () =>
          Effect.sync(() => {
            unheard = true
          }))
        const anew = Effect.tap(storage.resetShards(all), () =>
          Effect.sync(() => {
            unheard = false
          }))
        return Effect.suspend(() => unheard ? Effect.andThen(anew, read) : read)
      }
    })
  })
)

/**
 * A runner that goes takes itself off the list, and looks at it once more: where nobody else is on it, the cluster warns that there are
 * "no healthy runners". It is nothing that anybody could mend; so who has gone sees the list that was there before.
 */
export const quiet: Layer.Layer<RunnerStorage, never, RunnerStorage> = Layer.effect(
  RunnerStorage,
  Effect.map(RunnerStorage, (storage) => {
    let gone = false
    let last: Effect.Success<typeof storage.getRunners> = []
    const look = Effect.tap(storage.getRunners, (runners) => Effect.sync(() => void (last = runners)))
    return RunnerStorage.of({
      ...storage,
      getRunners: Effect.suspend(() => gone ? Effect.succeed(last) : look),
      unregister: (address) =>
        Effect.suspend(() => {
          gone = true
          return storage.unregister(address)
        })
    })
  })
)

/** How much later a runner that has lost shards says once more that their messages are to be read anew: no read is under way then. */
const onceMore = { schedule: Schedule.spaced("2 seconds"), times: 1 }

/**
 * Before a runner writes the last reply to a message it makes sure that the message's shard is still its own: a commit, and a look at
 * all locks, one after the other. Those who ask meanwhile are answered together, by the next look.
 *
 * One that was stopped, and goes on, reads messages until it knows that their shards are others': those would not be read again for ten
 * minutes. So who finds that it has lost shards, or may have, lets their messages be read anew.
 */
export const confirming: Layer.Layer<RunnerStorage, never, RunnerStorage | MessageStorage> = Layer.effect(
  RunnerStorage,
  Effect.gen(function*() {
    const storage = yield* RunnerStorage
    const messages = yield* MessageStorage
    const scope = yield* Effect.scope
    /** Shards that were this runner's, and may not be any more. */
    const doubted = new Set<ShardId.ShardId>()
    const anew = Effect.suspend(() => {
      if (doubted.size === 0) return Effect.void
      const lost = [...doubted]
      doubted.clear()
      return Effect.forkIn(Effect.repeat(Effect.ignore(messages.resetShards(lost)), onceMore), scope)
    })
    const refresh: typeof storage.refresh = (address, shardIds) =>
      Effect.suspend(() => {
        for (const shard of shardIds) doubted.add(shard)
        return Effect.tap(storage.refresh(address, shardIds), (held) => {
          for (const shard of held) doubted.delete(shard)
          return anew
        })
      })
    const turn = Semaphore.makeUnsafe(1)
    let next: Look | undefined
    return RunnerStorage.of({
      ...storage,
      refresh: (address, shardIds) => {
        const asked = [...shardIds]
        // Without shards it only looks whether the database is there.
        if (asked.length === 0) return refresh(address, asked)
        return Effect.suspend(() => {
          if (next !== undefined) {
            next.asked.push(...asked)
            return Deferred.await(next.held)
          }
          const look: Look = { asked, held: Deferred.makeUnsafe() }
          next = look
          const looks = Effect.suspend(() => {
            next = undefined
            return refresh(address, [...new Set(look.asked)])
          })
          // Whoever asks may go, and the others wait for the answer.
          return Effect.flatMap(Effect.forkIn(turn.withPermits(1)(looks), scope), (fiber) => {
            fiber.addObserver((exit) => Deferred.doneUnsafe(look.held, exit))
            return Deferred.await(look.held)
          })
        })
      }
    })
  })
)

interface Look {
  readonly asked: Array<ShardId.ShardId>
  readonly held: Deferred.Deferred<Array<ShardId.ShardId>, PersistenceError>
}

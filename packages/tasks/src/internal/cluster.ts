/**
 * The cluster that executions live in: one runner in this process, or runners in many.
 */
import { PgClient } from "@skein/sql/PgClient"
import * as ClusterWorkflowEngine from "effect/cluster/ClusterWorkflowEngine"
import { EntityNotAssignedToRunner } from "effect/cluster/ClusterError"
import { MessageStorage } from "effect/cluster/MessageStorage"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as ShardId from "effect/cluster/ShardId"
import * as Snowflake from "effect/cluster/Snowflake"
import * as SqlMessageStorage from "effect/cluster/SqlMessageStorage"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import type { Digest } from "effect/crypto/Digest"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import type { TaskError } from "../TaskError.ts"
import { Database, storeError } from "./table/database.ts"
import { defaultGroup } from "./workflow.ts"

/** What all clusters have to be told. */
export interface Options {
  readonly pollInterval: Duration.Input
  readonly terminationTimeout: Duration.Input
}

/** What the engine of tasks stands on. */
export type Cluster = WorkflowEngine | Sharding.Sharding | MessageStorage

/**
 * The settings that both kinds share. What bounds tasks are their limits: `maxResidentEntities` only makes the runner look into the
 * store again and again.
 */
export const settings = ({ pollInterval, terminationTimeout }: Options) =>
  ({
    entityMessagePollInterval: pollInterval,
    entityReplyPollInterval: "200 millis",
    entityTerminationTimeout: terminationTimeout,
    maxResidentEntities: "unbounded",
    simulateRemoteSerialization: false
  }) as const

/** Its one runner has everything, and nobody to share it with: few shards, locks that are none, and nobody to look out for. */
export const single = (options: Options): Layer.Layer<Cluster, never, SqlClient.SqlClient | Digest> =>
  ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(Sharding.layer),
    Layer.provide(Runners.layerNoop),
    Layer.provideMerge(SqlMessageStorage.layer),
    Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
    Layer.provide(ShardingConfig.layer({
      ...settings(options),
      availableShardGroups: [defaultGroup],
      assignedShardGroups: [defaultGroup],
      shardsPerGroup: 8,
      shardLockRefreshInterval: "1 day",
      shardLockExpiration: "3 days",
      refreshAssignmentsInterval: "1 hour"
    }))
  )

/** How runners share a database. */
export interface Shared extends Options {
  /** The shard groups: all that are known, and those of which this process is a runner. */
  readonly groups: { readonly all: ReadonlyArray<string>; readonly own: ReadonlyArray<string> }
  /** How long a runner that is gone without a word keeps its shards. */
  readonly lockExpiry: Duration.Input
}

const channel = "skein_messages"

/**
 * Runners that find each other, and their messages, in the database alone: they open no port. Who writes a message for another
 * runner notifies all of its shard, in the same transaction; the one that has the shard looks.
 */
const runners: Layer.Layer<
  Runners.Runners,
  never,
  MessageStorage | ShardingConfig.ShardingConfig | SqlClient.SqlClient
> = Layer.effect(
  Runners.Runners,
  Effect.gen(function*() {
    const { sql } = new Database(yield* SqlClient.SqlClient)
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
const attention: Layer.Layer<never, TaskError, PgClient | Sharding.Sharding> = Layer.effectDiscard(
  Effect.gen(function*() {
    const { listen } = yield* PgClient
    const sharding = yield* Sharding.Sharding
    const run = yield* FiberSet.makeRuntime()
    const look = () => void run(sharding.pollStorage)
    const heard = (shard: string) => {
      if (sharding.hasShardId(ShardId.fromString(shard))) look()
    }
    yield* Effect.mapError(listen(channel, heard, look), storeError)
  })
)

/**
 * What a runner takes over it has to read anew, and says so: else it is read only when ten minutes have passed since the last runner
 * has. The cluster says so once, and goes on where that fails, or takes long: here it is said until it is heard.
 */
const persistent: Layer.Layer<MessageStorage, never, MessageStorage> = Layer.effect(
  MessageStorage,
  Effect.gen(function*() {
    const storage = yield* MessageStorage
    const scope = yield* Effect.scope
    return MessageStorage.of({
      ...storage,
      resetShards: (shards) => {
        const reset = storage.resetShards([...shards])
        return Effect.onError(reset, () => Effect.forkIn(Effect.retry(reset, Schedule.spaced("1 second")), scope))
      }
    })
  })
)

/**
 * A runner that goes takes itself off the list, and looks at it once more: where nobody else is on it, the cluster warns that there are
 * "no healthy runners". It is nothing that anybody could mend; so who has gone sees the list that was there before.
 */
const quiet: Layer.Layer<RunnerStorage.RunnerStorage, never, RunnerStorage.RunnerStorage> = Layer.effect(
  RunnerStorage.RunnerStorage,
  Effect.map(RunnerStorage.RunnerStorage, (storage) => {
    let gone = false
    let last: Effect.Success<typeof storage.getRunners> = []
    const look = Effect.tap(storage.getRunners, (runners) => Effect.sync(() => void (last = runners)))
    return RunnerStorage.RunnerStorage.of({
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

/** A runner among others, or, without groups of its own, one that only writes messages. */
export const shared = (
  options: Shared
): Layer.Layer<Cluster, TaskError, PgClient | SqlClient.SqlClient | Digest> => {
  const { groups: { all, own } } = options
  // It stands for this process alone, and only until its end.
  const address = RunnerAddress.make(globalThis.crypto.randomUUID(), 0)
  const config = ShardingConfig.layer({
    ...settings(options),
    runnerAddress: own.length === 0 ? Option.none() : Option.some(address),
    availableShardGroups: all,
    assignedShardGroups: own,
    shardsPerGroup: 64,
    shardLockExpiration: options.lockExpiry,
    refreshAssignmentsInterval: "1 second"
  })
  return ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(own.length === 0 ? Layer.empty : attention),
    Layer.provideMerge(Sharding.layer),
    Layer.provide(runners),
    Layer.provideMerge(Layer.provide(persistent, SqlMessageStorage.layer)),
    Layer.provide([Layer.provide(quiet, Layer.orDie(SqlRunnerStorage.layer)), RunnerHealth.layerNoop]),
    Layer.provide(config)
  )
}

/**
 * The cluster that executions live in: one runner in this process, or runners in many.
 */
import type { PgClient } from "@skein/sql/PgClient"
import * as ClusterWorkflowEngine from "effect/cluster/ClusterWorkflowEngine"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import type { Digest } from "effect/crypto/Digest"
import type * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as SqlClient from "effect/sql/SqlClient"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import type { TaskError } from "../../TaskError.ts"
import * as messages from "./messages.ts"
import { attention, confirming, persistent, quiet, runners } from "./runners.ts"
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
    Layer.provideMerge(messages.layer),
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
  const kept = Layer.provide(persistent, messages.layer)
  return ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(own.length === 0 ? Layer.empty : attention),
    Layer.provideMerge(Sharding.layer),
    Layer.provide(runners),
    Layer.provideMerge(kept),
    Layer.provide([
      confirming.pipe(Layer.provide([quiet.pipe(Layer.provide(Layer.orDie(SqlRunnerStorage.layer))), kept])),
      RunnerHealth.layerNoop
    ]),
    Layer.provide(config)
  )
}

/**
 * The cluster that executions live in: one runner in this process, or runners in many.
 */
import * as ClusterWorkflowEngine from "effect/cluster/ClusterWorkflowEngine"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as Sharding from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as SqlMessageStorage from "effect/cluster/SqlMessageStorage"
import type { Digest } from "effect/crypto/Digest"
import type * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import type * as SqlClient from "effect/sql/SqlClient"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"

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
      shardsPerGroup: 8,
      shardLockRefreshInterval: "1 day",
      shardLockExpiration: "3 days",
      refreshAssignmentsInterval: "1 hour"
    }))
  )

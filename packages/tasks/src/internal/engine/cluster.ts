/**
 * The cluster in which executions run: one runner in a single process, or a runner in each of several processes.
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
import * as messages from "./messageStorage.ts"
import {
  layerConfirmShards,
  layerMessageListener,
  layerQuietUnregister,
  layerRereadMessages,
  layerRunners
} from "./runners.ts"
import { defaultShardGroup } from "./workflow.ts"

/** The options of both kinds of cluster. */
export interface Options {
  /** The time between two reads of the message storage. */
  readonly pollInterval: Duration.Input
  /** How long an execution may take to end when its runner stops or hands it over. */
  readonly interruptTimeout: Duration.Input
}

/** The services of the cluster that the task engine uses. */
export type ClusterServices = WorkflowEngine | Sharding.Sharding | MessageStorage

/**
 * The settings of both kinds. `maxResidentEntities` is unbounded, because with a bound the runner reads the store again
 * and again: the limits on tasks bound the number of executions.
 */
export const shardingSettings = ({ pollInterval, interruptTimeout }: Options) =>
  ({
    entityMessagePollInterval: pollInterval,
    entityReplyPollInterval: "200 millis",
    entityTerminationTimeout: interruptTimeout,
    maxResidentEntities: "unbounded",
    simulateRemoteSerialization: false
  }) as const

/**
 * The cluster of a single process. Its one runner owns all shards, so there are few, and locks and assignments are not
 * refreshed.
 */
export const layerSingle = (options: Options): Layer.Layer<ClusterServices, never, SqlClient.SqlClient | Digest> =>
  ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(Sharding.layer),
    Layer.provide(Runners.layerNoop),
    Layer.provideMerge(messages.layer),
    Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
    Layer.provide(ShardingConfig.layer({
      ...shardingSettings(options),
      availableShardGroups: [defaultShardGroup],
      assignedShardGroups: [defaultShardGroup],
      shardsPerGroup: 8,
      shardLockRefreshInterval: "1 day",
      shardLockExpiration: "3 days",
      refreshAssignmentsInterval: "1 hour"
    }))
  )

/** The options of a cluster of several processes. */
export interface SharedOptions extends Options {
  /** All known shard groups, and those that this process runs. */
  readonly groups: { readonly all: ReadonlyArray<string>; readonly own: ReadonlyArray<string> }
  /** How long a runner that was killed or cut off keeps its shards. */
  readonly lockExpiry: Duration.Input
}

/** The cluster of several processes. A process without shard groups of its own only sends messages. */
export const layerShared = (
  options: SharedOptions
): Layer.Layer<ClusterServices, TaskError, PgClient | SqlClient.SqlClient | Digest> => {
  const { groups: { all, own } } = options
  // The address identifies this process until it ends; nothing connects to it.
  const address = RunnerAddress.make(globalThis.crypto.randomUUID(), 0)
  const config = ShardingConfig.layer({
    ...shardingSettings(options),
    runnerAddress: own.length === 0 ? Option.none() : Option.some(address),
    availableShardGroups: all,
    assignedShardGroups: own,
    shardsPerGroup: 64,
    shardLockExpiration: options.lockExpiry,
    refreshAssignmentsInterval: "1 second"
  })
  const storage = Layer.provide(layerRereadMessages, messages.layer)
  return ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(own.length === 0 ? Layer.empty : layerMessageListener),
    Layer.provideMerge(Sharding.layer),
    Layer.provide(layerRunners),
    Layer.provideMerge(storage),
    Layer.provide([
      layerConfirmShards.pipe(
        Layer.provide([layerQuietUnregister.pipe(Layer.provide(Layer.orDie(SqlRunnerStorage.layer))), storage])
      ),
      RunnerHealth.layerNoop
    ]),
    Layer.provide(config)
  )
}

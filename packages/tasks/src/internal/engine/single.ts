/**
 * The engine of one process, on a database that is its own.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import type * as SqlClient from "effect/sql/SqlClient"
import type { TaskEngine } from "../../TaskEngine.ts"
import type { TaskError } from "../../TaskError.ts"
import * as cluster from "./cluster.ts"
import * as engine from "./engine.ts"
import * as pools from "./pools.ts"
import * as sqlStore from "../store/sqlStore.ts"
import { defaultGroup } from "./workflow.ts"

/** How an engine runs, wherever its tasks are kept. */
export interface Options {
  /**
   * How often the engine looks into its store for what nobody has told it of: above all whether a durable sleep is over. 500
   * milliseconds by default.
   */
  readonly pollInterval?: Duration.Input | undefined
  /** How often, at most, a task's progress is written: 100 milliseconds by default. The last one always is. */
  readonly progressInterval?: Duration.Input | undefined
  /** How often tasks are compared with their executions, and when for the first time: one minute by default. */
  readonly sweepInterval?: Duration.Input | undefined
  /**
   * How long after its time (`ttl`) a task may take to undo what it has done: 1 hour by default. Then it is forgotten, whatever it
   * has not undone, and the log says so: its pool has no workers, for instance, or no worker has its tool.
   */
  readonly undoGrace?: Duration.Input | undefined
  /**
   * How long a worker that stops, or that hands tasks to another one, waits for a step to end that does not heed its interruption: 2
   * seconds by default. The step runs again then. Its task stands still meanwhile.
   */
  readonly terminationTimeout?: Duration.Input | undefined
}

/** The intervals in milliseconds. */
export const intervals = (options: Options) => ({
  pollInterval: Duration.toMillis(options.pollInterval ?? 500),
  progressInterval: Duration.toMillis(options.progressInterval ?? 100),
  undoGrace: Duration.toMillis(options.undoGrace ?? "1 hour"),
  sweepInterval: Duration.toMillis(options.sweepInterval ?? "1 minute"),
  terminationTimeout: Duration.toMillis(options.terminationTimeout ?? "2 seconds")
})

/** See the module's text. */
export const layer = (options: Options): Layer.Layer<TaskEngine, TaskError, SqlClient.SqlClient> =>
  engine.layer({ groups: [defaultGroup], pools: pools.none, alone: true, ...intervals(options) }).pipe(
    Layer.provide([sqlStore.layer(), cluster.single(intervals(options))]),
    Layer.provide(NodeCrypto.layerDigest)
  )

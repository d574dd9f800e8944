/**
 * Tasks in PostgreSQL, run by any number of processes: servers that work, workers that are no servers, and servers that do no work.
 *
 * They find each other in the database, and open no port. A task runs on one of them at a time; when that goes, another one goes
 * on with it: at once after a gentle stop, and after `lockExpiry` when it went without a word.
 *
 * @example
 * const Engine = Layer.unwrap(
 *   Effect.map(Config.Redacted("DATABASE_URL"), (url) => PostgresTasks.layer({ url, work: false })))
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as PgClient from "@skein/sql/PgClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Context from "effect/Context"
import * as cluster from "./internal/engine/cluster.ts"
import * as engine from "./internal/engine/engine.ts"
import * as pgStore from "./internal/store/pgStore.ts"
import * as pools from "./internal/engine/pools.ts"
import * as single from "./internal/engine/single.ts"
import type { TaskEngine } from "./TaskEngine.ts"
import { TaskError } from "./TaskError.ts"

/** Where the database is, and how this process takes part. */
export interface Options extends PgClient.Options, single.Options {
  /** Whether this process runs tasks. `false`: it submits and looks after them, and others run them. `true` by default. */
  readonly work?: boolean | undefined
  /**
   * The pools that this worker belongs to: it runs their tasks, and no others. `["default"]` by default, the pool of tasks that
   * name none. There may be 9,999 different ones in a database.
   */
  readonly pools?: ReadonlyArray<string> | undefined
  /**
   * How long a worker that is gone without a word (killed, stopped, cut off) keeps its tasks, before others go on with them: 5
   * seconds by default, at least 1. A worker that is slower than that to say that it lives loses them, too.
   */
  readonly lockExpiry?: Duration.Input | undefined
  /**
   * How long a transaction may pause between two statements until the database ends it together with its connection: two thirds of
   * `lockExpiry` where nothing is said, so that who takes over what a stopped worker has left does not find it locked. With more than that the
   * others wait, also those that submit.
   */
  readonly idleInTransactionTimeout?: Duration.Input | undefined
}

const refused = (error: SqlError): TaskError => new TaskError({ reason: "Store", message: error.message, cause: error })

const client = (options: PgClient.Options): Layer.Layer<PgClient.PgClient | SqlClient, TaskError> =>
  Layer.provide(
    Layer.effectContext(Effect.map(
      Effect.mapError(PgClient.make(options), refused),
      (client) => Context.make(PgClient.PgClient, client).pipe(Context.add(SqlClient, client))
    )),
    Reactivity.layer
  )

/**
 * The engine. Its `SqlClient` is for what transactional steps write: tables beside the engine's own in the same database.
 *
 * Fails with `TaskError` `Store` when the database cannot be reached at first. Later on everything waits until it is back.
 */
export const layer = (options: Options): Layer.Layer<TaskEngine | SqlClient, TaskError> => {
  const intervals = single.intervals(options)
  const { lockExpiry = "5 seconds", pools: names = [pools.defaultPool], work = true } = options
  return Layer.unwrap(
    Effect.map(
      pools.make(work ? names : []),
      ({ groups, pools }) =>
        engine.layer({ groups: groups.own, pools, alone: false, ...intervals }).pipe(
          // The store comes first: tasks that the cluster finds must not wait for whom they are for.
          Layer.provide(Layer.provideMerge(cluster.shared({ ...intervals, groups, lockExpiry }), pgStore.layer)),
          Layer.provide(NodeCrypto.layerDigest)
        )
    )
  ).pipe(
    Layer.provideMerge(client({
      ...options,
      idleInTransactionTimeout: options.idleInTransactionTimeout ??
        Duration.times(Duration.fromInputUnsafe(lockExpiry), 2 / 3)
    }))
  )
}

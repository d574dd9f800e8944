/**
 * Pools of workers. Each pool is a shard group of the cluster, whose name is a number.
 *
 * The cluster numbers its locks by the order of the shard groups that a process has. All processes must come to the
 * same numbers, also if they name different pools. So the database assigns each pool a number once, in the order of
 * their first use.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { StoreError, TaskError } from "../../TaskError.ts"
import { Database } from "../store/database.ts"
import { defaultShardGroup } from "./workflow.ts"

/** The pools of an engine. */
export interface Pools {
  /** The id of the execution of a task. */
  readonly executionOf: (task: { readonly id: string; readonly pool: string }) => Effect.Effect<string, TaskError>
}

/** The pools of a single process, which runs the tasks of all pools. */
export const singlePool: Pools = { executionOf: ({ id }) => Effect.succeed(id) }

/** The pool of a task that names none. */
export const defaultPool = "default"

/** The digits in the name of a shard group, so that the order of the names is that of the numbers. */
const digits = 4
const maxPools = 10 ** digits - 1

const shardGroupName = (number: number): string =>
  number === 0 ? defaultShardGroup : String(number).padStart(digits, "0")

/** The key of a PostgreSQL advisory lock: "pools", as a number. */
const lock = "SELECT pg_advisory_xact_lock(482906827891)"

/** The pools of a database, and the shard groups: all of them, and those of the pools in `own`. */
export const make = (own: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const database = new Database(yield* SqlClient.SqlClient)
    const locked = database.prepare(lock)
    const create = database.prepare(
      "CREATE TABLE IF NOT EXISTS skein_task_pools (name TEXT NOT NULL PRIMARY KEY, number INTEGER NOT NULL UNIQUE)"
    )
    const read = database.prepare("SELECT name, number FROM skein_task_pools ORDER BY number")
    const find = database.prepare("SELECT number FROM skein_task_pools WHERE name = ?")
    const add = database.prepare(
      `INSERT INTO skein_task_pools (name, number)
       SELECT CAST(? AS TEXT), COALESCE(MAX(number), 0) + 1 FROM skein_task_pools
       ON CONFLICT (name) DO NOTHING`
    )
    const known = new Map<string, string>([[defaultPool, defaultShardGroup]])

    const numberOf = (pool: string): Effect.Effect<string, TaskError> =>
      Effect.flatMap(find(pool), ([row]) => {
        const number = Number(row?.["number"])
        if (!(number <= maxPools)) {
          const message = `the database has more than ${maxPools} pools of workers`
          return Effect.fail(new TaskError({ reason: new StoreError({ message }) }))
        }
        known.set(pool, shardGroupName(number))
        return Effect.succeed(shardGroupName(number))
      })
    const group = (pool: string): Effect.Effect<string, TaskError> => {
      const found = known.get(pool)
      if (found !== undefined) return Effect.succeed(found)
      return Effect.flatMap(find(pool), ([row]) =>
        row === undefined
          ? Effect.andThen(database.transaction(Effect.andThen(locked(), add(pool))), numberOf(pool))
          : numberOf(pool))
    }

    yield* database.transaction(Effect.andThen(locked(), create()))
    const groups = yield* Effect.forEach(own, group)
    const all = (yield* read()).map((row) => shardGroupName(Number(row["number"])))
    const pools: Pools = {
      executionOf: ({ id, pool }) =>
        Effect.map(group(pool), (group) => group === defaultShardGroup ? id : `${group}/${id}`)
    }
    return { pools, groups: { all: [defaultShardGroup, ...all], own: groups } }
  })

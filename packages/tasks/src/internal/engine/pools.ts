/**
 * Pools of workers. In the cluster each is a shard group, with a number for its name.
 *
 * The cluster numbers its locks by the order of the groups that a process knows. So that all processes come to the same numbers,
 * whatever pools each of them knows, the numbers are given once, by the database, in the order in which pools came up.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { TaskError } from "../../TaskError.ts"
import { Database } from "../store/database.ts"
import { defaultGroup } from "./workflow.ts"

/** See the module's text. */
export interface Pools {
  /** The execution of a task. */
  readonly executionOf: (task: { readonly id: string; readonly pool: string }) => Effect.Effect<string, TaskError>
}

/** Where one process runs everything there are no pools. */
export const none: Pools = { executionOf: ({ id }) => Effect.succeed(id) }

/** The pool of a task that names none. */
export const defaultPool = "default"

/** Of the names of groups, which are in the order of their numbers. */
const digits = 4
const most = 10 ** digits - 1

const groupOf = (number: number): string => number === 0 ? defaultGroup : String(number).padStart(digits, "0")

/** Of PostgreSQL's advisory locks: "pools", as a number. */
const lock = "SELECT pg_advisory_xact_lock(482906827891)"

/** The pools of a database, and the groups of those that this process works for. */
export const make = (
  own: ReadonlyArray<string>
): Effect.Effect<
  {
    readonly pools: Pools
    readonly groups: { readonly all: ReadonlyArray<string>; readonly own: ReadonlyArray<string> }
  },
  TaskError,
  SqlClient.SqlClient
> =>
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
    const known = new Map<string, string>([[defaultPool, defaultGroup]])

    const numberOf = (pool: string): Effect.Effect<string, TaskError> =>
      Effect.flatMap(find(pool), ([row]) => {
        const number = Number(row?.["number"])
        if (!(number <= most)) {
          const message = `There are more than ${most} pools of workers`
          return Effect.fail(new TaskError({ reason: "Store", message }))
        }
        known.set(pool, groupOf(number))
        return Effect.succeed(groupOf(number))
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
    const all = (yield* read()).map((row) => groupOf(Number(row["number"])))
    return {
      pools: {
        executionOf: ({ id, pool }) =>
          Effect.map(group(pool), (group) => group === defaultGroup ? id : `${group}/${id}`)
      },
      groups: { all: [defaultGroup, ...all], own: groups }
    }
  })

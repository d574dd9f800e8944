/**
 * Makes an index on a table of PostgreSQL that has rows, while other processes write to it. That is not possible in a
 * transaction: a process that dies leaves an invalid index, which the next attempt replaces.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import { type Database, type Row, storeError } from "./database.ts"

/** The key of a PostgreSQL advisory lock: one more than that of the migrations. */
const lock = "495790843247"

/** Milliseconds between two attempts to get the lock. */
const retryMs = 200

/** An index: `CREATE <kind> <name> ON <target>`. */
export interface Index {
  readonly kind: "INDEX" | "UNIQUE INDEX"
  readonly name: string
  readonly target: string
}

/** Makes the index unless it is there. One process at a time does it. */
export const createConcurrently = (
  { sql }: Database,
  { kind, name, target }: Index
): Effect.Effect<void, TaskError> =>
  Effect.scoped(Effect.gen(function*() {
    const connection = yield* Effect.mapError(sql.reserve, storeError)
    const run = (statement: string): Effect.Effect<ReadonlyArray<Row>, TaskError> =>
      Effect.mapError(connection.executeUnprepared(statement, [], undefined), storeError)
    // The statement that makes the index waits for the end of all others, also for those that wait for a lock.
    const locked = Effect.map(run(`SELECT pg_try_advisory_lock(${lock}) AS locked`), ([row]) => row!["locked"] === true)
    const acquired: Effect.Effect<void, TaskError> = Effect.flatMap(
      locked,
      (found) => found ? Effect.void : Effect.andThen(Effect.sleep(retryMs), Effect.suspend(() => acquired))
    )
    yield* Effect.acquireRelease(acquired, () => Effect.ignoreCause(run(`SELECT pg_advisory_unlock(${lock})`)), {
      interruptible: true
    })
    const [found] = yield* run(`SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('${name}')`)
    if (found?.["valid"] === true) return
    if (found !== undefined) yield* run(`DROP INDEX CONCURRENTLY ${name}`)
    yield* run(`CREATE ${kind} CONCURRENTLY ${name} ON ${target}`)
  }))

/**
 * The table that leads the engine, over SQL: SQLite and PostgreSQL. Its parts are in `table/`.
 *
 * Who locks what first, for PostgreSQL: the task, its questions, what the engine does in the same transaction, the counters.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { Encryption } from "../../Encryption.ts"
import type { TaskError } from "../../TaskError.ts"
import { migrate } from "./migrations.ts"
import { TaskStore } from "./store.ts"
import { Changes, type Signals } from "./notifications.ts"
import { Database } from "./database.ts"
import * as lives from "./lifecycle.ts"
import * as questions from "./questions.ts"
import { about } from "./rows.ts"
import { escape, openVault, sealedVault } from "./stored.ts"
import * as sweeps from "./expiry.ts"
import * as telling from "./status.ts"

/** What a store is made with. */
export interface Options {
  /** How this process hears of what other processes change. */
  readonly signals?: Signals | undefined
}

/** Only what is one of our ids is looked for: what clients send is anything. */
const isId = (id: string): boolean => /^[\w-]{32}$/.test(id)

/** Runs the migrations and makes the store. */
export const make = (
  options: Options = {}
): Effect.Effect<TaskStore["Service"], TaskError, SqlClient.SqlClient | Scope.Scope> =>
  Effect.gen(function*() {
    const database = new Database(yield* SqlClient.SqlClient)
    yield* migrate(database)
    const sealer = yield* Encryption
    const vault = sealer === undefined ? openVault : sealedVault(sealer)
    const changes = yield* Changes.make(database, options.signals)
    const table = { database, changes, vault }
    const { finish, insert, remove } = lives.make(table)
    const { list, progress, say, state, waits, work } = telling.make(table)
    const { answer, ask, lose, withdraw } = questions.make(table)
    const { expired, lapse, nextExpiry, settle, undoing, unsettled } = sweeps.make(table)
    return TaskStore.of({
      insert,
      list,
      unsettled,
      undoing,
      expired,
      nextExpiry,
      state: (id) => isId(id) ? state(id) : Effect.undefined,
      work: (id) => isId(id) ? work(id) : Effect.undefined,
      finish: (id, end) => isId(id) ? finish(id, end) : Effect.succeed(false),
      say: (id, message, number) => isId(id) ? say(id, message, number) : Effect.void,
      waits: (id, whether) => isId(id) ? waits(id, whether) : Effect.void,
      progress: (id, told) => isId(id) ? progress(id, told) : Effect.void,
      ask: (id, question) => isId(id) ? ask(id, question) : Effect.undefined,
      withdraw: (id, key) => isId(id) ? withdraw(id, key) : Effect.void,
      lose: (id, key, answered) => isId(id) ? lose(id, key, answered) : Effect.void,
      answer: (id, key, given, then) => isId(id) ? answer(id, key, given, then) : Effect.succeed(false),
      settle: (ids) => settle((typeof ids === "string" ? [ids] : ids).filter(isId)),
      lapse: (id, after) => isId(id) ? lapse(id, after) : Effect.succeed(Infinity),
      remove: (id, then) => isId(id) ? remove(id, then) : database.transaction(then),
      listen: (id, listener) => changes.listen(id, listener),
      seal: (text, what) => vault.seal(text, about.other(escape(what))),
      open: (sealed, what) => vault.open(sealed, about.other(escape(what)))
    })
  })

/** The store as a layer. */
export const layer = (options?: Options): Layer.Layer<TaskStore, TaskError, SqlClient.SqlClient> =>
  Layer.effect(TaskStore, make(options))

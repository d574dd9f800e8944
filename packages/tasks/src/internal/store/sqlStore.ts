/**
 * The store of tasks on SQLite or PostgreSQL, composed of the modules beside it.
 *
 * Transactions lock rows in this order, so that PostgreSQL finds no deadlock: the task, its questions, its row in the
 * queue, its events, the counters.
 */
import type { Client } from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { Encryption } from "../../Encryption.ts"
import type { TaskError } from "../../TaskError.ts"
import { TaskBounds } from "../base/bounds.ts"
import { CurrentTaskAlerts } from "../telemetry/alertSink.ts"
import { CurrentTaskObserver } from "../telemetry/taskObserver.ts"
import * as admin from "./admin.ts"
import * as bulk from "./bulk.ts"
import { checkVersion, currentVersion, migrate, readVersion } from "./migrations.ts"
import { TaskStore } from "./store.ts"
import { type ChangeNotifier, type ListenForChanges, makeChangeNotifier, type SendToOthers } from "./changeNotifier.ts"
import { Database, isUnreachable, storeError } from "./database.ts"
import * as children from "./children.ts"
import * as events from "./events.ts"
import * as heartbeats from "./heartbeats.ts"
import * as labels from "./labels.ts"
import * as output from "./output.ts"
import * as lifecycle from "./lifecycle.ts"
import * as questions from "./questions.ts"
import * as queue from "./queue.ts"
import * as schedules from "./schedules.ts"
import { associatedData } from "./rows.ts"
import { makeSignals } from "./runSignals.ts"
import { encryptedTexts, escape, plainTexts } from "./storedText.ts"
import * as gates from "./gates.ts"
import * as submissions from "./submissions.ts"
import * as status from "./status.ts"
import * as topics from "./topics.ts"
import * as transfer from "./transfer.ts"

/**
 * An operation on a task, which answers `unknown` without a query for a text that cannot be the id of a task: clients may
 * send any text.
 */
const ofTask = <Args extends ReadonlyArray<unknown>, A>(
  operation: (id: string, ...args: Args) => Effect.Effect<A, TaskError>,
  unknown: Effect.Effect<NoInfer<A>, TaskError>
) =>
(id: string, ...args: Args): Effect.Effect<A, TaskError> => lifecycle.isTaskId(id) ? operation(id, ...args) : unknown

/**
 * Retries an effect while the connection to the database is lost: the database may go away at any moment of a start.
 * The client has connected once before, so its configuration is right.
 */
const whileUnreachable = <A, R>(effect: Effect.Effect<A, TaskError, R>): Effect.Effect<A, TaskError, R> =>
  Effect.retry(effect, { while: isUnreachable, schedule: Schedule.spaced("500 millis") })

/**
 * Prepares the tables and makes the store. Without `listenForChanges`, only changes of this process are notified.
 */
export const make = Effect.fnUntraced(function*(
  listenForChanges?: ListenForChanges,
  prepare: (database: Database) => Effect.Effect<unknown, TaskError> = migrate,
  sendToOthers?: SendToOthers
): Effect.fn.Return<TaskStore["Service"], TaskError, SqlClient.SqlClient | Scope.Scope> {
  const database = new Database(yield* SqlClient.SqlClient)
  yield* whileUnreachable(Effect.andThen(prepare(database), database.clock.read))
  const cipher = yield* Encryption
  const texts = cipher === undefined ? plainTexts : encryptedTexts(cipher)
  const changes = yield* whileUnreachable(makeChangeNotifier(database, listenForChanges, sendToOthers))
  const signals = yield* whileUnreachable(makeSignals(database, listenForChanges, sendToOthers))
  const { metrics } = (yield* CurrentTaskObserver) ?? {}
  const alerts = yield* CurrentTaskAlerts
  const context = { database, changes, signals, texts, metrics, alerts }
  const states = status.make(context)
  const { insertEvent, ...sentEvents } = events.make(context)
  const labelStore = labels.make(database)
  const lives = lifecycle.make(context, labelStore)
  const all = {
    ...states,
    finish: lives.finish,
    remove: lives.remove,
    ...submissions.make(context, lives, states.get),
    ...questions.make(context, states.get),
    ...sentEvents,
    ...topics.make(context, insertEvent),
    ...queue.make(context)
  }
  const { find, list, ...operators } = admin.make(context)
  const outputs = output.make(context, yield* TaskBounds)
  return TaskStore.of({
    ...all,
    clock: database.clock,
    labels: labelStore,
    heartbeats: heartbeats.make(context),
    bulk: bulk.make(context),
    transfer: transfer.make(context, labelStore),
    tools: gates.make(context),
    children: children.make(context),
    output: outputs,
    admin: { list, find: ofTask(find, Effect.undefined), ...operators },
    checks: admin.makeChecks(context),
    schedules: schedules.make(database),
    get: ofTask(all.get, Effect.undefined),
    load: ofTask(all.load, Effect.undefined),
    finish: ofTask(all.finish, Effect.succeed(false)),
    setStatusMessage: ofTask(all.setStatusMessage, Effect.void),
    setProgress: ofTask(all.setProgress, Effect.void),
    ask: ofTask(all.ask, Effect.undefined),
    withdraw: ofTask(all.withdraw, Effect.void),
    answer: ofTask(all.answer, Effect.succeed(false)),
    send: ofTask(all.send, events.unknownTask),
    expireWithin: ofTask(all.expireWithin, Effect.succeed(Infinity)),
    remove: (ids) => all.remove(ids.filter(lifecycle.isTaskId)),
    transaction: (effect) => database.transaction(effect),
    findForeignChange: findForeignChange(database, changes),
    listen: changes.listen,
    listenForSignals: signals.listen,
    encrypt: (text, name) => texts.encrypt(text, associatedData.other(escape(name))),
    decrypt: (encrypted, name) => texts.decrypt(encrypted, associatedData.other(escape(name)))
  })
})

/** Whether another client has changed a SQLite file since the last call. Its changes are not notified. */
const findForeignChange = (database: Database, changes: ChangeNotifier): Effect.Effect<boolean, TaskError> => {
  const select = database.prepare("PRAGMA data_version")
  let known: unknown
  return Effect.map(select(), ([row]) => {
    const version = row!["data_version"]
    const hasChanged = known !== undefined && known !== version
    known = version
    if (hasChanged) changes.notifyAll()
    return hasChanged
  })
}

/** The store of an operator beside the servers and workers of a database. It does not change the tables. */
export const layerBeside: Layer.Layer<TaskStore, TaskError, SqlClient.SqlClient> = Layer.effect(
  TaskStore,
  // It does not listen, and notifies the others.
  make(() => Effect.void, checkVersion)
)

/** Migrates the tables; with `dryRun` it changes nothing. Returns the version before, and the one that is needed. */
export const migrateTables = Effect.fnUntraced(function*(
  dryRun: boolean
): Effect.fn.Return<{ readonly from: number; readonly to: number }, TaskError, SqlClient.SqlClient> {
  const database = new Database(yield* SqlClient.SqlClient)
  const from = yield* dryRun ? readVersion(database) : migrate(database)
  return { from, to: currentVersion }
})

/** The store of a single process. With `migrates` it creates and migrates the tables. */
export const layer = (migrates = true): Layer.Layer<TaskStore, TaskError, SqlClient.SqlClient> =>
  Layer.effect(TaskStore, make(undefined, migrates ? migrate : checkVersion))

/** How the processes that share a SQLite file notify each other. */
export interface Carrier {
  readonly listen: ListenForChanges
  readonly send: SendToOthers
}

/** The store of a process among others that share a SQLite file. */
export const layerBetween = (
  { listen, send }: Carrier,
  migrates = true
): Layer.Layer<TaskStore, TaskError, SqlClient.SqlClient> =>
  Layer.effect(TaskStore, make(listen, migrates ? migrate : checkVersion, send))

/** The part of a client of PostgreSQL that a store uses besides its `SqlClient`. */
export type ListeningClient = Pick<Client, "listen">

/**
 * The store of a process among others, on PostgreSQL. It needs one connection besides the pool of the client: for
 * notifications.
 */
export const layerListening = (
  client: ListeningClient,
  migrates = true
): Layer.Layer<TaskStore, TaskError, SqlClient.SqlClient> =>
  Layer.effect(
    TaskStore,
    make(
      (channel, onPayload, onGap) => Effect.mapError(client.listen(channel, onPayload, onGap), storeError),
      migrates ? migrate : checkVersion
    )
  )

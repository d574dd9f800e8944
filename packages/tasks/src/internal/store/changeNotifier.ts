/**
 * Notifications about changed tasks: statements that notify after their commit, and the listeners in this process.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TaskError } from "../../TaskError.ts"
import type { Database, Parameter, Statement } from "./database.ts"

/** The PostgreSQL channel of notifications. The payload is the id of a task. */
export const channel = "skein_tasks"

/**
 * Listens for the notifications of all processes: calls `onPayload` for each payload on the channel, and `onGap` when
 * notifications may have been lost. It listens when the effect ends, and stops when the scope closes.
 */
export type ListenForChanges = (
  channel: string,
  onPayload: (payload: string) => void,
  onGap: () => void
) => Effect.Effect<void, TaskError, Scope.Scope>

/** Sends a payload to the other processes of a SQLite file, which receive it with `ListenForChanges`. */
export type SendToOthers = (channel: string, payload: string) => void

/**
 * The listeners of this process. A listener is called once for all changes of one turn of the event loop, and never
 * within a transaction. A task without listeners costs nothing. `onError` receives the errors that listeners throw; the
 * other listeners are called nevertheless.
 */
export class ChangeListeners extends Data.Class<{ readonly onError: (error: unknown) => void }> {
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #changed = new Set<string>()
  #isScheduled = false

  /** Adds a listener. Returns the function that removes it. */
  listen(id: string, listener: () => void): () => void {
    // A listener that is added twice is called twice.
    const entry = () => listener()
    const listeners = this.#listeners.get(id)
    if (listeners === undefined) this.#listeners.set(id, new Set([entry]))
    else listeners.add(entry)
    return () => {
      const listeners = this.#listeners.get(id)
      listeners?.delete(entry)
      if (listeners?.size === 0) this.#listeners.delete(id)
    }
  }

  /** Notifies the listeners of a task. */
  notify(id: string): void {
    if (!this.#listeners.has(id)) return
    this.#changed.add(id)
    this.#schedule()
  }

  /** Notifies all listeners: any task may have changed. */
  notifyAll(): void {
    for (const id of this.#listeners.keys()) this.#changed.add(id)
    if (this.#changed.size > 0) this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      const changed = [...this.#changed]
      this.#changed.clear()
      for (const id of changed) {
        for (const listener of this.#listeners.get(id) ?? []) {
          try {
            listener()
          } catch (error) {
            this.onError(error)
          }
        }
      }
    })
  }

  /** The number of tasks with listeners. */
  get size(): number {
    return this.#listeners.size
  }
}

/** Notifies the listeners of the tasks that statements change, after their commit. */
export type ChangeNotifier = Effect.Success<ReturnType<typeof makeChangeNotifier>>

/** Makes the notifier of a store. Without `listenForChanges`, only changes of this process are notified. */
export const makeChangeNotifier = (
  database: Database,
  listenForChanges: ListenForChanges | undefined,
  sendToOthers?: SendToOthers
) =>
  Effect.gen(function*() {
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const listeners = new ChangeListeners({
      onError: (error) => runFork(Effect.logError("a listener for changes of a task failed", error))
    })
    const { isPostgres, sql } = database
    /** Whether the database sends the notifications, to this process too. They arrive only after a commit. */
    const usesDatabase = isPostgres && listenForChanges !== undefined
    if (listenForChanges !== undefined) {
      yield* listenForChanges(channel, (id) => listeners.notify(id), () => listeners.notifyAll())
    }

    /** Prepares a statement that changes any number of tasks: see `prepare`. */
    const prepareMany = (text: string, also = "", columns = ""): Statement => {
      const notify = usesDatabase ? `, pg_notify('${channel}', changed.id)` : ""
      const run = database.prepare(
        isPostgres ? `WITH changed AS (${text})${also} SELECT changed.*${notify}${columns} FROM changed` : text
      )
      if (usesDatabase) return run
      return (...parameters) =>
        Effect.flatMap(run(...parameters), (rows) => {
          if (rows.length === 0) return Effect.succeed(rows)
          const notifyAll = () => {
            for (const { id } of rows) {
              listeners.notify(id as string)
              sendToOthers?.(channel, id as string)
            }
          }
          return Effect.as(sql.afterCommit(Effect.sync(notifyAll)), rows)
        })
    }
    return {
      /** Notifies all listeners of this process: any task may have changed. */
      notifyAll: () => listeners.notifyAll(),
      /** Calls the listener after changes of the task until the scope closes. */
      listen: (id: string, listener: () => void): Effect.Effect<void, never, Scope.Scope> => {
        const start = Effect.sync(() => listeners.listen(id, listener))
        return Effect.asVoid(Effect.acquireRelease(start, (stop) => Effect.sync(stop)))
      },
      prepareMany,
      /**
       * Prepares a statement that changes at most one task, and returns its `id` and optionally more columns. `also`:
       * further parts of the statement's `WITH` on PostgreSQL, in which `changed` is the changed row. `columns`: further
       * columns of the result there.
       */
      prepare: (...statement: Parameters<typeof prepareMany>) => {
        const run = prepareMany(...statement)
        return (...parameters: ReadonlyArray<Parameter>) => Effect.map(run(...parameters), ([row]) => row)
      }
    }
  })

/**
 * Converts the tasks of a client to tasks with promises.
 */
import type { AsyncCallOptions, AsyncStarted, AsyncTask } from "./options.ts"
import type { Handle, RemoteTask, Started } from "../../RemoteTask.ts"
import type { CallToolOptions } from "../base/callOptions.ts"
import type { PromiseRunner } from "./promiseRunner.ts"

class AsyncTaskImpl implements AsyncTask {
  readonly _tag = "RemoteTask"
  readonly #runner: PromiseRunner
  readonly #task: RemoteTask

  constructor(runner: PromiseRunner, task: RemoteTask) {
    this.#runner = runner
    this.#task = task
  }

  get id(): string {
    return this.#task.id
  }

  get handle(): Handle {
    return this.#task.handle
  }

  states({ signal }: { readonly signal?: AbortSignal | undefined } = {}) {
    return this.#runner.iterate(this.#task.states, signal)
  }

  result({ signal }: { readonly signal?: AbortSignal | undefined } = {}) {
    return this.#runner.run(this.#task.result, signal)
  }

  cancel({ signal }: { readonly signal?: AbortSignal | undefined } = {}) {
    return this.#runner.run(this.#task.cancel, signal)
  }
}

/** Converts a task. */
export const fromTask = (runner: PromiseRunner, task: RemoteTask): AsyncTask => new AsyncTaskImpl(runner, task)

/** Converts the result of `startTask`. */
export const fromStarted = (runner: PromiseRunner, started: Started): AsyncStarted =>
  started._tag === "RemoteTask"
    ? fromTask(runner, started)
    : { _tag: "Finished", result: () => runner.run(started.result) }

/** Converts the options of a call: `onTask` receives a task with promises. */
export const toCallOptions = (
  runner: PromiseRunner,
  { task, ...options }: AsyncCallOptions
): CallToolOptions => {
  if (task === undefined) return options
  const { onTask, ...rest } = task
  return {
    ...options,
    task: onTask === undefined ? rest : { ...rest, onTask: (created) => onTask(fromTask(runner, created)) }
  }
}

/**
 * Converts the tasks of a client to tasks with promises.
 */
import type { AsyncCallOptions, AsyncStarted, AsyncTask } from "./options.ts"
import type { RemoteTask, Started } from "../../RemoteTask.ts"
import type { CallToolOptions } from "../base/callOptions.ts"
import type { PromiseRunner } from "./promiseRunner.ts"

/** Converts a task. */
export const fromTask = (runner: PromiseRunner, { cancel, handle, id, result, states }: RemoteTask): AsyncTask => ({
  _tag: "RemoteTask",
  id,
  handle,
  states: ({ signal } = {}) => runner.iterate(states, signal),
  result: ({ signal } = {}) => runner.run(result, signal),
  cancel: ({ signal } = {}) => runner.run(cancel, signal)
})

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

/**
 * The value of `task`, with which code starts tasks.
 */
import type * as Core from "@skein/tasks/Task"
import type { Definition } from "../base/definition.ts"

declare const argumentsOfTask: unique symbol
declare const valueOfTask: unique symbol

/** A task. `Args` are its arguments, as a client sends them, and `Value` is the value that code which has started it receives. */
export interface TaskDefinition<in Args = never, out Value = unknown> extends Definition {
  readonly name: string
  readonly [argumentsOfTask]?: (args: Args) => void
  readonly [valueOfTask]?: Value
}

/** The definitions of tasks, for those that start them. */
const definitions = /* @__PURE__ */ new WeakMap<TaskDefinition, ReturnType<typeof Core.make>>()

/** Notes the definition of a task. */
export const registerTask = (task: TaskDefinition, definition: ReturnType<typeof Core.make>): void => {
  definitions.set(task, definition)
}

/** The definition of a task. */
export const coreOf = (task: TaskDefinition): ReturnType<typeof Core.make> => {
  const found = definitions.get(task)
  if (found === undefined) throw new TypeError("expected a task: a value of task(name, options, handler)")
  return found
}

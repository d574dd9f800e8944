/**
 * Child tasks in the body of their parent, by their definitions: `Task.start`, `Task.join` and `Task.forEach`.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { CurrentTask } from "../../CurrentTask.ts"
import { InvalidArguments, TaskError } from "../../TaskError.ts"
import type { NewTask } from "../../TaskState.ts"
import { TaskBounds } from "../base/bounds.ts"
import type { Child, ForEachOptions, StartOptions, ValueOf } from "../base/child.ts"
import { type Definition, encodeArguments, valueOf } from "./definitionCodec.ts"

/** Makes the task of a definition by the policies of a server. `Tasks.layer` provides it to bodies. */
export class TaskMaker extends Context.Service<TaskMaker, {
  readonly make: (task: Definition<never, unknown>, args: JsonObject) => Effect.Effect<NewTask, TaskError>
}>()("@skein/tasks/TaskMaker") {}

const withoutLayer = new Error("child tasks require `Tasks.layer`: the handler runs without it")

/** The maker of the server. Children are also made outside of the fibers of the body. */
const maker = Effect.contextWith((context: Context.Context<never>): Effect.Effect<TaskMaker["Service"]> => {
  const found = Context.getOrUndefined(context as Context.Context<TaskMaker>, TaskMaker)
  return found === undefined ? Effect.die(withoutLayer) : Effect.succeed(found)
})

/** Implements `Task.start`. */
export const start = <Input, Output>(
  task: Definition<Input, Output>,
  args: NoInfer<Input>,
  { detached = false, key = task.name }: StartOptions = {}
): Effect.Effect<Child<ValueOf<Output>>, TaskError, CurrentTask> =>
  Effect.gen(function*() {
    const current = yield* CurrentTask
    const encoded = yield* encodeArguments(task, args)
    const id = yield* current.start(key, (yield* maker).make(task as Definition<never, unknown>, encoded), detached)
    return { id, key, "~end": (end) => valueOf(task, end) }
  })

/** Implements `Task.join`. */
export const join = <Value>(child: Child<Value>): Effect.Effect<Value, TaskError, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => Effect.flatMap(task.join(child.key), child["~end"]))

const invalid = (message: string) => Effect.fail(new TaskError({ reason: new InvalidArguments({ message }) }))

/** Implements `Task.forEach`. */
export const forEach = <Input, Output>(
  task: Definition<Input, Output>,
  items: ReadonlyArray<NoInfer<Input>>,
  { concurrency = 100, key = task.name, onFailure = "fail" }: ForEachOptions = {}
): Effect.Effect<ReadonlyArray<unknown>, TaskError, CurrentTask> =>
  Effect.gen(function*() {
    const { maxForEachItems } = yield* TaskBounds
    if (items.length > maxForEachItems) {
      return yield* invalid(
        `Task.forEach has ${items.length} items of the task "${task.name}": the limit is ${maxForEachItems}`
      )
    }
    if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
      return yield* invalid(`concurrency of Task.forEach is ${concurrency}: it must be a whole number from 1`)
    }
    const current = yield* CurrentTask
    const { make } = yield* maker
    const encode = (item: number) => encodeArguments(task, items[item] as Input)
    const ends = yield* current.forEach(key, {
      count: items.length,
      concurrency,
      failsFast: onFailure === "fail",
      check: Effect.forEach(items, (_, item) => encode(item), { discard: true }),
      make: (item) => Effect.flatMap(encode(item), (args) => make(task as Definition<never, unknown>, args))
    })
    const values = ends.map((end) => valueOf(task, end))
    return yield* onFailure === "fail"
      ? Effect.all(values)
      : Effect.forEach(values, (value) => Effect.result(value))
  })

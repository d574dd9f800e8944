import type { JsonObject } from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import { CurrentTask } from "@skein/tasks/CurrentTask"
import { type Handlers, TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskError } from "@skein/tasks/TaskError"
import { isFinal, type NewTask, type Outcome, type State } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"

export const newTask = (tool: string, options: Partial<NewTask> = {}): NewTask => ({
  tool,
  args: {},
  pool: "default",
  owner: null,
  caller: { revision: "2025-11-25", capabilities: {}, info: undefined, principal: undefined },
  ttlMs: null,
  pollIntervalMs: 1000,
  limits: { all: {}, client: {}, tool: {} },
  ...options
})

export const text = (text: string, isError = false): Outcome => ({
  _tag: "Result",
  result: { content: [{ type: "text", text }], ...(isError ? { isError } : {}) }
})

export const textOf = (state: State | undefined): unknown => {
  const outcome = state?.outcome
  if (outcome?._tag !== "Result") return outcome
  const [content] = outcome.result["content"] as ReadonlyArray<JsonObject>
  return content?.["text"]
}

export type Handler = NonNullable<ReturnType<Handlers>>

/** A durable handler; its failure is a result with `isError`, as in a tool. */
export const durable = (
  handler: (args: JsonObject) => Effect.Effect<string, { readonly message: string }, CurrentTask | McpRequest>
): Handler => ({ durable: true, run: run(handler) })

export const plain = (
  handler: (args: JsonObject) => Effect.Effect<string, { readonly message: string }, McpRequest>
): Handler => ({ durable: false, run: run(handler) })

const run = (
  handler: (args: JsonObject) => Effect.Effect<string, { readonly message: string }, CurrentTask | McpRequest>
): Handler["run"] =>
(taskRequest) =>
  Effect.suspend(() => handler(taskRequest.params?.["arguments"] as JsonObject)).pipe(
    Effect.match({ onFailure: ({ message }) => text(message, true), onSuccess: (value) => text(value) }),
    Effect.provideService(CurrentTask, taskRequest.task),
    Effect.provideService(McpRequest, taskRequest)
  )

export const handlers = (tools: Record<string, Handler>): Handlers => (tool) => tools[tool]

/** Asks the user. */
export const ask = (message: string) =>
  Effect.flatMap(
    McpRequest,
    (taskRequest) => taskRequest.request("elicitation/create", { message }) as Effect.Effect<JsonObject, Error>
  )

export const work = (tools: Record<string, Handler>) =>
  Effect.flatMap(TaskEngine, ({ runTasks }) => runTasks(handlers(tools)))

export const submit = (tool: string, options: Partial<NewTask> = {}) =>
  Effect.flatMap(TaskEngine, ({ submit }) => submit(newTask(tool, options)))

export const get = (id: string) => Effect.flatMap(TaskEngine, ({ get }) => get(id))

export const until = (
  id: string,
  done: (state: State) => boolean
): Effect.Effect<State, TaskError, TaskEngine> =>
  Effect.flatMap(
    TaskEngine,
    ({ watch }) => Effect.map(Stream.runHead(Stream.filter(watch(id), done)), Option.getOrThrow)
  )

export const ended = (id: string) => until(id, isFinal)

/** Lets runnable fibers continue without advancing the clock. */
export const settled = Effect.forEach(
  Array.from({ length: 20 }),
  () => Effect.andThen(Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve))), Effect.yieldNow),
  {
    discard: true
  }
)

/** Advances time in small steps, and lets the fibers that wake up continue in each. */
export const pass = (seconds: number, step = 1) =>
  Effect.forEach(
    Array.from({ length: Math.ceil(seconds / step) }),
    () => Effect.andThen(TestClock.adjust(step * 1000), settled),
    { discard: true }
  )

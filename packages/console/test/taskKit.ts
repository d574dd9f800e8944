/** The tasks of a tea house: orders that fail, tea that steeps, and guests who are asked. */
import { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Step from "@skein/tasks/Step"
import { type Handlers, TaskEngine } from "@skein/tasks/TaskEngine"
import type { NewTask } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"

/** A task of a tool. */
export const newTask = (tool: string, more: Partial<NewTask> = {}): NewTask => ({
  tool,
  args: { secret: "argument" },
  pool: "default",
  owner: "ada",
  caller: { revision: "2025-11-25", capabilities: {}, info: undefined, principal: undefined },
  ttlMs: null,
  pollIntervalMs: 1000,
  limits: { all: {}, client: {}, tool: {} },
  ...more
})

/** Creates a task. */
export const submit = (tool: string, more: Partial<NewTask> = {}) =>
  Effect.flatMap(TaskEngine, ({ submit }) => submit(newTask(tool, more)))

/** Whether the next orders succeed. */
export const shop = { isOpen: false }

/** `order` fails after two steps, `brew` sleeps, `invite` asks, and `bake` runs until it is cancelled. */
export const handlers: Handlers = (tool) => ({
  durable: true,
  run: (request) =>
    Effect.gen(function*() {
      if (tool === "brew") yield* Step.sleep("steep", "1 day")
      else if (tool === "invite") yield* Effect.orDie(request.request("elicitation/create", { message: "Guests?" }))
      else if (tool === "bake") yield* Step.run("heat the oven", {}, () => Effect.never)
      else {
        yield* Step.run("charge the card", {}, () => Effect.void)
        yield* Step.compensate(() => Step.run("refund the card", {}, () => Effect.void))
        yield* Step.run("reserve a table", {}, () => Effect.void)
        if (!shop.isOpen) {
          const message = "The shop answers 503: it is closed for the holidays, until the sixth of January"
          return { _tag: "Error", error: { code: -32603, message } } as const
        }
      }
      return { _tag: "Result", result: { content: [] } } as const
    }).pipe(Effect.provideService(CurrentTask, request.task))
})

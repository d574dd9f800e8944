/** Tasks whose handlers return promises, on the engine with a file. */
import { describe, expect, it } from "@effect/vitest"
import { VisibleError } from "@skein/server/HandlerError"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { StepError, type TaskContext } from "@skein/tasks/TaskContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as kit from "./kit.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-async-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const can = { ...kit.tasks, elicitation: {} }

/** A server with one task, on a file. `close` ends its process. */
const start = (filename: string, handler: (args: { readonly end?: string }, context: TaskContext) => unknown) =>
  Effect.gen(function*() {
    const task = Task.async(
      Task.make("t", { input: { end: Schema.optionalKey(Schema.String) } }),
      async (args, context) => String(await handler(args, context))
    )
    const engine = Layer.orDie(SqliteTasks.layer({ filename, pollInterval: "20 millis" }))
    const { close, connect, context } = yield* kit.server([task], undefined, engine as never)
    const client = yield* connect({ can })
    const admin = Context.get(context as unknown as Context.Context<TaskAdmin>, TaskAdmin)
    return { client, close, admin }
  })

const until = (client: kit.Client, taskId: string, is: (task: kit.Json) => boolean) =>
  Effect.repeat(Effect.tap(kit.get(client, taskId), () => Effect.sleep(5)), { until: is })

const ended = (client: kit.Client, taskId: string) =>
  until(client, taskId, ({ status }) => status !== "working" && status !== "input_required")

/** Calls the task of a server, and returns its end as text. */
const run = (handler: (args: { readonly end?: string }, context: TaskContext) => unknown, end?: string) =>
  Effect.gen(function*() {
    const { client } = yield* start(join(yield* folder, "tasks.db"), handler)
    const { taskId } = yield* client.call("t", end === undefined ? {} : { end })
    const { error, result } = yield* ended(client, taskId)
    return error === undefined
      ? `${result.isError === true ? "failed: " : ""}${result.content[0].text}`
      : `${error.code}`
  }).pipe(Effect.scoped)

/** The end of a task whose handler has died. */
const failedUnexpectedly = /^failed: The tool t failed unexpectedly\. The log .* with the reference [\da-f-]{36}$/

/** A handler that only uses its context. */
const only = (use: (context: TaskContext) => Promise<unknown>) => (_: object, context: TaskContext) => use(context)

it.live("decides once whether a task runs with a change of the code", () =>
  Effect.gen(function*() {
    const text = yield* run(only(async ({ patched, step }) => {
      const first = await patched("audit first")
      await step("audit", () => "audited")
      return `${first} ${await patched("audit first")}`
    }))
    expect(text).toBe("true true")
  }))

describe("Task.async", () => {
  it.live("returns data as text, and answers a value without JSON with isError", () =>
    Effect.gen(function*() {
      const engine = Layer.orDie(
        SqliteTasks.layer({ filename: join(yield* folder, "tasks.db"), pollInterval: "20 millis" })
      )
      const tasks = [
        Task.async(Task.make("count"), async () => 3),
        Task.async(Task.make("wrong"), async () => (() => 1) as unknown as number)
      ]
      const { connect } = yield* kit.server(tasks, undefined, engine as never)
      const client = yield* connect({ can })
      const end = (name: string) => Effect.flatMap(client.call(name), ({ taskId }) => ended(client, taskId))
      expect((yield* end("count")).result).toMatchObject({ content: [{ type: "text", text: "3" }] })
      expect((yield* end("wrong")).result).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("The handler of the tool wrong returned a function") }]
      })
    }).pipe(Effect.scoped))

  it.live("continues after a question and in another process, without repeating its steps", () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "tasks.db")
      const log: Array<string> = []
      const handler = async (_: object, { elicit, setStatusMessage, signal, sleep, step, taskId }: TaskContext) => {
        const id = await step("charge", ({ key }) => {
          log.push(`charge ${key.length}`)
          return { id: 7, taskId: taskId.length > 10 }
        })
        await step("nothing", () => {})
        await setStatusMessage("Rests")
        await sleep("short", 1)
        try {
          const answer = await elicit("Ship?", { when: Schema.String })
          return `${id.id} ${id.taskId} ${answer.action === "accept" ? answer.content.when : ""}`
        } finally {
          log.push(`aborted: ${signal.aborted}`)
        }
      }
      const first = yield* start(filename, handler)
      const { taskId } = yield* first.client.call("t", {})
      const open = yield* until(first.client, taskId, ({ status }) => status === "input_required")
      expect(open.statusMessage).toBe("Rests")
      const [key] = Object.keys(open.inputRequests)
      yield* first.close

      const second = yield* start(filename, handler)
      const inputResponses = { [key!]: { action: "accept", content: { when: "today" } } }
      yield* second.client.request("tasks/update", { taskId, inputResponses })
      expect((yield* ended(second.client, taskId)).result.content[0].text).toBe("7 true today")
      expect(log.filter((line) => line.startsWith("charge"))).toEqual(["charge 32"])
      expect(log).toContain("aborted: true")
      expect(log.at(-1)).toBe("aborted: false")
      // Successive parts are not a race: no event names parts that ran beside it.
      const { log: events } = (yield* second.admin.inspect(taskId))!
      expect(events.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
        "step charge",
        "step nothing",
        "fired sleep/short",
        `answer ${key}`
      ])
    }).pipe(Effect.scoped))

  it.live("runs parallel steps with Promise.all, and replays them in another process", () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "tasks.db")
      const runs: Array<number> = []
      const handler = only(async ({ elicit, step }) => {
        const all = await Promise.all([1, 2, 3].map((n) =>
          step(`part ${n}`, async () => {
            runs.push(n)
            await new Promise((resolve) => setTimeout(resolve, 10 * (4 - n)))
            return n * n
          })
        ))
        await elicit("Go on?", { why: Schema.String })
        return all.join()
      })
      const first = yield* start(filename, handler)
      const { taskId } = yield* first.client.call("t", {})
      const open = yield* until(first.client, taskId, ({ status }) => status === "input_required")
      yield* first.close

      const second = yield* start(filename, handler)
      const [key] = Object.keys(open.inputRequests)
      yield* second.client.request("tasks/update", { taskId, inputResponses: { [key!]: { action: "decline" } } })
      expect((yield* ended(second.client, taskId)).result.content[0].text).toBe("1,4,9")
      expect(runs.toSorted()).toEqual([1, 2, 3])
    }).pipe(Effect.scoped))

  it.live("retries a step, and rejects with the message of the last error", () =>
    Effect.gen(function*() {
      let calls = 0
      const retry = { times: 2, initialDelay: 5 }
      const flaky = only(({ step }) =>
        step("flaky", () => {
          if (++calls < 3) throw new Error("not yet")
          return "third"
        }, { retry })
      )
      expect(yield* run(flaky)).toBe("third")
      const caught = only(({ step }) =>
        step("down", () => Promise.reject(new Error("secret")), { retry }).catch((error: unknown) =>
          error instanceof StepError ? `${error.step}: ${error.message}` : "another error"
        )
      )
      expect(yield* run(caught)).toBe("down: secret")
      expect(yield* run(only(({ step }) => step("down", () => Promise.reject(new Error("secret")))))).toMatch(
        failedUnexpectedly
      )
      const visible = only(({ step }) =>
        step("down", () => {
          throw new VisibleError("The card is declined")
        })
      )
      expect(yield* run(visible)).toBe("failed: The card is declined")
    }))

  it.live("stores the result of a step as JSON has it, and fails for one that JSON cannot hold", () =>
    Effect.gen(function*() {
      expect(yield* run(only(({ step }) => step("date", () => new Date(0))))).toBe("1970-01-01T00:00:00.000Z")
      expect(yield* run(only(({ step }) => step("map", (): any => new Map())))).toMatch(failedUnexpectedly)
    }))

  it.live("compensates the last step first, with a context of its own", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const text = yield* run(async (_, { compensate, step }) => {
        await compensate(async ({ step }, reason) => {
          await step("unlock", () => void log.push(`unlock ${reason}`))
        })
        await step("hire", () => "van", {
          compensate: (what, { step }, reason) => step("release", () => void log.push(`release ${what} ${reason}`))
        })
        throw new VisibleError("No driver")
      })
      expect(text).toBe("failed: No driver")
      expect(log).toEqual(["release van failed", "unlock failed"])
    }))

  it.live("a cancelled task aborts its handler, and compensates", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      let isHired = false
      const { client } = yield* start(join(yield* folder, "tasks.db"), async (_, { sleep, step }) => {
        await step("hire", () => "van", { compensate: (what, _, reason) => void log.push(`${what} ${reason}`) })
        isHired = true
        await sleep("long", "1 day")
      })
      const { taskId } = yield* client.call("t", {})
      yield* Effect.repeat(Effect.sleep(5), { until: () => isHired })
      yield* client.request("tasks/cancel", { taskId })
      yield* Effect.repeat(Effect.sleep(20), { until: () => log.length > 0 })
      expect(log).toEqual(["van cancelled"])
    }).pipe(Effect.scoped))

  it.live("begins again with other arguments", () =>
    Effect.gen(function*() {
      const text = yield* run(async ({ end }, { continueWith, step }) => {
        const seen = await step("look", () => `seen ${end}`)
        return end === "2" ? seen : continueWith({ end: "2" })
      }, "1")
      expect(text).toBe("seen 2")
    }))
})

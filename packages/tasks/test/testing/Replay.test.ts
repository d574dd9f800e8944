/**
 * Compares the code of a server with tasks that other code has run.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { Replay } from "@skein/tasks/TaskExport"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskSchedule from "@skein/tasks/TaskSchedule"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { newTask } from "../engine/kit.ts"

/** The effects of handlers. */
const effects: Array<string> = []
const did = (name: string) => Effect.sync(() => void effects.push(name))

type Failure = { readonly message: string }
type Body = Effect.Effect<string, Failure>
const no = Effect.fail<Failure>({ message: "no" })
const part = <A, E, R>(effect: Effect.Effect<A, E, R>) => effect as Effect.Effect<A, E>
/** A step without a value, and one with a value. */
const plain = (name: string) => part(Step.run(name, {}, () => did(name)))
const valued = (name: string) => part(Step.run(name, { success: Schema.String }, () => Effect.as(did(name), name)))
const nap = (name: string) => part(Step.sleep(name, "1 day"))
const flaky = part(Step.run(
  "flaky",
  { error: Schema.String, retry: Schedule.upTo(Schedule.spaced("1 hour"), { times: 2 }) },
  () => Effect.andThen(did("flaky"), Effect.fail("no"))
)).pipe(Effect.ignore)
const asks = (message: string) =>
  part(Effect.orDie(Elicitation.accepted(Elicitation.form(message, { sure: Schema.Boolean }))))
const inOrder = (...parts: ReadonlyArray<Effect.Effect<unknown, Failure>>): Body =>
  Effect.as(Effect.forEach(parts, (part) => part, { discard: true }), "done")

const work = Task.make("work", { ttl: "30 days", inputFrom: "anyone" })
const serverOf = (body: Body) =>
  McpServer.layer({ name: "test", version: "1" }, Task.layer(work, () => body), Tasks.layer())

/** Runs a task for an hour, or to its end, and exports it. */
const exportAt = (end: "hour" | "end", body: Body, redact = false) =>
  Effect.scoped(Effect.gen(function*() {
    const test = yield* TaskTest.make(serverOf(body), { startAt: "2026-03-27T06:00:00Z" })
    const caller = {
      ...{ revision: "2026-07-28" as const, capabilities: { elicitation: { form: {} } } },
      ...{ info: undefined, principal: undefined }
    }
    const { id } = yield* test.run(Effect.flatMap(TaskEngine, ({ submit }) => submit(newTask("work", { caller }))))
    yield* end === "end" ? test.untilIdle : test.run(Effect.sleep("1 hour"))
    const exported = yield* test.run(Effect.flatMap(TaskAdmin, ({ exportTask }) => exportTask(id, { redact })))
    return JSON.parse(JSON.stringify(exported))
  }))

const same: Replay = { _tag: "Matches", next: undefined }
const begins = (next: string): Replay => ({ _tag: "Matches", next })
const differs = (seq: number | undefined, recorded: string, code: string): Replay => ({
  ...{ _tag: "Differs", seq, recorded, code }
})

const [a, b, c] = [valued("a"), valued("b"), valued("c")]

interface Case {
  readonly change: string
  readonly at: "hour" | "end"
  readonly before: Body
  readonly after?: Body
  readonly replay: Replay
}

const cases: ReadonlyArray<Case> = [
  { change: "nothing", at: "end", before: inOrder(a, nap("n"), plain("p"), b), replay: same },
  { change: "nothing, in a sleep", at: "hour", before: inOrder(a, nap("n"), b), replay: same },
  { change: "nothing, with retries", at: "end", before: inOrder(a, flaky, b), replay: same },
  { change: "nothing, with a failure", at: "end", before: inOrder(a, no), replay: same },
  {
    change: "nothing, with branches",
    at: "end",
    before: Effect.as(
      Effect.all([inOrder(a, nap("n")), inOrder(nap("m"), b), Effect.race(c, nap("late"))], { concurrency: 3 }),
      "done"
    ),
    replay: same
  },
  {
    change: "nothing, at a question",
    at: "hour",
    before: inOrder(a, asks("Sure?")),
    replay: begins(expect.stringMatching(/^question "/))
  },
  { change: "a later step", at: "hour", before: inOrder(a, nap("n")), after: inOrder(a, nap("n"), b), replay: same },
  {
    change: "a step with a value is renamed",
    at: "end",
    before: inOrder(a, b, c),
    after: inOrder(a, valued("B"), c),
    replay: differs(2, "step \"b\"", "step \"B\"")
  },
  {
    change: "a step without a value is renamed",
    at: "end",
    before: inOrder(a, plain("p"), c),
    after: inOrder(a, plain("P"), c),
    replay: differs(2, "step \"p\"", "step \"P\"")
  },
  {
    change: "a step is added",
    at: "end",
    before: inOrder(a, c),
    after: inOrder(a, b, c),
    replay: differs(2, "step \"c\"", "step \"b\"")
  },
  {
    change: "a step is removed",
    at: "end",
    before: inOrder(a, b, c),
    after: inOrder(a, c),
    replay: differs(2, "step \"b\"", "step \"c\"")
  },
  {
    change: "the last step is removed",
    at: "end",
    before: inOrder(a, b),
    after: inOrder(a),
    replay: differs(2, "step \"b\"", "the end of the task")
  },
  {
    change: "a step is added at the end of a task that has ended",
    at: "end",
    before: inOrder(a),
    after: inOrder(a, b),
    replay: differs(undefined, "the end of the task", "step \"b\"")
  },
  {
    change: "a sleep is removed",
    at: "hour",
    before: inOrder(a, nap("n"), b),
    after: inOrder(a, b),
    replay: differs(2, "sleep \"n\"", "step \"b\"")
  },
  {
    change: "two steps change places, which a task in progress survives",
    at: "end",
    before: inOrder(a, b, c),
    after: inOrder(b, a, c),
    replay: same
  },
  {
    change: "a record cannot be decoded",
    at: "end",
    before: inOrder(a, b),
    after: inOrder(part(Step.run("a", { success: Schema.Number }, () => Effect.succeed(1))), b),
    replay: differs(2, "step \"b\"", expect.stringContaining("a failure: step \"a\": its schema cannot decode"))
  },
  {
    change: "the result",
    at: "end",
    before: inOrder(a),
    after: Effect.as(a, "other"),
    replay: differs(undefined, expect.stringContaining("done"), expect.stringContaining("other"))
  },
  {
    change: "the kind of the end",
    at: "end",
    before: inOrder(a),
    after: inOrder(a, no),
    replay: differs(undefined, expect.stringContaining("done"), expect.stringContaining("a result with isError"))
  }
]

describe("a replay of an exported task", () => {
  it.live.each(cases)("reports: $change", ({ after, at, before, replay }) =>
    Effect.gen(function*() {
      const exported = yield* exportAt(at, before)
      effects.length = 0
      const found = yield* TaskTest.replay(serverOf(after ?? before), exported)
      expect(found).toEqual(replay)
      expect(effects).toEqual([])
    }))

  it.live("reads a redacted one from a file, and starts no task of a schedule", () =>
    Effect.scoped(Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-replay-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      const file = join(folder, "task.json")
      writeFileSync(file, JSON.stringify(yield* exportAt("end", inOrder(a, flaky, nap("n"), b), true)))
      effects.length = 0
      const scheduled = (body: Body) =>
        McpServer.layer(
          { name: "test", version: "1" },
          Task.layer(work, () => body),
          TaskSchedule.layer("each second", work, { cron: "* * * * * *" }),
          Tasks.layer()
        )
      expect(yield* TaskTest.replay(scheduled(inOrder(a, flaky, nap("n"), b)), file)).toEqual(same)
      expect(yield* TaskTest.replay(scheduled(inOrder(a, c)), file)).toMatchObject({ code: "step \"c\"" })
      expect(effects).toEqual([])
      const none = yield* Effect.flip(TaskTest.replay(Layer.empty as never, join(folder, "none.json")))
      expect(none).toMatchObject({ message: expect.stringContaining("the exported task cannot be read") })
    })))
})

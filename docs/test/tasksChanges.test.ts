/** "Changing the code" of `tasks-guarantees.md`, row by row: a task that old code started continues with new code. */
import { describe, expect, it } from "@effect/vitest"
import type { RemoteTask } from "@skein/client/RemoteTask"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { clientOf, run, settled, until, user } from "./taskKit.ts"

const page = readFileSync(join(import.meta.dirname, "../tasks-guarantees.md"), "utf8")

type Body = (log: Array<string>) => Effect.Effect<string, { readonly message: string }, never>
const body = (make: (log: Array<string>) => unknown): Body => make as Body

/** Records an effect. */
const did = (log: Array<string>, what: string) => Effect.sync(() => void log.push(what))
const step = (log: Array<string>, name: string) => Step.run(name, {}, () => did(log, name))
const nap = Step.sleep("nap", "1 hour")
const giving = <A>(success: Schema.ConstraintCodec<A, unknown>, value: A) =>
  body((log) =>
    Effect.gen(function*() {
      yield* Step.compensate(() => did(log, "undone"))
      const given = yield* Step.run("a", { success }, () => Effect.succeed(value))
      yield* nap
      return JSON.stringify(given)
    })
  )
const steps = (...names: ReadonlyArray<string>) =>
  body((log) =>
    Effect.gen(function*() {
      for (const name of names) yield* name === "nap" ? nap : step(log, name)
      return "done"
    })
  )
const failing = (retry?: Schedule.Schedule<unknown>) =>
  body((log) =>
    Effect.as(
      Step.run("a", { error: Schema.String, retry }, () => Effect.andThen(did(log, "tried"), Effect.fail("no"))),
      "done"
    ).pipe(Effect.mapError((message) => ({ message })))
  )
const asking = (message: string, key?: string) =>
  body(() =>
    Effect.map(
      Elicitation.accepted(Elicitation.form(message, { reply: Schema.String }, { key })),
      ({ reply }) => reply
    )
  )

interface Case {
  /** The row of the guide that this case tests. */
  readonly row: string
  readonly before: Body
  readonly after: Body
  /** All recorded effects. */
  readonly done: ReadonlyArray<string>
  /** The text of the result, or the error. */
  readonly result: string | RegExp
}

const number = Schema.Struct({ a: Schema.Int })
const cases: ReadonlyArray<Case> = [
  {
    row: "A step is added",
    before: steps("a", "nap"),
    after: steps("new", "a", "nap", "b"),
    done: ["a", "new", "b"],
    result: "done"
  },
  { row: "A step is removed", before: steps("a", "nap"), after: steps("nap", "b"), done: ["a", "b"], result: "done" },
  { row: "A step is renamed", before: steps("a", "nap"), after: steps("A", "nap"), done: ["a", "A"], result: "done" },
  {
    row: "Steps change their order",
    before: steps("a", "b", "nap"),
    after: steps("nap", "b", "a"),
    done: ["a", "b"],
    result: "done"
  },
  {
    row: "`success` gains an optional field",
    before: giving(number, { a: 1 }),
    after: giving(Schema.Struct({ a: Schema.Int, b: Schema.optionalKey(Schema.Int) }), { a: 2, b: 2 }),
    done: [],
    result: "{\"a\":1}"
  },
  {
    row: "or loses a field",
    before: giving(Schema.Struct({ a: Schema.Int, b: Schema.Int }), { a: 1, b: 1 }),
    after: giving(number, { a: 2 }),
    done: [],
    result: "{\"a\":1}"
  },
  {
    row: "`success` changes in another way",
    before: giving(number, { a: 1 }),
    after: giving(Schema.Struct({ a: Schema.String }), { a: "2" }),
    done: ["undone"],
    result: /^The tool t failed unexpectedly/
  },
  {
    row: "`retry` is shortened or removed",
    before: failing(Schedule.spaced("1 hour")),
    after: failing(),
    done: ["tried"],
    result: "no"
  },
  {
    row: "The text of a question without a `key`",
    before: asking("Old?"),
    after: asking("New?"),
    done: [],
    result: "new"
  },
  {
    row: "With a `key` the old answer counts",
    before: asking("Old?", "k"),
    after: asking("New?", "k"),
    done: [],
    result: "old"
  }
]

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-guide-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

type Offered = ReturnType<typeof offered>
const server = (definition: Offered) =>
  McpServer.layer({ name: "changing", version: "1.0.0" }, definition, Tasks.layer())
const offered = (log: Array<string>, body: Body, options: Task.Options<{}, never> = {}) =>
  Task.layer(Task.make("t", options), () => body(log))

/** Starts a task on one server, and finishes it on a second server with the same file. */
const deployed = (before: Offered, after: Offered, args?: object) =>
  Effect.gen(function*() {
    const engine = SqliteTasks.layer({ filename: join(yield* folder, "tasks.db"), pollInterval: "10 minutes" })
    const answering = user({ "Old?": { reply: "old" }, "New?": { reply: "new" } })
    const first = yield* run(server(before), engine)
    // This client does not follow the task, so the next client answers its questions.
    const begun = yield* (yield* answering(clientOf(first.transport()))).startTask("t", args)
    yield* settled
    yield* until(yield* Effect.forkChild(first.close))
    const second = yield* run(server(after), engine)
    const client = yield* answering(clientOf(second.transport()))
    const task = yield* client.resumeTask((begun as RemoteTask).handle)
    const result = Effect.match(task.result, {
      onFailure: ({ message, reason }) => `${reason._tag}: ${message}`,
      onSuccess: ({ content: [first] }) => first?.type === "text" ? first.text : ""
    })
    return yield* until(yield* Effect.forkChild(result))
  })

describe("tasks-guarantees.md, changing the code", () => {
  for (const { after, before, done, result, row } of cases) {
    it.effect(row, () =>
      Effect.gen(function*() {
        expect(page).toContain(row)
        const log: Array<string> = []
        expect(yield* deployed(offered(log, before), offered(log, after))).toMatch(result)
        expect(log).toEqual(done)
      }))
  }

  it.effect("A sleep has another duration", () =>
    Effect.gen(function*() {
      const sleeping = (name: string, hours: number) =>
        body((log) => Effect.as(Effect.andThen(Step.sleep(name, hours * 3_600_000), did(log, "awake")), "done"))
      const log: Array<string> = []
      const start = yield* Clock.currentTimeMillis
      const slept = Effect.map(Clock.currentTimeMillis, (now) => Math.round((now - start) / 3_600_000))
      yield* deployed(offered(log, sleeping("nap", 2)), offered(log, sleeping("nap", 20)))
      expect(yield* slept).toBe(2)
      yield* deployed(offered(log, sleeping("nap", 2)), offered(log, sleeping("rest", 5)))
      // Its old sleep of 2 hours passes first, and then it sleeps for 5 hours.
      expect(yield* slept).toBe(9)
    }))

  it.effect("The input schema no longer accepts the arguments", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const taking = (field: Schema.ConstraintCodec<unknown, unknown>) =>
        Task.layer(Task.make("t", { input: { field } }), () => steps("nap", "a")(log))
      const reply = yield* deployed(taking(Schema.String), taking(Schema.Int), { field: "text" })
      expect(reply).toMatch(/^Invalid arguments/)
      expect(log).toEqual([])
    }))

  it.effect("finishes the tasks of a tool that is visible to no caller", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const hidden = offered(log, steps("a", "nap", "b"), { visible: () => false })
      expect(yield* deployed(offered(log, steps("a", "nap", "b")), hidden)).toBe("done")
      expect(log).toEqual(["a", "b"])
    }))
})

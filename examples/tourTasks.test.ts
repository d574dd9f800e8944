import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as NodeHttp from "@skein/client/NodeHttp"
import type * as RemoteTask from "@skein/client/RemoteTask"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { required, unavailable } from "../packages/sql/test/postgres.ts"
import * as kit from "./testKit.ts"

/** The path of a task database. Closing the scope deletes it. */
const databaseFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-tour-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder) => join(folder, "tasks.db")
)

const startServer = (data: string, port = "0") => kit.start(kit.program("tour/main.ts", "--port", port, "--data", data))

const untilOutput = (program: kit.RunningProcess, pattern: RegExp) => Effect.promise(() => program.until(pattern))

/** How often a text occurs in the output of all given programs. */
const times = (text: string, ...programs: ReadonlyArray<kit.RunningProcess>): number =>
  programs.map((program) => program.out()).join("").split(text).length - 1

const kill = (program: kit.RunningProcess, signal: NodeJS.Signals) => {
  program.kill(signal)
  return Effect.promise(() => program.ended)
}

const clientOf = (url: string) => Client.make(NodeHttp.transport({ url }))

/** Answers the question about the cake. */
const answerCake = (cake: boolean) => Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ cake })) })

const cater = (client: Client.Client, guests: number) =>
  Effect.flatMap(
    client.startTask("cater", { guests, tea: "oolong" }),
    (started) => started._tag === "RemoteTask" ? Effect.succeed(started) : Effect.die("cater did not create a task")
  )

/** Follows a task until its status and message match. */
const untilStatus = (task: RemoteTask.RemoteTask, pattern: RegExp) =>
  Stream.runHead(Stream.filter(task.states, ({ status, statusMessage }) => pattern.test(`${status}: ${statusMessage}`)))

// The tests mostly wait for tasks and processes, so they run concurrently, with a timeout for busy machines.
describe.concurrent("the durable task of the tour", { timeout: 120_000 }, () => {
  it.live("continues after SIGTERM and SIGKILL, repeats no step, and accepts the answer of another client", () =>
    Effect.gen(function*() {
      const data = yield* databaseFile
      const first = yield* startServer(data)
      const url = yield* kit.urlOf(first)
      const { port } = new URL(url)

      // The first client disconnects and keeps the handle of the task.
      const handle = yield* Effect.scoped(Effect.gen(function*() {
        const task = yield* cater(yield* Effect.provide(clientOf(url), answerCake(false)), 8)
        yield* untilOutput(first, /took leaves for 2 pots/)
        return task.handle
      }))
      expect(yield* kill(first, "SIGTERM")).toBe(143)

      const second = yield* startServer(data, port)
      // The second client does not support elicitation and only watches the task.
      yield* Effect.scoped(Effect.gen(function*() {
        yield* kit.urlOf(second)
        const task = yield* (yield* clientOf(url)).resumeTask(handle)
        yield* untilStatus(task, /^input_required: /)
      }))
      yield* kill(second, "SIGKILL")

      // The third client supports elicitation and waits for the result, across a restart of the server.
      const third = yield* startServer(data, port)
      yield* kit.urlOf(third)
      const task = yield* (yield* Effect.provide(clientOf(url), answerCake(true))).resumeTask(handle)
      const seen = yield* Effect.forkScoped(task.result)
      yield* untilStatus(task, /Brewing pot 2 of 2/)
      yield* kill(third, "SIGKILL")

      const fourth = yield* startServer(data, port)
      expect(yield* Fiber.join(seen)).toMatchObject({
        content: [{ text: "2 pots of oolong for 8 guests, with cake." }]
      })
      for (const once of ["took leaves for 2 pots", "brewed pot 1 of 2", "brewed pot 2 of 2"]) {
        expect([once, times(once, first, second, third, fourth)]).toEqual([once, 1])
      }
      expect(fourth.out()).toContain("brewed pot 2 of 2")
      // The task was not cancelled, so nothing was compensated.
      expect(times("put the leaves back", first, second, third, fourth)).toBe(0)
      expect(first.err()).toMatch(/^.*Shutting down.*\n(.*Requests interrupted.*\n)?.*Stopped after \d+ ms\n$/)
      expect(second.err() + third.err() + fourth.err()).toBe("")
    }))

  it.live("compensates a cancelled task; a second server on the same file exits with one line", () =>
    Effect.gen(function*() {
      const data = yield* databaseFile
      const served = yield* startServer(data)
      const task = yield* cater(yield* clientOf(yield* kit.urlOf(served)), 4)
      const second = yield* startServer(data)
      yield* untilOutput(served, /took leaves for 1 pots/)
      yield* task.cancel
      yield* untilOutput(served, /put the leaves back: the order was cancelled/)
      expect(yield* Effect.flip(task.result)).toMatchObject({ reason: { _tag: "TaskCancelled" } })

      expect(yield* Effect.promise(() => second.ended)).toBe(1)
      expect(second.out()).toBe("")
      expect(second.err()).toBe(
        `SQLite: "${data}" is in use by another process or client that owns it\n`
      )
    }))

  it.live("prints a command that runs a task, shows its status, and declines questions without a terminal", () =>
    Effect.gen(function*() {
      const served = yield* startServer(yield* databaseFile)
      const command = yield* untilOutput(served, /npm run -s call -- --verbose .*/)
      const call = yield* kit.start({ command: "sh", args: ["-c", command] })
      expect(yield* Effect.promise(() => call.ended)).toBe(1)
      for (
        const line of [
          /^Task [\w-]{32}$/m,
          /^working: Waiting six seconds for the water$/m,
          /^Declined, because there is no terminal to answer on: Would you like cake\?$/m,
          /^The user declined$/m
        ]
      ) expect(call.err()).toMatch(line)
      expect(call.out()).toBe("")
      yield* untilOutput(served, /put the leaves back: the order was failed/)
    }))

  const pg = unavailable === undefined || required ? it.live : it.live.skip
  pg(
    "on PostgreSQL, continues in the server after its worker was killed",
    () =>
      Effect.gen(function*() {
        const database = yield* kit.start(kit.program("tour/postgres.ts"))
        const url = yield* untilOutput(database, /postgres:\/\/\S+/)
        const served = yield* kit.start(kit.program("tour/main.ts", "--port", "0", "--postgres", url))
        const worker = yield* kit.start(kit.program("tour/worker.ts", "--postgres", url))
        const client = yield* Effect.provide(clientOf(yield* kit.urlOf(served)), answerCake(false))
        expect(served.out()).toContain(`npm run worker -- --postgres ${url}`)
        yield* untilOutput(worker, /Tea house worker running/)

        // The server or the worker may run a task. Tasks are started until the worker runs one.
        const tasks: Array<RemoteTask.RemoteTask> = []
        while (!worker.out().includes("took leaves")) {
          tasks.push(yield* cater(client, 4))
          yield* Effect.sleep("300 millis")
        }
        const [, id = ""] = /kitchen (\S+) {2}took leaves/.exec(worker.out()) ?? []
        const task = tasks.find((task) => task.id.startsWith(id))!
        yield* untilStatus(task, /Waiting six seconds/)
        yield* kill(worker, "SIGKILL")
        expect(yield* task.result).toMatchObject({
          content: [{ text: "1 pots of oolong for 4 guests, without cake." }]
        })
        expect(times(`kitchen ${id}  took leaves`, worker)).toBe(1)
        expect(times(`kitchen ${id}  took leaves`, served)).toBe(0)
        expect(times(`kitchen ${id}  brewed pot 1 of 1`, served)).toBe(1)
        expect(yield* kill(database, "SIGTERM")).toBe(0)
      })
  )
})

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
import * as kit from "./kit.ts"

/** Where a house keeps its tasks; it goes with the scope. */
const file = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-tour-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder) => join(folder, "tasks.db")
)

const house = (data: string, port = "0") => kit.start(kit.program("tour/main.ts", "--port", port, "--data", data))

const said = (house: kit.Running, what: RegExp) => Effect.promise(() => house.until(what))

/** How often something was said, by all of these houses. */
const times = (what: string, ...houses: ReadonlyArray<kit.Running>): number =>
  houses.map((house) => house.out()).join("").split(what).length - 1

const end = (house: kit.Running, signal: NodeJS.Signals) => {
  house.kill(signal)
  return Effect.promise(() => house.ended)
}

const clientOf = (url: string) => Client.make(NodeHttp.transport({ url }))

/** A guest who answers what they are asked. */
const answering = (cake: boolean) => Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ cake })) })

const cater = (client: Client.Client, guests: number) =>
  Effect.flatMap(
    client.startTask("cater", { guests, tea: "oolong" }),
    (started) => started._tag === "RemoteTask" ? Effect.succeed(started) : Effect.die("It is no task")
  )

/** Follows a task until it says so. */
const until = (task: RemoteTask.RemoteTask, what: RegExp) =>
  Stream.runHead(Stream.filter(task.states, ({ status, statusMessage }) => what.test(`${status}: ${statusMessage}`)))

// They wait for tasks and for processes, and little else: so they wait together, and longer on a machine that is busy.
describe.concurrent("the long task of the tea house", { timeout: 120_000 }, () => {
  it.live("survives SIGTERM and kill -9: each pot is brewed once, and another client answers the question", () =>
    Effect.gen(function*() {
      const data = yield* file
      const first = yield* house(data)
      const url = yield* kit.urlOf(first)
      const { port } = new URL(url)

      // The first guest leaves without a word, and keeps what the task is found by.
      const handle = yield* Effect.scoped(Effect.gen(function*() {
        const task = yield* cater(yield* Effect.provide(clientOf(url), answering(false)), 8)
        yield* said(first, /took leaves for 2 pots/)
        return task.handle
      }))
      expect(yield* end(first, "SIGTERM")).toBe(143)

      const second = yield* house(data, port)
      // Nobody to ask: this client cannot be asked, and looks.
      yield* Effect.scoped(Effect.gen(function*() {
        yield* kit.urlOf(second)
        const task = yield* (yield* clientOf(url)).resumeTask(handle)
        yield* until(task, /^input_required: /)
      }))
      yield* end(second, "SIGKILL")

      // A guest who can, and who sees it through, whatever happens to the house.
      const third = yield* house(data, port)
      yield* kit.urlOf(third)
      const task = yield* (yield* Effect.provide(clientOf(url), answering(true))).resumeTask(handle)
      const seen = yield* Effect.forkScoped(task.result)
      yield* until(task, /Brews pot 2 of 2/)
      yield* end(third, "SIGKILL")

      const fourth = yield* house(data, port)
      expect(yield* Fiber.join(seen)).toMatchObject({
        content: [{ text: "2 pots of oolong for 8 guests, and a cake." }]
      })
      for (const once of ["took leaves for 2 pots", "brewed pot 1 of 2", "brewed pot 2 of 2"]) {
        expect([once, times(once, first, second, third, fourth)]).toEqual([once, 1])
      }
      expect(fourth.out()).toContain("brewed pot 2 of 2")
      // Nobody has cancelled it.
      expect(times("put the leaves back", first, second, third, fourth)).toBe(0)
      expect(first.err() + second.err() + third.err() + fourth.err()).toBe("")
    }))

  it.live("a guest who cancels gets the leaves put back; a second house on the same file is refused, in one line", () =>
    Effect.gen(function*() {
      const data = yield* file
      const served = yield* house(data)
      const task = yield* cater(yield* clientOf(yield* kit.urlOf(served)), 4)
      const second = yield* house(data)
      yield* said(served, /took leaves for 1 pots/)
      yield* task.cancel
      yield* said(served, /put the leaves back, for the order was cancelled/)
      expect(yield* Effect.flip(task.result)).toMatchObject({ reason: "Cancelled" })

      expect(yield* Effect.promise(() => second.ended)).toBe(1)
      expect(second.out()).toBe("")
      expect(second.err()).toBe(
        `SQLite: "${data}" is in use: another process or client holds it for itself, or would be shut out\n`
      )
    }))

  it.live("the line of the welcome works as it stands: it tells how far the task is, and declines where nobody can answer", () =>
    Effect.gen(function*() {
      const served = yield* house(yield* file)
      const line = yield* said(served, /npm run -s call .*/)
      const call = yield* kit.start({ command: "sh", args: ["-c", line] })
      expect(yield* Effect.promise(() => call.ended)).toBe(1)
      for (
        const told of [
          /^Task [\w-]{32}$/m,
          /^working: The water comes from the spring, in six seconds$/m,
          /^Declined, for there is no terminal to answer on: Shall there be cake with it\?$/m,
          /^The user declined$/m
        ]
      ) expect(call.err()).toMatch(told)
      expect(call.out()).toBe("")
      yield* said(served, /put the leaves back, for the order was failed/)
    }))

  const pg = unavailable === undefined || required ? it.live : it.live.skip
  pg(
    "on PostgreSQL: a task goes on with the house when the worker that has it is killed",
    () =>
      Effect.gen(function*() {
        const database = yield* kit.start(kit.program("tour/postgres.ts"))
        const url = yield* said(database, /postgres:\/\/\S+/)
        const served = yield* kit.start(kit.program("tour/main.ts", "--port", "0", "--postgres", url))
        const worker = yield* kit.start(kit.program("tour/worker.ts", "--postgres", url))
        const client = yield* Effect.provide(clientOf(yield* kit.urlOf(served)), answering(false))
        expect(served.out()).toContain(`npm run worker -- --postgres ${url}`)
        yield* said(worker, /A worker of the tea house/)

        // Which one gets a task is not for us to say: so there are more, until the worker has one.
        const tasks: Array<RemoteTask.RemoteTask> = []
        while (!worker.out().includes("took leaves")) {
          tasks.push(yield* cater(client, 4))
          yield* Effect.sleep("300 millis")
        }
        const [, id = ""] = /kitchen (\S+) {2}took leaves/.exec(worker.out()) ?? []
        const task = tasks.find((task) => task.id.startsWith(id))!
        yield* until(task, /The water comes/)
        yield* end(worker, "SIGKILL")
        expect(yield* task.result).toMatchObject({
          content: [{ text: "1 pots of oolong for 4 guests, without cake." }]
        })
        expect(times(`kitchen ${id}  took leaves`, worker)).toBe(1)
        expect(times(`kitchen ${id}  took leaves`, served)).toBe(0)
        expect(times(`kitchen ${id}  brewed pot 1 of 1`, served)).toBe(1)
        expect(yield* end(database, "SIGTERM")).toBe(0)
      })
  )
})

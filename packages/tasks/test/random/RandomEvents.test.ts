/**
 * Random sends to a random handler, whose processes are stopped and killed: each event is received at most once, in the
 * order of sending, and none is lost.
 */
import { expect, it } from "@effect/vitest"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { durable, pass, settled, submit, work } from "../engine/kit.ts"

/** `RUNS` and `SEED` make it run longer, and with other programs. */
const runs = Number(process.env["RUNS"] ?? 20)
const seed = process.env["SEED"] ?? "skein"

/** `t` is an event of a topic. */
const Name = Schema.Literals(["a", "b", "t"])
type Name = typeof Name.Type
const Seconds = Schema.Literals([0, 3, 60, 600])

const Part = Schema.Union([
  Schema.TaggedStruct("Await", { name: Name }),
  Schema.TaggedStruct("Timeout", { name: Name, seconds: Seconds }),
  Schema.TaggedStruct("Race", { name: Name, seconds: Seconds }),
  Schema.TaggedStruct("Both", { same: Schema.Boolean }),
  Schema.TaggedStruct("Either", { seconds: Seconds }),
  Schema.TaggedStruct("Step", {}),
  Schema.TaggedStruct("Sleep", { seconds: Seconds })
])

const Action = Schema.Union([
  Schema.TaggedStruct("Send", { name: Name, isRepeated: Schema.Boolean }),
  Schema.TaggedStruct("Send", { name: Name, isRepeated: Schema.Boolean }),
  Schema.TaggedStruct("Pass", { seconds: Seconds }),
  Schema.TaggedStruct("Turns", { turns: Schema.Literals([1, 3, 9]) }),
  Schema.TaggedStruct("Stop", {}),
  Schema.TaggedStruct("Kill", {})
])

type Seen = Record<Name, Array<unknown>>

const topic = "x"

/** Interprets a part. `seen` has the values that the handler has received, by the names of the events. */
const interpret = (part: typeof Part.Type, index: number, seen: Seen): Effect.Effect<void, never, CurrentTask> => {
  const receive = (name: Name, timeout?: number) =>
    Task.awaitEvent(name, {
      topic: name === "t" ? topic : undefined,
      timeout: timeout === undefined ? undefined : timeout * 1000
    }).pipe(
      Effect.map((value) => void seen[name].push(value)),
      Effect.catchReason("EventError", "Timeout", () => Effect.void),
      Effect.orDie
    )
  const sleep = (seconds: number) => Step.sleep(`sleep ${index}`, seconds * 1000)
  switch (part._tag) {
    case "Await":
      return receive(part.name)
    case "Timeout":
      return receive(part.name, part.seconds)
    case "Race":
      return Effect.raceFirst(receive(part.name), sleep(part.seconds))
    case "Both":
      return Effect.all([receive("a"), receive(part.same ? "a" : "b")], { concurrency: "unbounded", discard: true })
    case "Either":
      return Effect.raceFirst(receive("a", part.seconds), receive("b"))
    case "Step":
      return Step.run(`step ${index}`, {}, () => Effect.void)
    case "Sleep":
      return sleep(part.seconds)
  }
}

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-events-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

it.effect.prop(
  "a task receives each event once and in order, after any history of its processes",
  [Schema.Array(Part), Schema.Array(Action)],
  ([parts, actions]) =>
    Effect.gen(function*() {
      const directory = yield* folder
      let number = 0
      const file = () => join(directory, `${number}.db`)
      let seen: Seen = { a: [], b: [], t: [] }
      const handler = durable(() =>
        Effect.suspend(() => {
          const own: Seen = { a: [], b: [], t: [] }
          seen = own
          return Effect.as(
            Effect.forEach(parts, (part, index) => interpret(part, index, own), { discard: true }),
            "done"
          )
        })
      )
      const start = Effect.gen(function*() {
        const scope = yield* Scope.fork(yield* Effect.scope)
        const layer = SqliteTasks.layer({ filename: file(), pollInterval: "1 minute" })
        const context = yield* Layer.buildWithScope(layer, scope)
        yield* TestClock.adjust(10)
        yield* Scope.provide(Effect.provideContext(work({ random: handler }), context), scope)
        return { context, scope, engine: Context.get(context, TaskEngine), admin: Context.get(context, TaskAdmin) }
      })
      const stop = ({ scope }: Effect.Success<typeof start>) =>
        Effect.gen(function*() {
          const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
          yield* settled
          while (closing.pollUnsafe() === undefined) yield* pass(1)
        })
      let process = yield* start
      const { id } = yield* Effect.provideContext(submit("random"), process.context)
      const sent: Seen = { a: [], b: [], t: [] }
      for (const [index, action] of actions.entries()) {
        switch (action._tag) {
          case "Send": {
            if (action.name === "t") {
              const send = process.engine.sendAll("t", topic, index, { key: `key ${index}` })
              yield* send
              sent.t.push(index)
              if (action.isRepeated) expect(yield* send).toBe(0)
              break
            }
            const send = process.engine.send(id, action.name, index, { key: `key ${index}` })
            const result = yield* Effect.result(send)
            if (result._tag === "Failure") {
              expect(result.failure.reason._tag).toBe("AlreadyEnded")
              break
            }
            sent[action.name].push(index)
            if (action.isRepeated) expect(yield* send).toBe(false)
            break
          }
          case "Pass":
            yield* pass(action.seconds, 30)
            break
          case "Turns":
            for (let turn = 0; turn < action.turns; turn++) {
              yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
            }
            break
          case "Kill": {
            const before = file()
            number++
            for (const part of ["", "-wal"]) if (existsSync(before + part)) copyFileSync(before + part, file() + part)
            yield* stop(process)
            process = yield* start
            break
          }
          case "Stop":
            yield* stop(process)
            process = yield* start
        }
      }
      const last = yield* Effect.repeat(Effect.andThen(pass(120, 10), process.admin.inspect(id, { values: true })), {
        until: (found) =>
          found?.place._tag === "Settled" || (found?.place._tag === "Waiting" && found.place.until === undefined)
      })
      for (const name of ["a", "b", "t"] as const) {
        const stored = name === "t" ? `t@${topic}` : name
        const own = (event: { readonly name: string }) => event.name === stored
        const received = last!.log.filter((event) => event.kind === "received" && own(event)).map(({ value }) =>
          Number(value)
        )
        // In the order of sending, and the handler has each that is recorded.
        expect(received).toEqual(sent[name].slice(0, received.length))
        expect(seen[name].toSorted()).toEqual(received.toSorted())
        // The others are stored. A task that has ended, or has not awaited a topic, has no events of it.
        const left = last!.unreceived.filter(own).length
        if (name !== "t" || (received.length > 0 && last!.place._tag === "Waiting")) {
          expect(left).toBe(sent[name].length - received.length)
        }
      }
    }),
  { timeout: runs * 10_000, arbitrary: { runs, seed, size: 12, maxShrinks: 100 } }
)

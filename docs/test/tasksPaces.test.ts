/** "Limits of a tool" of `tasks-machines.md`. */
import { expect, it } from "@effect/vitest"
import type * as Client from "@skein/client/Client"
import type * as RemoteTask from "@skein/client/RemoteTask"
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { TestClock } from "effect/testing"
import { count, countAtNight, index, print, repair } from "../programs/tasksPaces.ts"
import { clientOf, run, settled } from "./taskKit.ts"

const handleOf = (started: RemoteTask.Started) => "handle" in started ? started.handle : undefined

it.effect("a tool with limits runs two tasks together, and starts ten a minute for each caller", () =>
  Effect.gen(function*() {
    let running = 0
    let most = 0
    let started = 0
    const printing = Task.layer(print, ({ cards }) =>
      Step.run("print", {}, () =>
        Effect.gen(function*() {
          started++
          most = Math.max(most, ++running)
          yield* Effect.sleep("1 second")
          running--
        })).pipe(Effect.as(`${cards} cards`)))
    const server = McpServer.layer({ name: "copy shop", version: "1.0.0" }, printing, Tasks.layer())
    const process = yield* run(server, MemoryTasks.layer())
    const [ada, bob] = yield* Effect.forEach(
      ["ada", "bob"],
      (id) => clientOf(process.transport({ id }))
    )
    const order = (client: Client.Client) => client.startTask("print", { cards: 5 })
    yield* Effect.forEach(Array.from({ length: 14 }), () => order(ada!))
    yield* Effect.forEach(Array.from({ length: 3 }), () => order(bob!))
    for (let second = 0; second < 12; second++) yield* Effect.andThen(TestClock.adjust("1 second"), settled)
    expect({ most, started }).toEqual({ most: 2, started: 13 })
    for (let second = 0; second < 60; second++) yield* Effect.andThen(TestClock.adjust("1 second"), settled)
    expect({ most, started }).toEqual({ most: 2, started: 17 })

    const admin = Context.getUnsafe(process.context, TaskAdmin)
    const repaired = yield* Latch.make()
    yield* Effect.forkScoped(
      Effect.provideService(repair(repaired.await), TaskAdmin, admin)
    )
    yield* settled
    yield* order(bob!)
    for (let second = 0; second < 5; second++) yield* Effect.andThen(TestClock.adjust("1 second"), settled)
    expect(started).toBe(17)
    yield* repaired.open
    for (let second = 0; second < 5; second++) yield* Effect.andThen(TestClock.adjust("1 second"), settled)
    expect(started).toBe(18)
  }))

it.effect("pages are collected until none changes, and a shop is counted once at a time", () =>
  Effect.gen(function*() {
    const indexed: Array<ReadonlyArray<string>> = []
    const counted: Array<string> = []
    const server = McpServer.layer(
      { name: "shops", version: "1.0.0" },
      Task.layer(index, ({ pages }) => Effect.as(Effect.sync(() => indexed.push(pages)), "indexed")),
      Task.layer(count, ({ shop }) =>
        Step.run("count", {}, () =>
          Effect.andThen(Effect.sync(() => counted.push(shop)), Effect.sleep("5 seconds"))).pipe(Effect.as(shop))),
      Tasks.layer()
    )
    const process = yield* run(server, MemoryTasks.layer())
    const ada = yield* clientOf(process.transport({ id: "ada" }))
    const pass = (seconds: number) =>
      Effect.repeat(Effect.andThen(TestClock.adjust("1 second"), settled), { times: seconds - 1 })
    for (const page of ["a", "b", "c"]) {
      yield* ada.startTask("index", { pages: [page] })
      yield* pass(6)
    }
    expect(indexed).toEqual([])
    yield* pass(5)
    expect(indexed).toEqual([["a", "b", "c"]])

    const first = yield* ada.startTask("count", { shop: "market" })
    const second = yield* ada.startTask("count", { shop: "market" })
    expect(handleOf(first)).toBeDefined()
    expect(handleOf(second)).toEqual(handleOf(first))
    yield* ada.startTask("count", { shop: "harbour" })
    yield* pass(6)
    expect(counted.toSorted()).toEqual(["harbour", "market"])
    const night = Date.parse("2026-12-24T22:00:00Z")
    const handle = yield* Effect.provideContext(countAtNight("castle"), Context.pick(TaskEngine)(process.context))
    yield* pass(10)
    expect(counted).toHaveLength(2)
    const { createdAt, ttlMs } = (yield* handle.status)!
    expect(createdAt + ttlMs!).toBe(night + 86_400_000)
  }))

/** "Limits of a tool" of `tasks-machines.md`. */
import { expect, it } from "@effect/vitest"
import type * as Client from "@skein/client/Client"
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { TestClock } from "effect/testing"
import { print, repair } from "../programs/tasksPaces.ts"
import { clientOf, run, settled } from "./taskKit.ts"

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

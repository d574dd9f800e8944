// #region test
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Bakery } from "./tasks.ts"

/** Ten minutes of the test's clock, and a turn of the event loop, because tasks are stored with real SQL. */
const tenMinutes = Effect.andThen(TestClock.adjust("10 minutes"), Effect.promise(() => new Promise(setImmediate)))

it.effect("the dough rests for two hours", () =>
  Effect.gen(function*() {
    const server = yield* McpServer.McpServer
    const user = Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ sure: true })) })
    const client = yield* Effect.provide(Client.make(InMemoryTransport.transport(server.serve)), user)
    const call = yield* Effect.forkChild(client.callTool("bake", { cakes: 2 }))
    yield* Effect.repeat(tenMinutes, { until: () => call.pollUnsafe() !== undefined })
    expect((yield* Fiber.join(call)).content).toMatchObject([{ text: "2 cakes of spelt, 2 kg" }])
  }).pipe(Effect.provide(Layer.provide(Bakery, MemoryTasks.layer({ pollInterval: "10 minutes" })))))
// #endregion

// #region test
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as TaskTest from "@skein/tasks/TaskTest"
import * as Effect from "effect/Effect"
import { Bakery } from "./tasks.ts"

const user = Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ sure: true })) })
const connect = Effect.flatMap(McpServer.McpServer, ({ serve }) => Client.make(InMemoryTransport.transport(serve)))

it.live("the dough rests for two hours", () =>
  Effect.scoped(Effect.gen(function*() {
    const test = yield* TaskTest.make(Bakery, { startAt: "2026-03-27T06:00:00Z", replayAfterEachEvent: true })
    const client = yield* test.run(Effect.provide(connect, user))
    const task = yield* test.run(client.startTask("bake", { cakes: 2 }))
    yield* test.untilIdle // two hours later, at the question
    const { content } = yield* test.run(task.result)
    expect(content).toMatchObject([{ text: "2 cakes of spelt, 2 kg" }])
  })))
// #endregion

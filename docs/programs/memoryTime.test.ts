import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"

const boil = Tool.layer(Tool.make("boil"), () => Effect.as(Effect.sleep("20 seconds"), "The water boils"))
const Kettle = McpServer.layer({ name: "kettle", version: "1.0.0" }, boil)

it.effect("the water boils after some time", () =>
  Effect.gen(function*() {
    const { serve } = yield* McpServer.McpServer
    const client = yield* Client.make(InMemoryTransport.transport(serve))
    const call = yield* Effect.forkChild(client.callTool("boil"))
    // Not `adjust("20 seconds")` once: the handler does not sleep yet.
    yield* Effect.repeat(TestClock.adjust("1 second"), { until: () => call.pollUnsafe() !== undefined })
    expect((yield* Fiber.join(call)).content).toMatchObject([{ text: "The water boils" }])
  }).pipe(Effect.provide(Kettle)))

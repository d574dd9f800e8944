/** Tests of the task, with a client in the same process and a store in memory. */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { expect, test } from "vitest"
import { makeServer } from "../src/server.ts"

const Server = Layer.provide(makeServer("10 millis"), MemoryTasks.layer({ pollInterval: "100 millis" }))

const answering = (content?: Elicitation.Content) =>
  Elicitation.layer({
    form: () => Effect.succeed(content === undefined ? Elicitation.decline : Elicitation.accept(content))
  })

/** Places an order for a user who answers each question with the same content, or declines. */
const order = (content?: Elicitation.Content) =>
  Effect.gen(function*() {
    const { serve } = yield* McpServer.McpServer
    const client = yield* Client.make(InMemoryTransport.transport(serve))
    return yield* client.callTool("order", { item: "sencha", quantity: 2 })
  }).pipe(Effect.scoped, Effect.provide([Server, answering(content)]), Effect.runPromise)

test("ships an order to the address that the user gives", async () => {
  expect(await order({ address: "1 Tea Street" })).toMatchObject({
    content: [{ text: expect.stringMatching(/^2 of sencha are on their way as parcel-/) }]
  })
})

test("ships nothing without an address", async () => {
  expect(await order()).toMatchObject({
    isError: true,
    content: [{ text: "No address was given, and the reservation is released" }]
  })
})

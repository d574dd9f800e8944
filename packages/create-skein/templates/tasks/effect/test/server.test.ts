/** Tests of the task, with a client in the same process and a store in memory. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeServer } from "../src/server.ts"

// With the real clock: `it.live`.
const Server = Layer.provide(makeServer("10 millis"), MemoryTasks.layer({ pollInterval: "100 millis" }))

/** A client whose user answers each question with the same content, or declines. */
const connect = (content?: Elicitation.Content) =>
  Effect.gen(function*() {
    const { serve } = yield* McpServer.McpServer
    return yield* Client.make(InMemoryTransport.transport(serve))
  }).pipe(Effect.provide(Elicitation.layer({
    form: () => Effect.succeed(content === undefined ? Elicitation.decline : Elicitation.accept(content))
  })))

it.live("ships an order to the address that the user gives", () =>
  Effect.gen(function*() {
    const client = yield* connect({ address: "1 Tea Street" })
    expect(yield* client.callTool("order", { item: "sencha", quantity: 2 })).toMatchObject({
      content: [{ text: expect.stringMatching(/^2 of sencha are on their way as parcel-/) }]
    })
  }).pipe(Effect.provide(Server)))

it.live("ships nothing without an address", () =>
  Effect.gen(function*() {
    const client = yield* connect()
    expect(yield* client.callTool("order", { item: "sencha", quantity: 2 })).toMatchObject({
      isError: true,
      content: [{ text: "No address was given, and the reservation is released" }]
    })
  }).pipe(Effect.provide(Server)))

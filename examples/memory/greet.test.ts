/**
 * Tests a server in memory: without a process or a port, and with Effect's test clock.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as Content from "@skein/server/Content"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

class Greetings extends Context.Service<Greetings, { readonly of: (name: string) => string }>()("Greetings") {}

const greet = Tool.layer(
  Tool.make("greet", { input: { name: Schema.String } }),
  ({ name }) => Effect.map(Greetings, ({ of }) => of(name))
)
const nap = Tool.layer(Tool.make("nap"), () => Effect.as(Effect.sleep("1 hour"), "Good morning!"))

class TooMany extends Data.TaggedError("TooMany")<{ readonly message: string }> {}

const bill = Tool.layer(
  Tool.make("bill", { input: { cups: Schema.Int }, output: { total: Schema.Finite } }),
  ({ cups }) =>
    cups > 12 ? Effect.fail(new TooMany({ message: "at most 12 cups per bill" })) : Effect.succeed({ total: 5 * cups })
)

const Server = McpServer.layer({ name: "hello", version: "1.0.0" }, greet, nap, bill).pipe(
  Layer.provide(Layer.succeed(Greetings, { of: (name) => `Hello, ${name}!` }))
)

describe("a server in memory", () => {
  it.effect("greets", () =>
    Effect.gen(function*() {
      const server = yield* McpServer.McpServer
      const client = yield* Client.make(InMemoryTransport.transport(server.serve))
      const { content } = yield* client.callTool("greet", { name: "Ada" })
      expect(content).toEqual([Content.text("Hello, Ada!")])
    }).pipe(Effect.provide(Server)))

  it.effect("decodes the result with a schema", () =>
    Effect.gen(function*() {
      const server = yield* McpServer.McpServer
      const client = yield* Client.make(InMemoryTransport.transport(server.serve))
      const Total = Schema.Struct({ total: Schema.Finite })
      const total = client.callTool("bill", { cups: 2 }, { output: Total, onProgress: console.log }).pipe(
        Effect.map(({ total }) => `That is ${total}.`),
        Effect.catchReason(
          "ClientError",
          "ToolFailed", // or "Timeout", "Closed", "ProtocolError", …
          ({ message }) => Effect.succeed(`The tool says: ${message}`) // and the result is in `result`
        )
      )
      expect(yield* total).toBe("That is 10.")
      const error = yield* Effect.flip(client.callTool("bill", { cups: 13 }, { output: Total }))
      expect(error).toMatchObject({
        reason: { _tag: "ToolFailed" },
        message: "The tool bill failed: at most 12 cups per bill"
      })
    }).pipe(Effect.provide(Server)))

  it.effect("interrupts the handler of a call that times out", () =>
    Effect.gen(function*() {
      const server = yield* McpServer.McpServer
      const client = yield* Client.make(InMemoryTransport.transport(server.serve))
      const napping = yield* Effect.forkChild(Effect.flip(client.callTool("nap", {}, { timeout: "5 minutes" })))
      yield* TestClock.adjust("5 minutes")
      expect((yield* Fiber.join(napping)).reason._tag).toBe("Timeout")
      yield* TestClock.adjust("1 millis")
      expect((yield* server.inspect).sessions.flatMap(({ requests }) => requests)).toEqual([])
    }).pipe(Effect.provide(Server)))
})

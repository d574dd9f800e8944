/** A Skein server that sends requests as tasks, and a Skein client that runs them. */
import { assert, describe, it } from "@effect/vitest"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Elicit from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Sample from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
// Loaded before the tests, so that no test waits for the import.
import * as Loaded from "../../../server/src/internal/input/legacyTasks/requestInputAsTask.ts"
import * as Sampling from "../../src/Sampling.ts"
import { connect, fork } from "../input/kit.ts"
import * as kit from "./kit.ts"
import { peerOf } from "../support/peer.ts"

const task = { ttl: "3 hours" } as const

const layer = McpServer.layer(
  { name: "asking", version: "1.0.0" },
  Tool.layer(Tool.make("user"), () =>
    Effect.map(
      Elicit.form("Who?", { name: Schema.String }, { task }),
      (answer) => answer.action === "accept" ? `Hello ${answer.content.name}` : answer.action
    )),
  Tool.layer(
    Tool.make("model"),
    () => Effect.map(Sample.createMessage({ messages: "Hi", maxTokens: 10 }, { task }), (answer) => Sample.text(answer))
  )
)

const open = (revision: "2025-06-18" | "2025-11-25" | "2026-07-28", host: kit.Host, taskReceiver?: false) =>
  Effect.gen(function*() {
    assert.isDefined(Loaded.ask)
    const context = yield* Layer.build(layer)
    const { serve } = Context.get(context, McpServer.McpServer)
    return yield* connect(InMemoryTransport.transport(serve), host.layer, { revisions: [revision], taskReceiver })
  })

const text = (result: kit.Json): string => result.content[0].text

describe("2025-11-25", () => {
  it.effect("waits two hours for a user without an open request, with the timeout of the call paused", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const client = yield* open("2025-11-25", host)
      const call = yield* fork(client.callTool("user", {}, { maxTimeout: "3 hours" }))
      yield* kit.turns()
      for (let step = 0; step < 240; step++) yield* kit.pass("30 seconds")
      assert.isUndefined(call.pollUnsafe())
      assert.deepStrictEqual([...peerOf(client).requests], [])
      yield* host.fillIn()
      yield* kit.pass(1000)
      assert.strictEqual(text(yield* Fiber.join(call)), "Hello Ada")
      assert.strictEqual(host.forms.length, 1)
    }))

  it.effect("returns the model's response, or its refusal, to the handler", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const client = yield* open("2025-11-25", host)
      const reported = yield* fork(client.callTool("model"))
      const refused = yield* fork(client.callTool("model"))
      yield* kit.turns()
      yield* host.complete(0, Effect.succeed(kit.textAnswer("Good day")))
      yield* host.complete(1, Effect.fail(new Sampling.SamplingRefused({ message: "Not today" })))
      yield* kit.pass(1000)
      assert.strictEqual(text(yield* Fiber.join(reported)), "Good day")
      const result = yield* Fiber.join(refused)
      assert.isTrue(result.isError)
      assert.include(text(result), "Not today")
    }))

  it.effect("withdraws the request when the call is interrupted", () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const client = yield* open("2025-11-25", host)
      const call = yield* fork(client.callTool("user"))
      yield* kit.turns()
      assert.deepStrictEqual([host.forms.length, host.interrupted], [1, 0])
      yield* Fiber.interrupt(call)
      yield* kit.turns()
      assert.strictEqual(host.interrupted, 1)
    }))
})

for (const [revision, off] of [["2025-06-18", undefined], ["2025-11-25", false], ["2026-07-28", undefined]] as const) {
  it.effect(`${revision}${off === false ? ", and no taskReceiver" : ""} · the same handler sends a request without a task`, () =>
    Effect.gen(function*() {
      const host = new kit.Host()
      const client = yield* open(revision, host, off)
      const call = yield* fork(client.callTool("user"))
      // Sealing the state of a stateless revision takes as long as another thread needs.
      while (host.forms.length === 0) yield* kit.turns()
      yield* host.fillIn()
      assert.strictEqual(text(yield* Fiber.join(call)), "Hello Ada")
    }))
}

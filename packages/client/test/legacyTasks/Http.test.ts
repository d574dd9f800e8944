/** Requests that a Skein server sends as tasks over real sockets. */
import { assert, describe, it } from "@effect/vitest"
import * as Elicit from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as ServerHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { connect } from "../input/kit.ts"
import { until } from "../http/support/connection.ts"
import { bounded } from "../support/fixedBounds.ts"
import * as kit from "./kit.ts"

const server = McpServer.layer(
  { name: "asking", version: "1.0.0" },
  Tool.layer(Tool.make("user"), () =>
    Effect.map(
      Elicit.form("Who?", { name: Schema.String }, { task: { ttl: "1 minute" } }),
      (answer) => answer.action === "accept" ? `Hello ${answer.content.name}` : answer.action
    ))
)

const open = (transport: typeof Http.transport, host: kit.Host) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(Layer.provideMerge(ServerHttp.layer({ port: 0 }), server))
    const { url } = Context.get(context, ServerHttp.Server)
    const connected = connect(transport({ url }), host.layer, { revisions: ["2025-11-25"] })
    return yield* bounded({ suggestedPollInterval: 100 }, connected)
  })

for (const [name, transport] of [["fetch", Http.transport], ["node:http", NodeHttp.transport]] as const) {
  describe(`2025-11-25 · over ${name}`, () => {
    it.live("the server polls until the user has answered", () =>
      Effect.gen(function*() {
        const host = new kit.Host()
        const client = yield* open(transport, host)
        const call = yield* Effect.forkChild(client.callTool("user"), { startImmediately: true })
        yield* until(() => host.forms.length === 1)
        // After a few polls.
        yield* Effect.sleep("350 millis")
        yield* Deferred.succeed(host.forms[0]!, { action: "accept", content: { name: "Ada" } })
        const { content }: kit.Json = yield* Fiber.join(call)
        assert.strictEqual(content[0].text, "Hello Ada")
        assert.strictEqual(host.forms.length, 1)
      }))

    it.live("withdraws the request when the call is interrupted", () =>
      Effect.gen(function*() {
        const host = new kit.Host()
        const client = yield* open(transport, host)
        const call = yield* Effect.forkChild(client.callTool("user"), { startImmediately: true })
        yield* until(() => host.forms.length === 1)
        yield* Fiber.interrupt(call)
        yield* until(() => host.interrupted === 1)
      }))
  })
}

/** Requests whose question a person declined. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as ClientElicitation from "@skein/client/Elicitation"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  it.effect(`${revision} · counts no failure when a person declines`, () =>
    Effect.gen(function*() {
      const asked = Effect.as(Elicitation.accepted(Elicitation.form("Sure?", { sure: Schema.Boolean })), "yes")
      const context = yield* Layer.build(McpServer.layer(
        { name: "s", version: "1" },
        Tool.layer(Tool.make("ask"), () => asked),
        Prompt.layer(Prompt.make("ask"), () => asked),
        Tool.layer(Tool.make("fail"), () => Effect.fail({ message: "no" }))
      ))
      const server = Context.get(context, McpServer.McpServer)
      const client = yield* Client.make(InMemoryTransport.transport(server.serve), { revisions: [revision] }).pipe(
        Effect.provide(ClientElicitation.layer({ form: () => Effect.succeed(ClientElicitation.decline) }))
      )
      expect(yield* client.callTool("ask", {})).toMatchObject({ isError: true })
      yield* Effect.flip(client.getPrompt("ask"))
      yield* client.callTool("fail", {})
      const { tally } = yield* server.inspect
      expect([tally.failures, tally.last.map(({ target }) => target)]).toEqual([1, ["fail"]])
    }))
}

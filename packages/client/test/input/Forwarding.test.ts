/** The features of clients for a proxy: which request a message belongs to, and input requests that it answers itself. */
import { describe, expect, it } from "@effect/vitest"
import * as Method from "@skein/protocol/Method"
import type * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as ServerElicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as WebHttp from "@skein/server/WebHttp"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Http from "../../src/Http.ts"
import { NotificationListener } from "../../src/NotificationListener.ts"

const server = McpServer.layer(
  { name: "asking", version: "1.0.0" },
  Tool.layer(Tool.make("ask"), () =>
    Effect.gen(function*() {
      yield* Effect.logInfo("asking")
      const answer = yield* ServerElicitation.form("Who?", { name: Schema.String }, { key: "who" })
      return answer.action
    }))
)

const build = Layer.build(server)

/** A client whose handlers record the id of the request that they were told. */
const recording = (transport: Transport, revision: Revision.Revision) =>
  Effect.gen(function*() {
    const asked: Array<number | undefined> = []
    const heard: Array<readonly [string, number | undefined]> = []
    const handlers = yield* Layer.build(Elicitation.layer({
      form: ({ server: { requestId } }) =>
        Effect.sync(() => {
          asked.push(requestId)
          return Elicitation.decline
        })
    }))
    const services = Context.add(handlers, NotificationListener, {
      onNotification: ({ method }, requestId) => void heard.push([method, requestId])
    })
    const client = yield* Effect.updateContext(
      Client.make(transport, { revisions: [revision] }),
      (context: Context.Context<Scope.Scope>) => Context.merge(context, services)
    )
    return { asked, heard, client }
  })

describe("the request that a message belongs to", () => {
  it.live("2025-11-25 · is known over HTTP, by the stream of the message", () =>
    Effect.gen(function*() {
      const handler = yield* Effect.provideContext(
        WebHttp.handler({ allowedHosts: ["shop.example"] }),
        Context.merge(yield* build, yield* Effect.context<Scope.Scope>())
      )
      const fetch: typeof globalThis.fetch = (input, init) => handler(new Request(input, init))
      const transport = Http.transport({ url: "https://shop.example/mcp", fetch })
      const { asked, client, heard } = yield* recording(transport, "2025-11-25")
      const ids: Array<number> = []
      yield* client.callTool("ask", {}, { onSend: (id) => ids.push(id) })
      expect(ids).toHaveLength(1)
      expect(asked).toEqual(ids)
      expect(heard).toEqual([["notifications/message", ids[0]]])
    }))

  it.effect("2025-11-25 · is not known in memory", () =>
    Effect.gen(function*() {
      const { serve } = Context.get(yield* build, McpServer.McpServer)
      const { asked, client, heard } = yield* recording(InMemoryTransport.transport(serve), "2025-11-25")
      yield* client.callTool("ask", {})
      expect(asked).toEqual([undefined])
      expect(heard).toEqual([["notifications/message", undefined]])
    }))
})

describe("the option inputRequests", () => {
  it.effect("2026-07-28 · fails with InputRequired, and the caller sends the request again itself", () =>
    Effect.gen(function*() {
      const { serve } = Context.get(yield* build, McpServer.McpServer)
      const { asked, client } = yield* recording(InMemoryTransport.transport(serve), "2026-07-28")
      const failure = yield* Effect.flip(client.callTool("ask", {}, { inputRequests: "fail" }))
      expect(failure.reason._tag).toBe("InputRequired")
      expect(asked).toEqual([])
      if (failure.reason._tag !== "InputRequired") return
      const { inputRequests, requestState } = failure.reason.required
      expect(Object.keys(inputRequests ?? {})).toEqual(["who"])
      const result = yield* client.request(Method.CallTool, {
        name: "ask",
        arguments: {},
        requestState: requestState!,
        inputResponses: { who: { action: "cancel" } }
      }, { inputRequests: "fail" })
      expect(result.content).toEqual([{ type: "text", text: "cancel" }])
    }))
})

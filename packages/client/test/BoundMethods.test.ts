import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Client from "../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const everything = ScriptedServer.handshake("2025-11-25", ({ method, params }) => {
  switch (method) {
    case "tools/list":
      return ScriptedServer.success({ tools: [{ name: "t", inputSchema: { type: "object" } }] })
    case "tools/call":
      return ScriptedServer.success({ content: [{ type: "text", text: String(params?.["name"]) }] })
    default:
      return ScriptedServer.success({})
  }
})

describe("a client method that is read into a variable", () => {
  it.effect("works without its client, and is the same function at each read", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(ScriptedServer.make(everything).transport)
      const { listTools, callTool, listToolsPage, ping, request, setLoggingLevel } = client
      assert.strictEqual(callTool, client.callTool)
      yield* ping()
      yield* setLoggingLevel("error")
      assert.strictEqual((yield* listToolsPage()).tools.length, 1)
      assert.strictEqual((yield* listTools()).length, 1)
      assert.isFunction(request)
      const called = yield* Effect.flatMap(Effect.succeed("a"), callTool)
      assert.deepStrictEqual(called.content, [{ type: "text", text: "a" }])
    }))

  it.effect("belongs to the client that it was read from", () =>
    Effect.gen(function*() {
      const one = ScriptedServer.make(everything)
      const other = ScriptedServer.make(everything)
      const { callTool } = yield* Client.make(one.transport)
      const second = yield* Client.make(other.transport)
      yield* callTool("a")
      yield* second.callTool("b")
      yield* second.callTool("c")
      assert.strictEqual(one.requests("tools/call").length, 1)
      assert.strictEqual(other.requests("tools/call").length, 2)
    }))
})

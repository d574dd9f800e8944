import { assert, describe, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Client from "../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const json = (text: string): JsonObject => JSON.parse(text)

interface Nested extends ReadonlyArray<Nested> {}
const Nested = Schema.Array(Schema.suspend((): Schema.Codec<Nested> => Nested))

describe("a hostile response", () => {
  it.effect("fails with NegotiationFailed for versions that are not strings and cannot be converted to one", () =>
    Effect.gen(function*() {
      const versions = "[{\"toString\":1},{\"valueOf\":{},\"toString\":[]},null,7,\"1900-01-01\"]"
      const server = ScriptedServer.make(() =>
        ScriptedServer.success(json(`{"supportedVersions":${versions},"capabilities":{}}`))
      )
      const error = yield* Effect.flip(Client.make(server.transport))
      assert.strictEqual(error.reason._tag, "NegotiationFailed")
      assert.include(error.message, "supports null, null, null, null, \"1900-01-01\"")
    }))

  it.effect("fails with InvalidResponse for JSON nested too deeply for a recursive schema", () =>
    Effect.gen(function*() {
      const depth = 100_000
      const content = [{ type: "text", text: `{"list":${"[".repeat(depth)}${"]".repeat(depth)}}` }]
      const client = yield* Client.make(
        ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => ScriptedServer.success({ content }))).transport
      )
      const error = yield* Effect.flip(client.callTool("deep", {}, { output: Schema.Struct({ list: Nested }) }))
      assert.strictEqual(error.reason._tag, "InvalidResponse")
      assert.instanceOf(error.cause, RangeError)
    }))

  it.effect("is not blamed for a defect of the output schema: the call dies with the defect", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(
        ScriptedServer.make(
          ScriptedServer.handshake("2025-11-25", () => ScriptedServer.success({ content: [], structuredContent: {} }))
        ).transport
      )
      const broken = Schema.Struct({}).check(Schema.makeFilter(() => {
        throw new Error("a fault of the host")
      }))
      const exit = yield* Effect.exit(client.callTool("any", {}, { output: broken }))
      assert.include(String(exit), "a fault of the host")
      assert.include(String(exit), "Die")
    }))
})

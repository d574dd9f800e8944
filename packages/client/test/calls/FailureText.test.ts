/** Error texts of a server within the messages of client errors. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { fieldsOf } from "../support/fields.ts"

const saying = (message: string) =>
  Client.make(
    ScriptedServer.make(ScriptedServer.handshake("2025-11-25", ({ method }) =>
      method === "tools/call"
        ? ScriptedServer.success({ isError: true, content: [{ type: "text", text: message }] })
        : ScriptedServer.failure(-32_603, message)))
      .transport,
    { revisions: ["2025-11-25"] }
  )

describe("the error text of a server", () => {
  it.effect("is shortened in the message of the error, and complete in `error`", () =>
    Effect.gen(function*() {
      const long = "x".repeat(1_000_000)
      const client = yield* saying(long)
      const error = yield* Effect.flip(client.listToolsPage())
      assert.strictEqual(error.message, `tools/list: ${"x".repeat(4_096)}…`)
      assert.strictEqual(fieldsOf(error).error?.message, long)
      const failed = yield* Effect.flip(client.callTool("t", {}, { output: Schema.Struct({ a: Schema.String }) }))
      assert.strictEqual(failed.message, `The tool t failed: ${"x".repeat(1_024)}…`)
    }))

  it.effect("keeps its lines and tabs in the message, without terminal control sequences", () =>
    Effect.gen(function*() {
      const message = "No:\r\n\tnot\u001b[2J this\u0007\u202e one\rno"
      const error = yield* Effect.flip((yield* saying(message)).listToolsPage())
      assert.strictEqual(error.message, "tools/list: No:\n\tnot\\u{1b}[2J this\\u{7}\\u{202e} one\\u{d}no")
      // The error itself is logged with its cause.
      assert.strictEqual(fieldsOf(error).error?.message, "No:\n\tnot\\u{1b}[2J this\\u{7}\\u{202e} one\\u{d}no")
    }))

  it.effect("is shortened in the message of a failed negotiation", () =>
    Effect.gen(function*() {
      const { transport } = ScriptedServer.make(() => ScriptedServer.failure(-32_603, "x".repeat(1_000_000)))
      const shortened = `${"x".repeat(4_096)}…`
      const session = yield* Effect.flip(Client.make(transport, { revisions: ["2025-11-25"] }))
      assert.strictEqual(session.message, `The server refused to initialize: ${shortened}`)
      const stateless = yield* Effect.flip(Client.make(transport, { revisions: ["2026-07-28"] }))
      assert.strictEqual(stateless.message, `The server does not support "2026-07-28": ${shortened}`)
    }))
})

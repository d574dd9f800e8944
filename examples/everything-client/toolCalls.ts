/**
 * The tool calls that the suite requests: `toolCalls` in the environment variable `MCP_CONFORMANCE_CONTEXT`.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Context = Schema.fromJsonString(Schema.Struct({
  toolCalls: Schema.Array(Schema.Struct({
    name: Schema.String,
    arguments: Schema.Record(Schema.String, Schema.Json)
  }))
}))

export const toolCalls = Effect.map(
  Effect.suspend(() => Schema.decodeUnknownEffect(Context)(process.env["MCP_CONFORMANCE_CONTEXT"])),
  ({ toolCalls }) => toolCalls
)

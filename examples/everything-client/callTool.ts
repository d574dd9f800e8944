/**
 * Calls a tool, and fails if the result is a tool error.
 */
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

/** The result has `isError`. The client does not fail in that case, since a host passes the result on to its model. */
export class ToolFailed extends Data.TaggedError("ToolFailed")<{ readonly message: string }> {}

export const callTool = (
  client: Client.Client,
  name: string,
  args: object = {}
): Effect.Effect<CallToolResult, ClientError | ToolFailed> =>
  Effect.flatMap(
    client.callTool(name, args),
    (result) =>
      result.isError === true
        ? Effect.fail(new ToolFailed({ message: `${name}: ${JSON.stringify(result.content)}` }))
        : Effect.succeed(result)
  )

/**
 * Calls a tool that has to succeed.
 */
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

/** A tool ran and failed. A host would show this to its model, which is why it is no error of the client. */
export class ToolFailed extends Data.TaggedError("ToolFailed")<{ readonly message: string }> {}

export const succeeds = (
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

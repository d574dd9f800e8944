/**
 * Validates the structured content of a tool's result against the tool's `outputSchema`.
 */
import type { CallToolRequestParams, CallToolResult } from "@skein/protocol/CallTool"
import * as Json from "@skein/protocol/Json"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import { quote } from "@skein/protocol/Text"
import { ClientError, InvalidResponse } from "../../ClientError.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { CallLayer, ClientContext } from "./context.ts"
import { onResponse } from "./onResponse.ts"
import { remainingTime, type RequestOptions } from "../base/callOptions.ts"

/** The failure of a call whose structured content has an integer that was rounded. `raw` is the result as it was read. */
export const roundedInteger = (
  name: string,
  raw: object,
  result: CallToolResult,
  options: Pick<RequestOptions, "roundedIntegers">
): ClientError | undefined => {
  const found = options.roundedIntegers === "keep" ? undefined : Json.integerIn(raw, "structuredContent")
  if (found === undefined) return undefined
  const message = `The result of the tool ${quote(name)} cannot be read exactly: ${found.path} is ${found.text}, an ` +
    "integer beyond 2^53"
  return new ClientError({ reason: new InvalidResponse({ message, result }), method: Method.CallTool.name })
}

/**
 * Validates a result. If it does not match the schema that the tool was last listed with, which may be long ago, the
 * tools are listed again first, within the time of one more request. Returns `undefined` if there is nothing to
 * validate.
 */
export const checkToolResult = (
  client: ClientContext,
  connection: NegotiatedConnection,
  name: string,
  result: CallToolResult,
  options: Pick<RequestOptions, "timeout" | "maxTimeout">,
  startedAt: number
): Effect.Effect<CallToolResult, ClientError> | undefined => {
  const { supervisor, toolCatalog } = client
  const check = toolCatalog.check(connection, name, result)
  if (check === undefined) return undefined
  const again = Effect.suspend(() => toolCatalog.check(connection, name, result) ?? Effect.succeed(result))
  return Effect.catchIf(check, () => toolCatalog.doubt(name), () => {
    const { timeout } = remainingTime(supervisor.timeouts, options, 0)
    const { maxTimeout } = remainingTime(supervisor.timeouts, options, supervisor.now() - startedAt)
    return Effect.andThen(client.toolListRefresh.within({ timeout, maxTimeout }), again)
  })
}

/**
 * Validates the result of a tool that was listed with an `outputSchema`. "Clients SHOULD validate structured results
 * against this schema."
 */
export const validateOutput: CallLayer = onResponse(({ client, method, options, params }, response) => {
  const { answer, connection, raw, startedAt } = response
  if (method.name !== Method.CallTool.name || answer?._tag !== "Complete") return undefined
  const { name } = params as CallToolRequestParams
  const rounded = roundedInteger(name, raw, answer.result as CallToolResult, options)
  if (rounded !== undefined) return Effect.fail(rounded)
  const checked = checkToolResult(client, connection, name, answer.result as CallToolResult, options, startedAt)
  return checked === undefined ? undefined : Effect.as(checked, response)
})

/**
 * Decodes the response to a call, and stores it in the cache.
 */
import * as Codec from "@skein/protocol/Codec"
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { ListToolsResult } from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type ClientError, InvalidResponse } from "../../ClientError.ts"
import { clientError } from "../base/errors.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { CallLayer, ClientContext } from "./context.ts"
import { withSafeIcons } from "../base/icons.ts"
import { onResponse } from "./onResponse.ts"
import { responseOf } from "./send.ts"

/** A problem without the positions in lists, so that it is the same for each item. */
const generalized = (problem: string): string => problem.replace(/\[\d+\]/g, "[]")

/**
 * Decodes a result. Malformed optional members and malformed items of lists are left out, with a warning the first time.
 */
const decode = <R>(
  method: Method.RequestMethod<unknown, R>,
  client: ClientContext,
  { revision }: NegotiatedConnection,
  raw: JsonObject
) => {
  const ignored: Array<string> = []
  const decoded = Codec.decodeAnswer(method, revision, raw, ignored)
  if (ignored.length > 0 && Result.isSuccess(decoded)) {
    const key = `${method.name} ${generalized(ignored[0]!)}`
    client.warnOnce(key, `${method.name}: malformed parts of the response were left out`, ignored.slice(0, 8))
  }
  return decoded
}

/** Decodes the response: a result, a task in its place, or input requests. */
export const readResponse: CallLayer = onResponse(({ client, method, rounds }, response) => {
  const { augmented, connection, raw } = response
  const decoded = decode(method, client, connection, raw)
  const isTask = Result.isSuccess(decoded) && decoded.success._tag === "LegacyTask"
  if (augmented !== undefined && !isTask) client.tasks.dismiss(augmented.reports)
  if (Result.isFailure(decoded)) {
    const message = `The response to ${method.name} is not valid: ${decoded.failure}`
    return Effect.fail(clientError(InvalidResponse, message, method.name))
  }
  const answer = response.answer = decoded.success
  if (answer._tag === "Complete") {
    response.result = withSafeIcons(method.name, answer.result, client)
    // A result that depends on input of the user is not cached.
    response.keep = connection.isStateless && rounds === 0
  }
  return undefined
})

/** Decodes the result of a tool that was not the response to its call. */
export const readToolResult = (
  client: ClientContext,
  connection: NegotiatedConnection,
  raw: JsonObject
): Result.Result<CallToolResult, ClientError> => {
  const { name } = Method.CallTool
  const decoded = decode(Method.CallTool, client, connection, raw)
  if (Result.isSuccess(decoded) && decoded.success._tag === "Complete") {
    return Result.succeed(withSafeIcons(name, decoded.success.result, client))
  }
  const why = Result.isFailure(decoded) ? decoded.failure : "it is not the result of a tool call"
  return Result.fail(clientError(InvalidResponse, `The result of the task is not valid: ${why}`, name))
}

/**
 * Answers from the cache, and stores responses that may be stored (2026-07-28, caching). Stores the definitions of
 * listed tools in the catalog.
 */
export const cacheResponses: CallLayer = (next) => (call) => {
  const { client, connection, method, options, params, startedAt } = call
  const isToolList = method.name === Method.ListTools.name
  const readResult = <R>(result: R): R =>
    isToolList
      ? client.toolCatalog.read(client.supervisor.last, result as ListToolsResult) as R
      : result
  // Only results of the stateless revision have a time for which they may be cached.
  const mode = method.cacheable && connection.isStateless ? options.cache ?? "use" : "bypass"
  if (mode !== "bypass") {
    return Effect.map(
      client.cache.through(method, params, mode, next(call), readResult),
      (result) => responseOf(connection, startedAt, {}, result)
    )
  }
  if (!isToolList) return next(call)
  return Effect.map(next(call), (response) => {
    response.result = readResult(response.result)
    return response
  })
}

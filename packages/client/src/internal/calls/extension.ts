/**
 * Declares an extension for one request, in addition to those that each request of the client declares: "the client
 * signals support by including the extension in its per-request capabilities" (the extension
 * `io.modelcontextprotocol/tasks`).
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import type { NegotiatedConnection } from "../connection/connection.ts"

const memberOf = (value: unknown, key: string): JsonObject => {
  const member = isObject(value) ? value[key] : undefined
  return isObject(member) ? member : {}
}

/**
 * Returns parameters that declare an extension, without settings, in the stateless revision. Members that the caller
 * has set in `_meta` are retained.
 */
export const declaring = (connection: NegotiatedConnection, extension: string, params: JsonObject): JsonObject => {
  const meta = memberOf(connection.stamp(params), "_meta")
  const capabilities = memberOf(meta, RequestMeta.clientCapabilities)
  const extensions = { ...memberOf(capabilities, "extensions"), [extension]: {} }
  return { ...params, _meta: { ...meta, [RequestMeta.clientCapabilities]: { ...capabilities, extensions } } }
}

/**
 * What is said of a handler's failure.
 */
import * as McpError from "@skein/protocol/McpError"
import type { HandlerError } from "../HandlerError.ts"

/** What an error says of itself: its message, or its tag or name where it has none. */
export const describe = (error: HandlerError & { readonly _tag?: unknown; readonly name?: unknown }): string =>
  error.message || String(error._tag ?? error.name ?? "Error")

/** The JSON-RPC error of a handler that has no other way to fail: `-32603` with its message, or the `McpError` itself. */
export const toMcpError = (error: HandlerError): McpError.McpError =>
  McpError.isMcpError(error) ? error : new McpError.McpError({ reason: "InternalError", message: describe(error) })

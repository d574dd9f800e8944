/**
 * What a handler may fail with.
 */
import * as McpError from "@skein/protocol/McpError"

/**
 * Anything that says what went wrong in a `message`: every tagged error of Effect does. The message is meant for the other
 * side, so keep secrets out of it; what is not meant for it is a defect (`Effect.orDie`). An `McpError` is a JSON-RPC error
 * with its own code.
 */
export interface HandlerError {
  readonly message: string
}

/** What an error says of itself: its message, or its tag or name where it has none. */
export const describe = (error: HandlerError & { readonly _tag?: unknown; readonly name?: unknown }): string =>
  error.message || String(error._tag ?? error.name ?? "Error")

/** The JSON-RPC error of a handler that has no other way to fail: `-32603` with its message, or the `McpError` itself. */
export const toMcpError = (error: HandlerError): McpError.McpError =>
  McpError.isMcpError(error) ? error : new McpError.McpError({ reason: "InternalError", message: describe(error) })

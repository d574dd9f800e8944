/**
 * What is said of a handler's failure.
 */
import * as McpError from "@skein/protocol/McpError"
import { InputError } from "../../InputError.ts"
import type { HandlerError } from "../../HandlerError.ts"

/** What an error says of itself: its message, or its tag or name where it has none. */
export const messageOf = (error: HandlerError & { readonly _tag?: unknown; readonly name?: unknown }): string =>
  error.message || String(error._tag ?? error.name ?? "Error")

/** The JSON-RPC error that a failure is; `undefined` for one that is none. */
const faultOf = (error: HandlerError): McpError.McpError | undefined =>
  McpError.isMcpError(error) ? error : error instanceof InputError ? error.fault : undefined

/** The JSON-RPC error of a handler that has no other way to fail: `-32603` with its message, or the one that the failure is. */
export const toMcpError = (error: HandlerError): McpError.McpError =>
  faultOf(error) ?? new McpError.McpError({ reason: "InternalError", message: messageOf(error) })

/** The JSON-RPC error of a tool, which has another way to fail; `undefined` where its result says it. */
export const toolFault = (error: HandlerError): McpError.McpError | undefined =>
  error instanceof InputError && !error.isProtocolFault ? undefined : faultOf(error)

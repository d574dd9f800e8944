/**
 * The current request: its method and params, its caller and revision, and the headers of an HTTP request.
 *
 * Every handler and every completion has this service without providing it. Middleware receives the same value as an
 * argument.
 *
 * @example
 * const agent = Effect.map(McpRequest, ({ origin }) => origin?.header?.("user-agent"))
 */
export { type Caller, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"

/**
 * The request that is being handled: its method and params, who asks and in which revision, and the headers, where HTTP brought it.
 *
 * Every handler and every completion has it, and nobody has to provide it. Middleware is called with it: an `RequestContext`.
 *
 * @example
 * const agent = Effect.map(McpRequest, ({ origin }) => origin?.header?.("user-agent"))
 */
export { type Caller, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"

/**
 * Clients of the Model Context Protocol in async functions.
 *
 * @example
 * const client = await AsyncClient.connect("https://mcp.example.com/mcp")
 * const { content } = await client.callTool("greet", { name: "Ada" })
 * await client.close()
 */
export type { Transport } from "./internal/base/definition.ts"
export type { McpError, McpErrorReason } from "./internal/base/errors.ts"
export type { Credentials } from "./internal/base/http.ts"
export type { LogFields, Logger, LogLevel } from "./internal/base/logger.ts"
export type * from "./internal/base/messages.ts"
export type { ObservedClient } from "./internal/base/observed.ts"
export type { ClientTelemetry, OpenTelemetryApi } from "./internal/base/openTelemetry.ts"
export type { Awaitable, Duration, InputOf, OutputOf, StandardSchema } from "./internal/base/types.ts"
export { AsyncClient, type Server } from "./internal/client/asyncClient.ts"
export * from "./internal/client/asyncClientPool.ts"
export type * from "./internal/client/calls.ts"
export type * from "./internal/client/changes.ts"
export type { CallTool, ClientMethods } from "./internal/client/clientMethods.ts"
export * from "./internal/client/credentials.ts"
export * from "./internal/client/errors.ts"
export type * from "./internal/client/forms.ts"
export type * from "./internal/client/handlers.ts"
export {
  type Call,
  type ClientMiddleware,
  deny,
  isToolCall,
  middleware,
  type ToolCall
} from "./internal/client/middleware.ts"
export * from "./internal/client/nodeConfig.ts"
export type * from "./internal/client/options.ts"
export * from "./internal/client/responseCache.ts"
export type * from "./internal/client/results.ts"
export * from "./internal/client/serverConfig.ts"
export * from "./internal/client/stdio.ts"
export * from "./internal/client/toolkit.ts"
export * from "./internal/client/transports.ts"
export * from "./internal/client/uriTemplate.ts"

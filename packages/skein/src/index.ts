/**
 * Servers of the Model Context Protocol in async functions.
 *
 * @example
 * new AsyncServer({ name: "shop", version: "1.0.0" })
 *   .tool("price", { input: z.object({ tea: z.string() }) }, async ({ tea }) => priceOf(tea))
 *   .runStdio()
 */
export type { Definition, Service, Transport } from "./internal/base/definition.ts"
export * from "./internal/base/errors.ts"
export type { Principal, Protection } from "./internal/base/http.ts"
export type * from "./internal/base/messages.ts"
export type { LogFields, Logger, LogLevel } from "./internal/base/logger.ts"
export type * from "./internal/base/openTelemetry.ts"
export type { Awaitable, Duration, InputOf, JsonSchema, OutputOf, StandardSchema } from "./internal/base/types.ts"
export { AsyncServer, type Listening } from "./internal/server/asyncServer.ts"
export * from "./internal/server/completion.ts"
export * from "./internal/server/composition.ts"
export * from "./internal/server/content.ts"
export type { RouteHandler } from "./internal/server/coreHttp.ts"
export type * from "./internal/server/handlerContext.ts"
export * from "./internal/server/httpConfig.ts"
export type * from "./internal/server/httpOptions.ts"
export * from "./internal/server/limits.ts"
export * from "./internal/server/middleware.ts"
export type * from "./internal/server/options.ts"
export * from "./internal/server/prompt.ts"
export type * from "./internal/server/request.ts"
export * from "./internal/server/resource.ts"
export * from "./internal/server/results.ts"
export * from "./internal/server/sampling.ts"
export * from "./internal/server/schema.ts"
export * from "./internal/server/services.ts"
export * from "./internal/server/state.ts"
export * from "./internal/server/tool.ts"
export * from "./internal/server/toolAnswer.ts"

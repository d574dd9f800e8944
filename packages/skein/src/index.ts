/**
 * Servers of the Model Context Protocol in async functions.
 */
export type { Definition } from "./internal/base/definition.ts"
export type * from "./internal/base/messages.ts"
export type { Awaitable, Duration, InputOf, JsonSchema, OutputOf, StandardSchema } from "./internal/base/types.ts"

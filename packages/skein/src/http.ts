/**
 * Servers inside of HTTP applications: `node:http`, web standards, Express, Fastify and Hono.
 *
 * @example
 * const { close, handler } = await nodeHandler(server, { allowedHosts: ["mcp.example.com"] })
 * createServer(handler).listen(3000)
 */
export type { Transport } from "./internal/base/definition.ts"
export type { Principal, Protection } from "./internal/base/http.ts"
export type { Duration } from "./internal/base/types.ts"
export * from "./internal/http/bridge.ts"
export * from "./internal/http/handlers.ts"
export * from "./internal/http/webhook.ts"
export type { AsyncServer, Listening } from "./internal/server/asyncServer.ts"
export type * from "./internal/server/httpOptions.ts"

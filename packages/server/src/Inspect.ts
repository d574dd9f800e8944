/**
 * Snapshots of a running server, as `McpServer.inspect` returns them.
 *
 * @example
 * const busy = Effect.map(Effect.flatMap(McpServer.McpServer, ({ inspect }) => inspect), ({ requests }) => requests.length)
 */
export type { ServerInfo } from "@skein/runtime/Inspect"

/**
 * Snapshots of a running server, as `McpServer.inspect` returns them.
 *
 * @example
 * const busy = Effect.flatMap(McpServer.McpServer, ({ inspect }) =>
 *   Effect.map(inspect, ({ requests }) => requests.length))
 */
export type { ServerInfo } from "@skein/runtime/Inspect"

/**
 * Connections: the interface between a server and a transport of your own.
 *
 * @example
 * const serve = (connection: Connection.Connection) =>
 *   Effect.flatMap(McpServer.McpServer, (server) => server.serve(connection))
 */
export type { Connection, Origin } from "@skein/runtime/Connection"

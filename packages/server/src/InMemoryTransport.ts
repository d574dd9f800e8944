/**
 * A transport between a server and a client in one process, for tests and for applications that include their own
 * servers.
 *
 * @example
 * const server = yield* McpServer.McpServer
 * const client = yield* Client.make(InMemoryTransport.transport(server.serve))
 */
export * from "@skein/runtime/InMemoryTransport"

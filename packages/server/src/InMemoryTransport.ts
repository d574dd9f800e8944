/**
 * A server and a client in one process, with nothing between them: for tests, and for a host that brings its own servers.
 *
 * @example
 * const server = yield* McpServer.McpServer
 * const client = yield* Client.make(InMemoryTransport.transport(server.serve))
 */
export * from "@skein/runtime/InMemoryTransport"

/**
 * Connections: the interface between a server and a transport of your own, and the error of the transports of this
 * package.
 *
 * @example
 * const http = NodeHttp.layer({ port: 3000 }).pipe(
 *   Layer.catchTag("TransportError", ({ message }) => Layer.effectDiscard(Effect.logError(message)))
 * )
 */
export { type Connection, type Origin, TransportError } from "@skein/runtime/Connection"

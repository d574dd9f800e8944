/**
 * The failure of a transport of this package, such as a port that is in use.
 *
 * @example
 * const http = NodeHttp.layer({ port: 3000 }).pipe(
 *   Layer.catchTag("TransportError", ({ message }) => Layer.effectDiscard(Effect.logError(message)))
 * )
 */
export { ConnectionLost, MessageRejected, OpenFailed, type Reason, TransportError } from "@skein/runtime/TransportError"

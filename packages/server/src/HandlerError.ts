/**
 * What a handler may fail with.
 */

/**
 * Anything that says what went wrong in a `message`: every tagged error of Effect does. The message is meant for the other
 * side, so keep secrets out of it; what is not meant for it is a defect (`Effect.orDie`). An `McpError` is a JSON-RPC error
 * with its own code.
 */
export interface HandlerError {
  readonly message: string
}

/**
 * The failures that handlers may have.
 */

/**
 * Any value with a `message`, as every tagged error of Effect has. The client, or its model, receives the message, so
 * do not put secrets into it. Turn a failure that the client must not see into a defect with `Effect.orDie`. An
 * `McpError` becomes a JSON-RPC error with its own code.
 *
 * @example
 * class SoldOut extends Data.TaggedError("SoldOut")<{ readonly message: string }> {}
 * const order = Tool.layer(Tool.make("order"), () =>
 *   Effect.fail(new SoldOut({ message: "No tea is left today. Ask again tomorrow" })))
 */
export interface HandlerError {
  readonly message: string
}

/**
 * An error of an async handler (`Tool.async`) whose message the client, or its model, receives. Write it as an
 * instruction that a model can act on. The messages of other errors may contain secrets, and stay in the log.
 *
 * @example
 * const order = Tool.async(Tool.make("order"), async () => {
 *   if (await isSoldOut()) throw new VisibleError("No tea is left today. Ask again tomorrow")
 *   return "Ordered"
 * })
 */
export class VisibleError extends Error {
  override readonly name = "VisibleError"
}

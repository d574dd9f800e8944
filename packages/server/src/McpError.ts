/**
 * Errors of the protocol, for handlers and middleware that answer with a JSON-RPC error, and its code, and not with text for a model.
 *
 * @example
 * const tea = Tool.layer(Tool.make("tea", { input: { name: Schema.String } }), ({ name }) =>
 *   name === "" ? Effect.fail(McpError.invalidParams("A tea has a name")) : Effect.succeed(`One ${name}`))
 */
export * from "@skein/protocol/McpError"

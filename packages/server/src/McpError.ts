/**
 * Errors of the protocol: JSON-RPC errors with a code, for handlers and middleware. A plain failure of a tool becomes
 * text for the model instead.
 *
 * @example
 * const tea = Tool.layer(Tool.make("tea", { input: { name: Schema.String } }), ({ name }) =>
 *   name === "" ? Effect.fail(McpError.invalidParams("name must not be empty")) : Effect.succeed(`One ${name}`))
 */
export * from "@skein/protocol/McpError"

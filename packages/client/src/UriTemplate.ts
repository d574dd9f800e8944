/**
 * URI templates (RFC 6570): parsing, expansion and matching, for the resource templates of servers.
 *
 * @example
 * const template = Result.getOrThrow(UriTemplate.make("notes://{id}"))
 * yield* client.readResource(UriTemplate.expand(template, { id: "42" }))
 */
export * from "@skein/protocol/UriTemplate"

/**
 * The revisions of the protocol and their lifecycles.
 *
 * @example
 * McpServer.layer({ name: "modern", version: "1.0.0", revisions: [Revision.latest] }, tools)
 */
export * from "@skein/protocol/Revision"

/**
 * The limits of each connection: requests in progress, queued requests, and pending requests to the client.
 *
 * @example
 * McpServer.layer({ name: "small", version: "1.0.0", limits: { maxInFlightRequests: 8 } }, tools)
 */
export type { Limits } from "@skein/runtime/Limits"

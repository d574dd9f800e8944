/**
 * The HTTP+SSE transport of 2024-11-05, for clients that support no other: a stream to receive messages, and a path to
 * post them to.
 *
 * It is an option of an endpoint beside Streamable HTTP, with the same checks, bounds and sessions. It is disabled by
 * default.
 *
 * @example
 * NodeHttp.runMain(server, { legacySse: LegacySse.make() })
 */
import type { LegacySse } from "./internal/http/access/options.ts"

export type { LegacySse }

/** The paths of the transport, and how lenient it is. */
export interface Options {
  /** The path of the stream, which users configure in their clients: `/sse` by default. */
  readonly path?: string | undefined
  /** The path that clients post to: `/messages` by default. Clients receive it on the stream. */
  readonly messages?: string | undefined
  /**
   * Whether a client that sends requests on a new stream without `initialize` is served as if it had initialized a
   * session before: on by default. Some clients (the official TypeScript SDK v1 is one) do that after their stream broke,
   * and every later call of theirs would fail. The session has the revision of the `MCP-Protocol-Version` header, if
   * the server supports it, or else the oldest session-based revision of the server. The capabilities of the client are
   * unknown, so the server requests no input. When off, such requests are refused with `-32602`.
   */
  readonly assumeInitialized?: boolean | undefined
}

/**
 * Enables the transport. A session starts and ends with its stream; requests in progress are interrupted at its end.
 * The session counts against the endpoint's `maxSessions` and `maxStreams`, and belongs to the principal that opened
 * it. It is closed if more than 1 Mi characters wait for its client.
 *
 * @example
 * NodeHttp.layer({ legacySse: LegacySse.make({ path: "/legacy/sse", messages: "/legacy/messages" }) })
 */
export const make = (
  { assumeInitialized = true, messages = "/messages", path = "/sse" }: Options = {}
): LegacySse => ({ path, messages, assumeInitialized })

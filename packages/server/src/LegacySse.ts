/**
 * The HTTP+SSE transport of 2024-11-05, for clients that know no other: a stream to listen to, and a path to post to.
 *
 * An option of an endpoint, beside Streamable HTTP: the same guards, bounds and sessions. Off unless it is given.
 *
 * @example
 * NodeHttp.runMain(server, { legacySse: LegacySse.make() })
 */
import type { LegacySse } from "./internal/http/options.ts"

export type { LegacySse }

/** Where the transport is. Every member is optional. */
export interface Options {
  /** The path of the stream, which is the address that a client is given: `/sse` by default. */
  readonly path?: string | undefined
  /** The path that clients post to; the stream tells them: `/messages` by default. */
  readonly messages?: string | undefined
}

/**
 * Serves the transport. A session begins with its stream and ends with it: what runs then is interrupted. It counts as one of the
 * endpoint's sessions and as one of its open streams, and belongs to the principal that opened it. A client that lets more than
 * `maxUnsentChars` characters wait loses it.
 */
export const make = (options: Options = {}): LegacySse => ({
  path: options.path ?? "/sse",
  messages: options.messages ?? "/messages"
})

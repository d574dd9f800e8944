/**
 * Reading a server's versions and capabilities without a handshake: `server/discover`, since 2026-07-28.
 */
import * as Schema from "effect/Schema"
import { cacheFields } from "./Caching.ts"
import { ServerCapabilities } from "./Capabilities.ts"
import { resultFields } from "./Message.ts"

/** The result of `server/discover`. */
export class DiscoverResult extends Schema.Opaque<DiscoverResult>()(Schema.Struct({
  ...resultFields,
  ...cacheFields,
  /** The revisions of the server, as any strings: some may be unknown to this library. */
  supportedVersions: Schema.Array(Schema.String),
  capabilities: ServerCapabilities,
  /** How to use the server, as text for a language model. */
  instructions: Schema.optionalKey(Schema.String)
})) {}

/**
 * What a server is, without a handshake: `server/discover`, since 2026-07-28.
 */
import * as Schema from "effect/Schema"
import { ServerCapabilities } from "./Capabilities.ts"
import { cacheFields, resultFields } from "./Common.ts"

/** The answer to `server/discover`. */
export class DiscoverResult extends Schema.Opaque<DiscoverResult>()(Schema.Struct({
  ...resultFields,
  ...cacheFields,
  /** Any string can come: a server may speak revisions that are not known here. */
  supportedVersions: Schema.Array(Schema.String),
  capabilities: ServerCapabilities,
  /** How to use the server, for a language model. */
  instructions: Schema.optionalKey(Schema.String)
})) {}

/**
 * The handshake of the session-based revisions: `initialize`, then `notifications/initialized`. `Introduction` reads and
 * writes it without these schemas.
 */
import * as Schema from "effect/Schema"
import { ClientCapabilities, ServerCapabilities } from "./Capabilities.ts"
import { Implementation } from "./Implementation.ts"
import { Meta, requestFields } from "./Message.ts"

/** The params of `initialize`. */
export class InitializeRequestParams extends Schema.Opaque<InitializeRequestParams>()(Schema.Struct({
  ...requestFields,
  /** The newest revision that the client supports, as any string: it may be unknown to this library. */
  protocolVersion: Schema.String,
  capabilities: ClientCapabilities,
  clientInfo: Implementation
})) {}

/** The result of `initialize`. */
export class InitializeResult extends Schema.Opaque<InitializeResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  /** The revision of the session. */
  protocolVersion: Schema.String,
  capabilities: ServerCapabilities,
  serverInfo: Implementation,
  /** How to use the server, as text for a language model. */
  instructions: Schema.optionalKey(Schema.String)
})) {}

/**
 * The handshake of the session era: `initialize`, then `notifications/initialized`.
 */
import * as Schema from "effect/Schema"
import { ClientCapabilities, ServerCapabilities } from "./Capabilities.ts"
import { Implementation, Meta, requestFields } from "./Common.ts"

/** The params of `initialize`. */
export class InitializeRequestParams extends Schema.Opaque<InitializeRequestParams>()(Schema.Struct({
  ...requestFields,
  /** The newest revision that the client would like to speak. Any string can come. */
  protocolVersion: Schema.String,
  capabilities: ClientCapabilities,
  clientInfo: Implementation
})) {}

/** The answer to `initialize`. */
export class InitializeResult extends Schema.Opaque<InitializeResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  /** The revision that is spoken from here on. */
  protocolVersion: Schema.String,
  capabilities: ServerCapabilities,
  serverInfo: Implementation,
  /** How to use the server, for a language model. */
  instructions: Schema.optionalKey(Schema.String)
})) {}

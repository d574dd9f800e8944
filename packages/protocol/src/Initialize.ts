/**
 * The handshake of the session-based revisions: `initialize`, then `notifications/initialized`.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ClientCapabilities, ServerCapabilities } from "./Capabilities.ts"
import { Implementation, isImplementation } from "./Implementation.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
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

/** The params of `initialize` as {@link read} returns them. */
export interface Introduction {
  readonly protocolVersion: string
  /** The capabilities of the client as received. Nothing in them is checked. */
  readonly capabilities: JsonObject
  readonly clientInfo: Implementation
}

/**
 * Reads the params of `initialize` without the schema. Every session waits for this, and compiling the schema would
 * delay it. The error is one line that names the path.
 *
 * @example
 * Initialize.read({ protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "app", version: "1.0" } })
 */
export const read = (params: JsonObject | undefined): Result.Result<Introduction, string> => {
  const { protocolVersion, capabilities, clientInfo } = params ?? {}
  if (typeof protocolVersion !== "string") return Result.fail("params.protocolVersion: Expected string")
  if (!isObject(capabilities)) return Result.fail("params.capabilities: Expected an object")
  return isImplementation(clientInfo)
    ? Result.succeed({ protocolVersion, capabilities, clientInfo })
    : Result.fail("params.clientInfo: Expected an object with a \"name\" and a \"version\"")
}

/**
 * The handshake of the session era: `initialize`, then `notifications/initialized`.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ClientCapabilities, ServerCapabilities } from "./Capabilities.ts"
import { Implementation, isImplementation, Meta, requestFields } from "./Common.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"

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

/** What a client says when it opens a session. */
export interface Introduction {
  readonly protocolVersion: string
  /** What the client can do, as it came: nothing in it has been checked. */
  readonly capabilities: JsonObject
  readonly clientInfo: Implementation
}

/**
 * Reads the params of `initialize` by hand: every start waits for it, and the schema would first have to be compiled. The
 * error is one line that names the path.
 */
export const read = (params: JsonObject | undefined): Result.Result<Introduction, string> => {
  const { protocolVersion, capabilities, clientInfo } = params ?? {}
  if (typeof protocolVersion !== "string") return Result.fail("params.protocolVersion: Expected string")
  if (!isObject(capabilities)) return Result.fail("params.capabilities: Expected an object")
  return isImplementation(clientInfo)
    ? Result.succeed({ protocolVersion, capabilities, clientInfo })
    : Result.fail("params.clientInfo: Expected an object with a \"name\" and a \"version\"")
}

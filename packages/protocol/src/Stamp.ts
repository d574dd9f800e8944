/**
 * Writes the metadata of a client into the `_meta` of its stateless requests (2026-07-28, basic/index, `_meta`).
 * `RequestMeta` reads it.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ClientCapabilities } from "./Capabilities.ts"
import * as Codec from "./Codec.ts"
import { Implementation } from "./Implementation.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { LoggingLevel } from "./Logging.ts"
import { ProgressToken } from "./Progress.ts"
import { clientCapabilities, clientInfo, logLevel, protocolVersion } from "./RequestMeta.ts"

/** The `_meta` of a request, since 2026-07-28. */
export class RequestMetaObject extends Schema.Opaque<RequestMetaObject>()(Schema.Struct({
  progressToken: Schema.optionalKey(ProgressToken),
  [protocolVersion]: Schema.String,
  [clientInfo]: Schema.optionalKey(Implementation),
  [clientCapabilities]: ClientCapabilities,
  [logLevel]: Schema.optionalKey(LoggingLevel)
})) {}

/** The metadata that a client writes into each of its requests. */
export interface Stamp {
  readonly protocolVersion: string
  readonly clientCapabilities: ClientCapabilities
  readonly clientInfo?: Implementation | undefined
  readonly logLevel?: LoggingLevel | undefined
}

/**
 * Makes the function that writes a client's metadata into the params of its requests. Make one per client.
 *
 * The function returns a copy of the params. Members of `_meta` that the caller has set take precedence over the
 * metadata, so a caller can set another `logLevel` for one request.
 *
 * @example
 * const stampRequest = Stamp.stamper({
 *   protocolVersion: Revision.latest,
 *   clientCapabilities: { roots: {} },
 *   clientInfo: { name: "app", version: "1.0.0" }
 * })
 * const params = stampRequest({ name: "add", arguments: { a: 1, b: 2 } })
 */
export const stamper = (stamp: Stamp): (params: JsonObject | undefined) => JsonObject => {
  const lowered = Codec.encode(ClientCapabilities, "2026-07-28", stamp.clientCapabilities)
  const base: JsonObject = {
    [protocolVersion]: stamp.protocolVersion,
    ...(stamp.clientInfo === undefined ? {} : { [clientInfo]: stamp.clientInfo }),
    [clientCapabilities]: Result.isSuccess(lowered) ? lowered.success : stamp.clientCapabilities,
    ...(stamp.logLevel === undefined ? {} : { [logLevel]: stamp.logLevel })
  }
  // A spread defines members, so that a member named `__proto__` stays a member.
  return (params) => {
    const meta = params?.["_meta"]
    return { ...params, _meta: isObject(meta) ? { ...base, ...meta } : base }
  }
}

/** Writes the metadata into the params of one request. Use {@link stamper} for more than one. */
export const stamp = (params: JsonObject | undefined, values: Stamp): JsonObject => stamper(values)(params)

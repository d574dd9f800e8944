/**
 * The reserved keys of `_meta`, and the metadata in the `_meta` of each stateless request.
 *
 * Transports and sessions use this module; the model's params only require `_meta` to be an object. In 2026-07-28
 * (basic/index, `_meta`) every request must carry `protocolVersion` and `clientCapabilities`, should carry
 * `clientInfo`, and may carry `logLevel`.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ClientCapabilities } from "./Capabilities.ts"
import * as Codec from "./Codec.ts"
import { Implementation, isImplementation } from "./Implementation.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { LoggingLevel } from "./Logging.ts"
import { ProgressToken } from "./Progress.ts"
import type { Revision } from "./Revision.ts"

/** The key for the revision of a request. */
export const protocolVersion = "io.modelcontextprotocol/protocolVersion"
/** The key for the name and version of the client that sent a request. */
export const clientInfo = "io.modelcontextprotocol/clientInfo"
/** The key for the capabilities of the client that sent a request. */
export const clientCapabilities = "io.modelcontextprotocol/clientCapabilities"
/** The key for the least severe level of log messages that the client wants about a request. */
export const logLevel = "io.modelcontextprotocol/logLevel"
/** The key for the name and version of the server, in a result. */
export const serverInfo = "io.modelcontextprotocol/serverInfo"
/** The key for the id of the `subscriptions/listen` request that a notification belongs to. */
export const subscriptionId = "io.modelcontextprotocol/subscriptionId"
export { relatedTask } from "./LegacyTask.ts"
/** The key for the token of a request that asks for progress notifications. */
export const progressToken = "progressToken"

/** The `_meta` of a request, since 2026-07-28. */
export class RequestMetaObject extends Schema.Opaque<RequestMetaObject>()(Schema.Struct({
  progressToken: Schema.optionalKey(ProgressToken),
  [protocolVersion]: Schema.String,
  [clientInfo]: Schema.optionalKey(Implementation),
  [clientCapabilities]: ClientCapabilities,
  [logLevel]: Schema.optionalKey(LoggingLevel)
})) {}

/** The metadata of a stateless request, as {@link read} returns it. */
export interface RequestMeta {
  /** The revision of the request, as any string: it may be unknown to this library. */
  readonly protocolVersion: string
  readonly clientInfo: Implementation | undefined
  /** The capabilities of the client as received. Nothing in them is checked. */
  readonly clientCapabilities: JsonObject
  readonly logLevel: LoggingLevel | undefined
}

const metaOf = (params: JsonObject | undefined): JsonObject | undefined => {
  const meta = params?.["_meta"]
  return isObject(meta) ? meta : undefined
}

/** Whether the params name a revision in `_meta`. Such a request is stateless. */
export const isModern = (params: JsonObject | undefined): boolean => {
  const meta = metaOf(params)
  return meta !== undefined && Object.hasOwn(meta, protocolVersion) && meta[protocolVersion] !== null
}

/** The revision that a request names in its `_meta`, or `undefined`. */
export const versionOf = (params: JsonObject | undefined): string | undefined => {
  const version = metaOf(params)?.[protocolVersion]
  return typeof version === "string" ? version : undefined
}

const revision: Revision = "2026-07-28"

/** One line that names the path. */
const problem = (key: string, what: string): Result.Result<never, string> =>
  Result.fail(`params._meta[${JSON.stringify(key)}]: ${what}`)

const levels: ReadonlySet<unknown> = new Set(LoggingLevel.literals)

/**
 * Reads the metadata of a stateless request.
 *
 * Call {@link versionOf} first: a request of an unsupported revision gets the error for that, whatever else is wrong
 * with it. An optional member of `null` counts as absent. This does not use the schema, because every request carries the
 * metadata. It only requires the capabilities to be an object; code that needs one of them checks its shape.
 */
export const read = (params: JsonObject | undefined): Result.Result<RequestMeta, string> => {
  const meta = metaOf(params)
  const version = meta?.[protocolVersion] ?? undefined
  if (meta === undefined || version === undefined) return problem(protocolVersion, "missing")
  if (typeof version !== "string") return problem(protocolVersion, "Expected string")
  const capabilities = meta[clientCapabilities]
  if (capabilities === undefined) return problem(clientCapabilities, "missing")
  if (!isObject(capabilities)) return problem(clientCapabilities, "Expected an object")
  const info = meta[clientInfo] ?? undefined
  if (info !== undefined && !isImplementation(info)) {
    return problem(clientInfo, "Expected an object with a \"name\" and a \"version\"")
  }
  const level = meta[logLevel] ?? undefined
  if (level !== undefined && !levels.has(level)) {
    return problem(logLevel, `Expected one of ${LoggingLevel.literals.join(", ")}`)
  }
  return Result.succeed({
    protocolVersion: version,
    clientInfo: info,
    clientCapabilities: capabilities,
    logLevel: level as LoggingLevel | undefined
  })
}

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
 * const stampRequest = RequestMeta.stamper({
 *   protocolVersion: Revision.latest,
 *   clientCapabilities: { roots: {} },
 *   clientInfo: { name: "app", version: "1.0.0" }
 * })
 * const params = stampRequest({ name: "add", arguments: { a: 1, b: 2 } })
 */
export const stamper = (stamp: Stamp): (params: JsonObject | undefined) => JsonObject => {
  const lowered = Codec.encode(ClientCapabilities, revision, stamp.clientCapabilities)
  const base: JsonObject = {
    [protocolVersion]: stamp.protocolVersion,
    ...(stamp.clientInfo === undefined ? {} : { [clientInfo]: stamp.clientInfo }),
    [clientCapabilities]: Result.isSuccess(lowered) ? lowered.success : stamp.clientCapabilities,
    ...(stamp.logLevel === undefined ? {} : { [logLevel]: stamp.logLevel })
  }
  // A spread defines members, so that a member named `__proto__` stays a member.
  return (params) => {
    const meta = metaOf(params)
    return { ...params, _meta: meta === undefined ? base : { ...base, ...meta } }
  }
}

/** Writes the metadata into the params of one request. Use {@link stamper} for more than one. */
export const stamp = (params: JsonObject | undefined, values: Stamp): JsonObject => stamper(values)(params)

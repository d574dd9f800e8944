/**
 * The reserved keys of `_meta`, and the metadata that each request of the request era carries in it. This is for transports
 * and sessions: the model's params only say that `_meta` is an object.
 *
 * 2026-07-28, basic/index, `_meta`: every request carries `protocolVersion` and `clientCapabilities`, should carry
 * `clientInfo`, and may carry `logLevel`.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ClientCapabilities } from "./Capabilities.ts"
import * as Codec from "./Codec.ts"
import { Implementation, isImplementation, LoggingLevel, ProgressToken } from "./Common.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import type { Revision } from "./Revision.ts"

/** The revision that a request speaks. */
export const protocolVersion = "io.modelcontextprotocol/protocolVersion"
/** Who sent a request. */
export const clientInfo = "io.modelcontextprotocol/clientInfo"
/** What the sender of a request can do. */
export const clientCapabilities = "io.modelcontextprotocol/clientCapabilities"
/** The least severe level of the log messages that the sender of a request wants about it. */
export const logLevel = "io.modelcontextprotocol/logLevel"
/** Who answered. */
export const serverInfo = "io.modelcontextprotocol/serverInfo"
/** The `subscriptions/listen` request that a notification belongs to, by its id. */
export const subscriptionId = "io.modelcontextprotocol/subscriptionId"
export { relatedTask } from "./LegacyTask.ts"
/** Asks for progress notifications, with this token. */
export const progressToken = "progressToken"

/** The `_meta` of a request, since 2026-07-28. */
export class RequestMetaObject extends Schema.Opaque<RequestMetaObject>()(Schema.Struct({
  progressToken: Schema.optionalKey(ProgressToken),
  [protocolVersion]: Schema.String,
  [clientInfo]: Schema.optionalKey(Implementation),
  [clientCapabilities]: ClientCapabilities,
  [logLevel]: Schema.optionalKey(LoggingLevel)
})) {}

/** What a request of the request era says about itself. */
export interface RequestMeta {
  /** Any string: the request may speak a revision that is not known here. */
  readonly protocolVersion: string
  readonly clientInfo: Implementation | undefined
  /** What the client can do, as it came: nothing in it has been checked. */
  readonly clientCapabilities: JsonObject
  readonly logLevel: LoggingLevel | undefined
}

/** Why the metadata could not be read. `Missing` and `Invalid` name the key; both are answered with `-32602`. */
export interface MetaProblem {
  readonly _tag: "Missing" | "Invalid"
  readonly key: string
  /** One line that names the path. */
  readonly message: string
}

const metaOf = (params: JsonObject | undefined): JsonObject | undefined => {
  const meta = params?.["_meta"]
  return isObject(meta) ? meta : undefined
}

/** Whether the params say which revision they speak, and so belong to the request era. */
export const isModern = (params: JsonObject | undefined): boolean => {
  const meta = metaOf(params)
  return meta !== undefined && Object.hasOwn(meta, protocolVersion)
}

/** The revision that a request says it speaks, if it says one. */
export const versionOf = (params: JsonObject | undefined): string | undefined => {
  const version = metaOf(params)?.[protocolVersion]
  return typeof version === "string" ? version : undefined
}

const revision: Revision = "2026-07-28"

const invalid = (key: string, message: string): Result.Result<never, MetaProblem> =>
  Result.fail({ _tag: "Invalid", key, message })

const missing = (key: string): Result.Result<never, MetaProblem> =>
  Result.fail({ _tag: "Missing", key, message: `params._meta[${JSON.stringify(key)}]: missing` })

const shown = (key: string): string => `params._meta[${JSON.stringify(key)}]`

const levels: ReadonlySet<unknown> = new Set(LoggingLevel.literals)

/**
 * Reads the metadata of a request of the request era. Ask {@link versionOf} first: a request of a revision that is not spoken
 * is answered with that, whatever else is wrong with it.
 *
 * It is read by hand, because each request brings it, and leniently: of the capabilities it is only asked that they are an
 * object, since what is in them matters to who needs one of them alone.
 */
export const read = (params: JsonObject | undefined): Result.Result<RequestMeta, MetaProblem> => {
  const meta = metaOf(params)
  if (meta === undefined || meta[protocolVersion] === undefined) return missing(protocolVersion)
  const version = meta[protocolVersion]
  if (typeof version !== "string") return invalid(protocolVersion, `${shown(protocolVersion)}: Expected string`)
  const capabilities = meta[clientCapabilities]
  if (capabilities === undefined) return missing(clientCapabilities)
  if (!isObject(capabilities)) return invalid(clientCapabilities, `${shown(clientCapabilities)}: Expected an object`)
  const info = meta[clientInfo]
  if (info !== undefined && !isImplementation(info)) {
    return invalid(clientInfo, `${shown(clientInfo)}: Expected an object with a "name" and a "version"`)
  }
  const level = meta[logLevel]
  if (level !== undefined && !levels.has(level)) {
    return invalid(logLevel, `${shown(logLevel)}: Expected one of ${LoggingLevel.literals.join(", ")}`)
  }
  return Result.succeed({
    protocolVersion: version,
    clientInfo: info,
    clientCapabilities: capabilities,
    logLevel: level as LoggingLevel | undefined
  })
}

/** What a client stamps on each of its requests. Make it once per client with {@link stamper}. */
export interface Stamp {
  readonly protocolVersion: string
  readonly clientCapabilities: ClientCapabilities
  readonly clientInfo?: Implementation | undefined
  readonly logLevel?: LoggingLevel | undefined
}

/**
 * Makes the function that stamps a client's requests: a copy of the params whose `_meta` has the metadata, beside what was
 * there. Reserved keys that the caller set by hand win, `logLevel` for one request for instance.
 */
export const stamper = (stamp: Stamp): (params: JsonObject | undefined) => JsonObject => {
  const lowered = Codec.encode(ClientCapabilities, revision, stamp.clientCapabilities)
  const base: JsonObject = {
    [protocolVersion]: stamp.protocolVersion,
    ...(stamp.clientInfo === undefined ? {} : { [clientInfo]: stamp.clientInfo }),
    [clientCapabilities]: Result.isSuccess(lowered) ? lowered.success : stamp.clientCapabilities,
    ...(stamp.logLevel === undefined ? {} : { [logLevel]: stamp.logLevel })
  }
  // Spreads define own members, so that an own `__proto__` stays one.
  return (params) => {
    const meta = metaOf(params)
    return { ...params, _meta: meta === undefined ? base : { ...base, ...meta } }
  }
}

/** Stamps one request. See {@link stamper}. */
export const stamp = (params: JsonObject | undefined, values: Stamp): JsonObject => stamper(values)(params)

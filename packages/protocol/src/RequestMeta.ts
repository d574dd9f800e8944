/**
 * The reserved keys of `_meta`, and the metadata in the `_meta` of each stateless request.
 *
 * Transports and sessions use this module, which needs no schema; the model's params only require `_meta` to be an
 * object. `Stamp` writes the metadata. In 2026-07-28 (basic/index, `_meta`) every request must carry `protocolVersion`
 * and `clientCapabilities`, should carry `clientInfo`, and may carry `logLevel`.
 */
import * as Result from "effect/Result"
import type { Implementation } from "./Implementation.ts"
import { isImplementation } from "./Introduction.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"

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
/** The key for the task that a message belongs to, in 2025-11-25: an object with its `taskId`. */
export const relatedTask = "io.modelcontextprotocol/related-task"
/** The key for the token of a request that asks for progress notifications. */
export const progressToken = "progressToken"

/** The severities of log messages, as in syslog (RFC 5424); the least severe first. */
export const logLevels = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency"
] as const

/** The severity of a log message. */
export type LogLevel = (typeof logLevels)[number]

/** The metadata of a stateless request, as {@link read} returns it. */
export interface RequestMeta {
  /** The revision of the request, as any string: it may be unknown to this library. */
  readonly protocolVersion: string
  readonly clientInfo: Implementation | undefined
  /** The capabilities of the client as received. Nothing in them is checked. */
  readonly clientCapabilities: JsonObject
  readonly logLevel: LogLevel | undefined
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

/** One line that names the path. */
const problem = (key: string, what: string): Result.Result<never, string> =>
  Result.fail(`params._meta[${JSON.stringify(key)}]: ${what}`)

const levels: ReadonlySet<unknown> = new Set(logLevels)

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
    return problem(logLevel, `Expected one of ${logLevels.join(", ")}`)
  }
  return Result.succeed({
    protocolVersion: version,
    clientInfo: info,
    clientCapabilities: capabilities,
    logLevel: level as LogLevel | undefined
  })
}

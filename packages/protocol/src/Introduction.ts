/**
 * Reads the params of `initialize` and writes its result without their schemas.
 *
 * Every session waits for this message, and a server on stdio starts with it: loading and compiling the schemas would
 * delay the start. `Initialize` has the schemas, and a test compares both.
 */
import * as Result from "effect/Result"
import type { Implementation } from "./Implementation.ts"
import type { InitializeResult } from "./Initialize.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import type { Revision } from "./Revision.ts"

/** The params of `initialize` as {@link read} returns them. */
export interface Introduction {
  readonly protocolVersion: string
  /** The capabilities of the client as received. Nothing in them is checked. */
  readonly capabilities: JsonObject
  readonly clientInfo: Implementation
}

/**
 * Whether the value has the members of an implementation that every revision requires: a `name` and a `version`. It does
 * not check the optional members.
 */
export const isImplementation = (value: unknown): value is Implementation =>
  isObject(value) && typeof value["name"] === "string" && typeof value["version"] === "string"

/**
 * Reads the params of `initialize`. The error is one line that names the path.
 *
 * @example
 * Introduction.read({ protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "app", version: "1.0" } })
 */
export const read = (params: JsonObject | undefined): Result.Result<Introduction, string> => {
  const { protocolVersion, capabilities, clientInfo } = params ?? {}
  if (typeof protocolVersion !== "string") return Result.fail("params.protocolVersion: Expected string")
  if (!isObject(capabilities)) return Result.fail("params.capabilities: Expected an object")
  return isImplementation(clientInfo)
    ? Result.succeed({ protocolVersion, capabilities, clientInfo })
    : Result.fail("params.clientInfo: Expected an object with a \"name\" and a \"version\"")
}

const without = (value: object, ...keys: ReadonlyArray<string>): object =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)))

const writeServerInfo = (info: object, revision: Revision): object =>
  revision >= "2025-11-25"
    ? info
    : without(info, "description", "websiteUrl", "icons", ...revision < "2025-06-18" ? ["title"] : [])

const writeCapabilities = (capabilities: object, revision: Revision): object =>
  revision === "2025-11-25"
    ? capabilities
    : without(capabilities, "tasks", ...revision < "2025-03-26" ? ["completions"] : [])

/**
 * Writes the result of `initialize` in a session-based revision: without the members that the revision does not have.
 *
 * @example
 * Introduction.write({ protocolVersion, capabilities: { completions: {} }, serverInfo }, "2024-11-05") // no completions
 */
export const write = (result: InitializeResult, revision: Revision): JsonObject => ({
  ...result,
  capabilities: writeCapabilities(result.capabilities, revision),
  serverInfo: writeServerInfo(result.serverInfo, revision)
})

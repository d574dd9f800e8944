/**
 * Decodes a stored server profile: it may come from a file, and be any JSON.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import type { ServerProfile } from "../../ServerProfile.ts"

const absent = (value: unknown): boolean => value === undefined || value === null

/** The server profile without malformed optional members; undefined if a required member is malformed. */
export const read = (value: unknown): ServerProfile | undefined => {
  if (!JsonRpc.isObject(value)) return undefined
  const { capabilities, info, instructions, revision, httpMode } = value
  if (!Revision.is(revision) || !JsonRpc.isObject(capabilities)) return undefined
  if (!absent(httpMode) && typeof httpMode !== "string") return undefined
  return {
    revision,
    capabilities,
    httpMode: typeof httpMode === "string" ? httpMode : undefined,
    info: JsonRpc.isObject(info) ? info : undefined,
    instructions: typeof instructions === "string" ? instructions : undefined
  }
}

/**
 * Reads a detection that was kept: it may come from a file, and be any JSON.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import type { ServerProfile } from "../../ServerProfile.ts"

const absent = (value: unknown): boolean => value === undefined || value === null

/** The serverProfile, without what is malformed and can be missed; nothing where the rest is. */
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

/**
 * The keys of versions in `_meta`. The specification has no field for the version of a tool: its `version` members are
 * those of implementations.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { Meta } from "@skein/protocol/Message"
import type { RequestContext } from "@skein/runtime/RequestContext"

/** The version of a tool in a list, and the requested version in a call. */
export const versionKey = "io.github.skein-mcp/version"

/** All versions of a tool in a list, the newest first. */
export const versionsKey = "io.github.skein-mcp/versions"

/** Adds the version of a definition to its `_meta`. */
export const withVersion = <O extends { readonly _meta?: Meta | undefined; readonly version?: string | undefined }>(
  { version, ...options }: O
): Omit<O, "version"> =>
  version === undefined ? options : { ...options, _meta: { ...options._meta, [versionKey]: version } }

/** The version that a call names, which may be any value. */
export const requestedVersion = ({ params }: { readonly params: JsonObject | undefined }): unknown => {
  const meta = params?.["_meta"]
  return isObject(meta) ? meta[versionKey] : undefined
}

/** Whether a call names a version: middleware sees the definition of the newest one only. */
export const namesVersion = (request: RequestContext): boolean => requestedVersion(request) !== undefined

/** A version as its numbers and texts, and the part after a hyphen. */
const parse = (version: string) => {
  const hyphen = version.indexOf("-")
  const [core, suffix] = hyphen < 0 ? [version, undefined] : [version.slice(0, hyphen), version.slice(hyphen + 1)]
  return { parts: core.replace(/^v/, "").split("."), suffix }
}

const compareTexts = (a: string, b: string): number => {
  const [x, y] = [Number(a), Number(b)]
  return /^\d+$/.test(a) && /^\d+$/.test(b) ? x - y : a < b ? -1 : a > b ? 1 : 0
}

/** Compares two versions: see `ToolVersions.compare`. */
export const compareVersions = (a: string, b: string): number => {
  const [one, other] = [parse(a), parse(b)]
  const length = Math.max(one.parts.length, other.parts.length)
  for (let n = 0; n < length; n++) {
    const order = compareTexts(one.parts[n] ?? "0", other.parts[n] ?? "0")
    if (order !== 0) return order
  }
  if (one.suffix === undefined || other.suffix === undefined) {
    return (one.suffix === undefined ? 1 : 0) - (other.suffix === undefined ? 1 : 0)
  }
  return compareTexts(one.suffix, other.suffix)
}

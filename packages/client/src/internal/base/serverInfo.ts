/**
 * Decodes the information of a server once: it is read often, for instance for each input request, and may be large.
 */
import { ServerCapabilities } from "@skein/protocol/Capabilities"
import * as Codec from "@skein/protocol/Codec"
import { Implementation } from "@skein/protocol/Implementation"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import { safely } from "./icons.ts"

const once = <A>(read: (raw: JsonObject, revision: Revision) => A) => {
  const known = new WeakMap<JsonObject, readonly [Revision, A]>()
  return (raw: JsonObject, revision: Revision): A => {
    const before = known.get(raw)
    if (before !== undefined && before[0] === revision) return before[1]
    const value = read(raw, revision)
    known.set(raw, [revision, value])
    return value
  }
}

/** Name and version of the server, as it sent them, without unsafe icons. */
export const implementationOf = once((raw, revision) =>
  Result.getOrUndefined(
    Result.map(Codec.decode(Implementation, revision, raw, "serverInfo", []), (info) => safely(info))
  )
)

/** The declared capabilities, without malformed members. */
export const capabilitiesOf = once((raw, revision): ServerCapabilities =>
  Result.getOrElse(Codec.decode(ServerCapabilities, revision, raw, "capabilities", []), () => ({}))
)

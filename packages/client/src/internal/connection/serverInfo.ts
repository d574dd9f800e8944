/**
 * What a server says of itself, read once: it is asked for often, by each question of the server's for instance, and
 * may be large.
 */
import { ServerCapabilities } from "@skein/protocol/Capabilities"
import * as Codec from "@skein/protocol/Codec"
import { Implementation } from "@skein/protocol/Implementation"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import { safely } from "../calls/icons.ts"

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

/** Name and version of the server, as it gave them, but for icons that may not be followed. */
export const implementationOf = once((raw, revision) =>
  Result.getOrUndefined(Result.map(Codec.decode(Implementation, revision, raw), (info) => safely(info)))
)

/** What it declared, without the members that are malformed: they never hurt. */
export const capabilitiesOf = once((raw, revision): ServerCapabilities => {
  const whole = Codec.decode(ServerCapabilities, revision, raw)
  if (Result.isSuccess(whole)) return whole.success
  const sound = Object.entries(raw).filter(([key, value]) =>
    Result.isSuccess(Codec.decode(ServerCapabilities, revision, { [key]: value }))
  )
  return Object.fromEntries(sound)
})

/**
 * Removes malformed items from a list, so that one of them does not make the whole response invalid.
 */
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import { Prompt } from "@skein/protocol/Prompt"
import { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type * as Revision from "@skein/protocol/Revision"
import { Tool } from "@skein/protocol/Tool"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"

/** A response without its malformed items, and one line for each of them. */
export interface Repaired {
  readonly raw: JsonObject
  readonly dropped: ReadonlyArray<string>
}

const items =
  (member: string, item: Schema.Codec<unknown, unknown>) =>
  (raw: JsonObject, revision: Revision.Revision): Repaired | undefined => {
    const list = raw[member]
    if (!Array.isArray(list)) return undefined
    const dropped: Array<string> = []
    const kept = list.filter((value, index) => {
      const decoded = Codec.decode(item, revision, value, `${member}[${index}]`)
      if (Result.isFailure(decoded)) dropped.push(decoded.failure)
      return Result.isSuccess(decoded)
    })
    return { raw: { ...raw, [member]: kept }, dropped }
  }

const repairs: ReadonlyMap<string, ReturnType<typeof items>> = new Map([
  [Method.ListTools.name, items("tools", Tool)],
  [Method.ListResources.name, items("resources", Resource)],
  [Method.ListResourceTemplates.name, items("resourceTemplates", ResourceTemplate)],
  [Method.ListPrompts.name, items("prompts", Prompt)]
])

/** Removes the malformed items of a list; `undefined` if the result is not a list. */
export const dropInvalidItems = (method: string, raw: JsonObject, revision: Revision.Revision): Repaired | undefined =>
  repairs.get(method)?.(raw, revision)

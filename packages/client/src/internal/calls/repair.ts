/**
 * What is saved of an answer that is not valid as a whole: one bad tool must not hide all the others.
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

/** An answer without what was wrong with it, and what that was, a line for each. */
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

/** Leaves the items out of a listing that are malformed; `undefined` for what is no listing. */
export const dropInvalidItems = (method: string, raw: JsonObject, revision: Revision.Revision): Repaired | undefined =>
  repairs.get(method)?.(raw, revision)

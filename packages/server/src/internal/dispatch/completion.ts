/**
 * The method `completion/complete`.
 */
import type { CompleteRequestParams, CompleteResult } from "@skein/protocol/Completion"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import { clip } from "@skein/protocol/Text"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Catalog, Completers } from "../../Catalog.ts"
import type { Guard } from "../../Registry.ts"
import type { MethodTable } from "./methodTable.ts"
import { isVisible } from "../catalog/entryStore.ts"

/** "Maximum 100 items per response". */
const maxValues = 100

/** The prompt or template of a reference: its completers, and the names of its arguments or variables. */
interface Target {
  readonly complete?: Completers | undefined
  readonly guard?: Guard | undefined
  readonly names: () => ReadonlyArray<string>
}

const none: Target = { names: () => [] }

/** Finds the target of a reference. An entry that the caller may not see does not exist. */
const findTarget = (
  { prompts, resources, templates }: Catalog["Service"],
  ref: CompleteRequestParams["ref"],
  caller: Caller
): Target | undefined => {
  if (ref.type === "ref/prompt") {
    const prompt = prompts.seen(ref.name, caller)
    if (prompt === undefined) return undefined
    const { complete, guard } = prompt
    return { complete, guard, names: () => prompt.definition.arguments?.map(({ name }) => name) ?? [] }
  }
  // "`uri` is a URI or URI template" (2026-07-28). For a URI the first matching template is the target.
  const template = templates.seen(ref.uri, caller)
    ?? (resources.seen(ref.uri, caller) === undefined
      ? templates.sorted.find(([, entry]) => isVisible(entry, caller) && entry.match(ref.uri) !== undefined)
        ?.[1]
      : undefined)
  if (template === undefined) return resources.seen(ref.uri, caller) === undefined ? undefined : none
  const { complete, guard } = template
  return { complete, guard, names: () => template.names }
}

const result = (found: ReadonlyArray<string> | CompleteResult["completion"]): CompleteResult => {
  if ("values" in found && !Array.isArray(found)) {
    const { values } = found as CompleteResult["completion"]
    return {
      completion: values.length > maxValues
        ? { ...found, values: values.slice(0, maxValues), hasMore: true }
        : found as CompleteResult["completion"]
    }
  }
  const all = found as ReadonlyArray<string>
  return { completion: { values: all.slice(0, maxValues), total: all.length, hasMore: all.length > maxValues } }
}

export const install = (methods: MethodTable): void => {
  methods.add(Method.Complete, ({ argument, context, ref }, { caller }) => {
    const target = findTarget(methods.catalog, ref, caller)
    if (target === undefined) {
      const what = ref.type === "ref/prompt" ? `prompt: ${clip(ref.name)}` : `resource template: ${clip(ref.uri)}`
      return Effect.fail(McpError.invalidParams(`Unknown ${what}`))
    }
    const refused = target.guard?.(caller)
    if (refused !== undefined) return Effect.fail(refused)
    const { name, value } = argument
    const complete = target.complete?.get(name)
    if (complete !== undefined) return Effect.map(complete(value, context?.arguments ?? {}), result)
    return target.names().includes(name)
      ? Effect.succeed(result([]))
      : Effect.fail(McpError.invalidParams(`Unknown argument: ${clip(name)}`))
  })
}

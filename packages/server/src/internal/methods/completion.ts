/** `completion/complete`. */
import type { CompleteRequestParams, CompleteResult } from "@skein/protocol/Completion"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Catalog, Completers } from "../../Catalog.ts"
import { clip } from "../clip.ts"
import type { Methods } from "./handlers.ts"

/** "Maximum 100 items per response". */
const most = 100

/** What a reference leads to: how it completes, and which names it has. */
interface Target {
  readonly complete?: Completers | undefined
  readonly names: () => ReadonlyArray<string>
}

const none: Target = { names: () => [] }

/** What one may not see does not exist, here as elsewhere. */
const find = (
  { prompts, resources, templates }: Catalog["Service"],
  ref: CompleteRequestParams["ref"],
  caller: Caller
): Target | undefined => {
  if (ref.type === "ref/prompt") {
    const prompt = prompts.seen(ref.name, caller)
    if (prompt === undefined) return undefined
    return { complete: prompt.complete, names: () => prompt.definition.arguments?.map(({ name }) => name) ?? [] }
  }
  // "`uri` is a URI or URI template" (2026-07-28): of a URI that is no template's text, the template that it matches.
  const template = templates.seen(ref.uri, caller)
    ?? (resources.seen(ref.uri, caller) === undefined
      ? templates.sorted.find(([, entry]) => entry.visible?.(caller) !== false && entry.match(ref.uri) !== undefined)
        ?.[1]
      : undefined)
  if (template === undefined) return resources.seen(ref.uri, caller) === undefined ? undefined : none
  return { complete: template.complete, names: () => template.names }
}

const result = (all: ReadonlyArray<string>): CompleteResult => ({
  completion: { values: all.slice(0, most), total: all.length, hasMore: all.length > most }
})

export const install = (methods: Methods): void => {
  methods.on(Method.Complete, ({ argument, context, ref }, { caller }) => {
    const target = find(methods.catalog, ref, caller)
    if (target === undefined) {
      const what = ref.type === "ref/prompt" ? `prompt: ${clip(ref.name)}` : `resource template: ${clip(ref.uri)}`
      return Effect.fail(McpError.invalidParams(`Unknown ${what}`))
    }
    const { name, value } = argument
    const complete = target.complete?.get(name)
    if (complete !== undefined) return Effect.map(complete(value, context?.arguments ?? {}), result)
    return target.names().includes(name)
      ? Effect.succeed(result([]))
      : Effect.fail(McpError.invalidParams(`Unknown argument: ${clip(name)}`))
  })
}

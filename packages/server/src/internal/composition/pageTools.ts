/**
 * The pages of MCP Apps whose tools have other names or URIs in the server around them: the links from tools to pages, and
 * the names of the tools that a page calls.
 *
 * A page calls tools by the names that it was written with. So a list and a result contain the new name of each tool that
 * is linked to the same page, in `_meta` under `MetaKey.toolNames`, and `View.call` of `@skein/apps` uses them.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import type { Meta } from "@skein/protocol/Message"
import * as MetaKey from "@skein/protocol/MetaKey"
import * as Effect from "effect/Effect"
import type { ToolEntry } from "../../Catalog.ts"
import type { Registry } from "../../Registry.ts"

/** The deprecated key of the link. */
const oldKey = "ui/resourceUri"

interface WithMeta {
  readonly _meta?: Meta | undefined
}

/** The URI of the page that a tool is linked to. */
const pageOf = ({ _meta }: WithMeta): string | undefined => {
  const ui = _meta?.["ui"]
  const uri = (isObject(ui) ? ui["resourceUri"] : undefined) ?? _meta?.[oldKey]
  return typeof uri === "string" ? uri : undefined
}

/** Changes the link of a tool. */
const withPage = <T extends WithMeta>(tool: T, uri: (own: string) => string): T => {
  const meta = tool._meta
  const ui = meta?.["ui"]
  const old = meta?.[oldKey]
  const linked = isObject(ui) && typeof ui["resourceUri"] === "string"
    ? { ...ui, resourceUri: uri(ui["resourceUri"]) }
    : ui
  return {
    ...tool,
    _meta: {
      ...meta,
      ...(linked === undefined ? undefined : { ui: linked }),
      ...(typeof old === "string" ? { [oldKey]: uri(old) } : undefined)
    }
  }
}

/** Adds the names of the tools that the page calls, unless none of them has changed. */
const withNames = <T extends WithMeta>(
  given: T,
  linked: ReadonlyArray<string>,
  nameOf: (own: string) => string
): T => {
  // A part of the part may have changed names before.
  const inner = given._meta?.[MetaKey.toolNames]
  const ownNames = new Map(Object.entries(isObject(inner) ? inner : {}).map(([own, name]) => [name, own]))
  const names = linked.flatMap((name) => {
    const own = ownNames.get(name) ?? name
    const changed = nameOf(name)
    return changed === own ? [] : [[own, changed] as const]
  })
  if (names.length === 0 && inner === undefined) return given
  const { [MetaKey.toolNames]: _, ...rest } = given._meta ?? {}
  return {
    ...given,
    _meta: { ...rest, ...(names.length === 0 ? {} : { [MetaKey.toolNames]: Object.fromEntries(names) }) }
  }
}

/** The tools of a part, and how they appear in the server around it. */
export interface Surroundings {
  readonly tools: () => Registry<ToolEntry>
  /** Returns the name of a tool. */
  readonly nameOf: (own: string) => string
  /** Returns the URI of a page. */
  readonly uriOf: (own: string) => string
}

/** Returns a tool whose list entry and results have the names and the URI outside. A tool without a page stays as it is. */
export const linking = (entry: ToolEntry, { nameOf, tools, uriOf }: Surroundings): ToolEntry => {
  const page = pageOf(entry.definition)
  if (page === undefined) return entry
  let seen: { readonly version: number; readonly names: ReadonlyArray<string> } | undefined
  const linked = (): ReadonlyArray<string> => {
    const { sorted, version } = tools()
    if (seen?.version !== version) {
      const names = sorted.flatMap(([name, { definition }]) => pageOf(definition) === page ? [name] : [])
      seen = { version, names }
    }
    return seen.names
  }
  return {
    ...entry,
    listedAs: (tool, caller) => {
      const own = entry.listedAs?.(tool, caller) ?? tool
      // A caller without pages gets no link.
      return pageOf(own) === undefined ? own : withNames(withPage(own, uriOf), linked(), nameOf)
    },
    call: (args, request) =>
      Effect.map(entry.call(args, request), (result) =>
        // The handle of a task has no content.
        Array.isArray(result.content) ? withNames(result, linked(), nameOf) : result)
  }
}

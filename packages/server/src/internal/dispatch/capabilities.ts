/**
 * What a server can do, as its catalog says.
 */
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { AnyRequest } from "@skein/protocol/Method"
import type { Catalog } from "../../Catalog.ts"
import type { ListKind } from "../../EventBus.ts"
import { internals } from "../catalogState.ts"
import { CurrentForwarder } from "../observability/logs.ts"

/**
 * Whether a kind was ever offered. "Servers that declare the `tools` capability MUST respond to `tools/list` requests … This set
 * MAY be empty and MAY change over time" (2026-07-28, tools; and so resources and prompts): what was declared once stays declared.
 */
const has: { readonly [kind in ListKind]: (catalog: Catalog["Service"]) => boolean } = {
  tools: ({ [internals]: { declared }, tools }) => tools.used || declared.includes("tools"),
  resources: ({ [internals]: { declared }, resources, templates }) =>
    resources.used || templates.used || declared.includes("resources"),
  prompts: ({ [internals]: { declared }, prompts }) => prompts.used || declared.includes("prompts")
}

const logs = ({ [internals]: { base } }: Catalog["Service"]): boolean => base.mapUnsafe.has(CurrentForwarder.key)

const completes = ({ prompts, templates }: Catalog["Service"]): boolean =>
  [prompts, templates].some(({ sorted }) => sorted.some(([, { complete }]) => complete !== undefined))

/** The capabilities that a catalog has or has not, what is said of each, and whether it has them. */
const declared: ReadonlyMap<string | undefined, readonly [(catalog: Catalog["Service"]) => boolean, object]> = new Map([
  // Whatever is offered may change while the server runs.
  ["tools", [has.tools, { listChanged: true }]],
  ["resources", [has.resources, { subscribe: true, listChanged: true }]],
  ["prompts", [has.prompts, { listChanged: true }]],
  ["completions", [completes, {}]],
  ["logging", [logs, {}]]
])

/** The capabilities of what is offered now, or was. */
export const of = (catalog: Catalog["Service"]): ServerCapabilities =>
  Object.fromEntries([...declared].filter(([, [has]]) => has(catalog)).map(([name, [, said]]) => [name, said]))

/**
 * What of them holds for a client that nobody can tell anything later: whoever cannot be told that a list has changed is not
 * promised it, and a level would be forgotten at once.
 */
export const alone = (catalog: Catalog["Service"]): ServerCapabilities => {
  const { logging: _, ...rest } = of(catalog)
  return Object.fromEntries(Object.keys(rest).map((name) => [name, {}]))
}

const kinds: ReadonlyArray<ListKind> = ["tools", "resources", "prompts"]

/** The lists that a client is told of now. */
export const lists = (catalog: Catalog["Service"]): ReadonlyArray<ListKind> => {
  const found = kinds.filter((kind) => has[kind](catalog))
  // One array for each choice, so that sessions need not keep one each.
  const choice = found.join()
  const known = choices.get(choice)
  if (known === undefined) choices.set(choice, found)
  return known ?? found
}

const choices = new Map<string, ReadonlyArray<ListKind>>()

/** Whether a method belongs to what is declared, or to no such capability at all. */
export const offered = (catalog: Catalog["Service"], method: AnyRequest): boolean =>
  declared.get(method.capability?.path[0])?.[0](catalog) ?? true

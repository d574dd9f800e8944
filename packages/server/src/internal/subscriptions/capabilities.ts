/**
 * The capabilities of a server, as its catalog determines them.
 */
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { AnyRequest } from "@skein/protocol/Method"
import type { Catalog } from "../../Catalog.ts"
import type { ListKind } from "../../EventBus.ts"
import { internals } from "../catalog/catalogState.ts"
import { CurrentForwarder } from "../base/logs.ts"

/**
 * Whether a kind was ever offered. "Servers that declare the `tools` capability MUST respond to `tools/list` requests …
 * This set MAY be empty and MAY change over time" (2026-07-28, tools; likewise resources and prompts): a declared
 * capability stays declared.
 */
const has: { readonly [kind in ListKind]: (catalog: Catalog["Service"]) => boolean } = {
  tools: (catalog) => catalog.tools.used || isDeclared(catalog, "tools"),
  resources: (catalog) => catalog.resources.used || catalog.templates.used || isDeclared(catalog, "resources"),
  prompts: (catalog) => catalog.prompts.used || isDeclared(catalog, "prompts")
}

const isDeclared = ({ [internals]: { declared, extensions } }: Catalog["Service"], kind: ListKind): boolean =>
  declared.includes(kind) || extensions.all.some(({ lists }) => lists?.includes(kind) === true)

const logs = ({ [internals]: { base } }: Catalog["Service"]): boolean => base.mapUnsafe.has(CurrentForwarder.key)

const completes = ({ prompts, templates }: Catalog["Service"]): boolean =>
  [prompts, templates].some(({ sorted }) => sorted.some(([, { complete }]) => complete !== undefined))

/** The capabilities that depend on the catalog: whether a server has each, and the value that it declares. */
const declared: ReadonlyMap<string | undefined, readonly [(catalog: Catalog["Service"]) => boolean, object]> = new Map([
  // All lists may change while the server runs.
  ["tools", [has.tools, { listChanged: true }]],
  ["resources", [has.resources, { subscribe: true, listChanged: true }]],
  ["prompts", [has.prompts, { listChanged: true }]],
  ["completions", [completes, {}]],
  ["logging", [logs, {}]]
])

/** The capabilities of the catalog. */
export const of = (catalog: Catalog["Service"]): ServerCapabilities =>
  Object.fromEntries([...declared].filter(([, [has]]) => has(catalog)).map(([name, [, value]]) => [name, value]))

/**
 * The capabilities for a client without a session, which receives no notifications later: `listChanged` and `subscribe`
 * are not declared, and neither is `logging`, since a level would not be stored.
 */
export const alone = (catalog: Catalog["Service"]): ServerCapabilities => {
  const { logging: _, ...rest } = of(catalog)
  return Object.fromEntries(Object.keys(rest).map((name) => [name, {}]))
}

const kinds: ReadonlyArray<ListKind> = ["tools", "resources", "prompts"]

/** The lists whose changes a client is notified of. */
export const lists = (catalog: Catalog["Service"]): ReadonlyArray<ListKind> => {
  const found = kinds.filter((kind) => has[kind](catalog))
  // One array per combination, so that sessions share it.
  const choice = found.join()
  const known = choices.get(choice)
  if (known === undefined) choices.set(choice, found)
  return known ?? found
}

const choices = new Map<string, ReadonlyArray<ListKind>>()

/**
 * Whether the capability that a method needs is declared. True for a method that needs none of the capabilities above.
 */
export const offered = (catalog: Catalog["Service"], method: AnyRequest): boolean =>
  declared.get(method.capability?.path[0])?.[0](catalog) ?? true

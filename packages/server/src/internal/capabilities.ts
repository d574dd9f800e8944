/**
 * What a server can do, as its catalog says.
 */
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { AnyRequest } from "@skein/protocol/Method"
import type { Catalog, Registry } from "../Catalog.ts"

/**
 * Whether something was ever offered. "Servers that declare the `tools` capability MUST respond to `tools/list` requests …
 * This set MAY be empty" (2026-07-28, tools; and so resources and prompts): what was declared once stays declared.
 */
const used = ({ version }: Pick<Registry<never>, "version">): boolean => version > 0

/** The capabilities that definitions bring, and whether a catalog has them. */
const declared: ReadonlyMap<string | undefined, (catalog: Catalog["Service"]) => boolean> = new Map([
  ["tools", ({ tools }) => used(tools)],
  ["resources", ({ resources, templates }) => used(resources) || used(templates)],
  ["prompts", ({ prompts }) => used(prompts)]
])

/** The capabilities of what is offered now, or was. */
export const of = (catalog: Catalog["Service"]): ServerCapabilities =>
  Object.fromEntries([...declared].filter(([, has]) => has(catalog)).map(([name]) => [name, {}]))

/** Whether a method belongs to what is declared, or to no such capability at all. */
export const offered = (catalog: Catalog["Service"], method: AnyRequest): boolean =>
  declared.get(method.capability?.path[0])?.(catalog) ?? true

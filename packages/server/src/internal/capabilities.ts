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
const used = ({ version }: Registry<unknown>): boolean => version > 0

const hasResources = ({ resources, templates }: Catalog["Service"]): boolean => used(resources) || used(templates)

/** The capabilities of what is offered now, or was. */
export const of = (catalog: Catalog["Service"]): ServerCapabilities => ({
  ...(used(catalog.tools) ? { tools: {} } : undefined),
  ...(hasResources(catalog) ? { resources: {} } : undefined),
  ...(used(catalog.prompts) ? { prompts: {} } : undefined)
})

/** Whether a method belongs to what is declared, or to no capability at all. */
export const offered = (catalog: Catalog["Service"], method: AnyRequest): boolean => {
  switch (method.capability?.path[0]) {
    case "tools":
      return used(catalog.tools)
    case "resources":
      return hasResources(catalog)
    case "prompts":
      return used(catalog.prompts)
    default:
      return true
  }
}

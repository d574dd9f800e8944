/**
 * What a server can do, as its catalog says.
 */
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { AnyRequest } from "@skein/protocol/Method"
import type { Catalog } from "../Catalog.ts"

/** The capabilities of what is offered now. */
export const of = (catalog: Catalog["Service"]): ServerCapabilities => ({
  ...(catalog.tools.size > 0 ? { tools: {} } : undefined),
  ...(hasResources(catalog) ? { resources: {} } : undefined),
  ...(catalog.prompts.size > 0 ? { prompts: {} } : undefined)
})

/** Whether a method belongs to what is offered, or to no capability at all. */
export const offered = (catalog: Catalog["Service"], method: AnyRequest): boolean => {
  switch (method.capability?.path[0]) {
    case "tools":
      return catalog.tools.size > 0
    case "resources":
      return hasResources(catalog)
    case "prompts":
      return catalog.prompts.size > 0
    default:
      return true
  }
}

const hasResources = ({ resources, templates }: Catalog["Service"]): boolean => resources.size > 0 || templates.size > 0

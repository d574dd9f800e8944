/**
 * The method and the target of a request, as the server has them: names that clients invent must not fill any table.
 */
import * as Conventions from "@skein/protocol/Conventions"
import * as Method from "@skein/protocol/Method"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog } from "../../Catalog.ts"
import type { Entry, Registry } from "../../Registry.ts"

/** The method of a request, if its revision has it. */
export const methodOf = ({ caller, method }: RequestContext): string =>
  Method.request(method, caller.revision)?.name ?? Conventions.otherMethod

/** The target that a request names, unverified: a tool or a prompt by its name, a resource by its URI. */
export const namedBy = ({ method, params }: RequestContext): string | undefined => Conventions.targetOf(method, params)

const registryOf = (catalog: Catalog["Service"], method: string): Registry<Entry<unknown>> | undefined => {
  switch (method) {
    case "tools/call":
      return catalog.tools
    case "prompts/get":
      return catalog.prompts
    case "resources/read":
    case "resources/subscribe":
    case "resources/unsubscribe":
      return catalog.resources
    default:
      return undefined
  }
}

/**
 * The tool, prompt or resource that a request names, if it exists and its caller may see it. Resources of a template
 * are unlimited, and have no name here.
 */
export const targetOf = (catalog: Catalog["Service"], request: RequestContext): string | undefined => {
  const registry = registryOf(catalog, request.method)
  if (registry === undefined) return undefined
  const name = namedBy(request)
  return name === undefined || registry.seen(name, request.caller) === undefined ? undefined : name
}

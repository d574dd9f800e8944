/** What a request is about, as far as the server knows it: names that clients make up are not to fill any table. */
import * as Conventions from "@skein/protocol/Conventions"
import * as Method from "@skein/protocol/Method"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog } from "../../Catalog.ts"
import type { Entry, Registry } from "../../Registry.ts"

/** The method of a request, if its revision has it. */
export const methodOf = ({ caller, method }: RequestContext): string =>
  Method.request(method, caller.revision)?.name ?? Conventions.otherMethod

/** What a request names, as it came: a tool or a prompt by its name, a resource by its URI. */
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
 * The tool, prompt or resource that a request names, if there is one that its caller may see. A resource of a template has no
 * name here: there is no end of them.
 */
export const targetOf = (catalog: Catalog["Service"], exchange: RequestContext): string | undefined => {
  const registry = registryOf(catalog, exchange.method)
  if (registry === undefined) return undefined
  const name = namedBy(exchange)
  return name === undefined || registry.seen(name, exchange.caller) === undefined ? undefined : name
}

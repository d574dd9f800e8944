/**
 * The method and the target of a request, as the server has them: names that clients invent must not fill any table.
 */
import * as Conventions from "@skein/protocol/Conventions"
import * as Method from "@skein/protocol/Method"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog } from "../../Catalog.ts"

/** The method of a request, if its revision has it. */
export const methodOf = ({ caller, method }: RequestContext): string =>
  Method.request(method, caller.revision)?.name ?? Conventions.otherMethod

/** The registry that the target of a request is in, by the method. */
const registries: ReadonlyMap<string, "tools" | "prompts" | "resources"> = new Map([
  ["tools/call", "tools"],
  ["prompts/get", "prompts"],
  ["resources/read", "resources"],
  ["resources/subscribe", "resources"],
  ["resources/unsubscribe", "resources"]
])

/**
 * The tool, prompt or resource that a request names, if it exists and its caller may see it. Resources of a template
 * are unlimited, and have no name here.
 */
export const targetOf = (catalog: Catalog["Service"], request: RequestContext): string | undefined => {
  const kind = registries.get(request.method)
  if (kind === undefined) return undefined
  const name = request.target
  return name === undefined || catalog[kind].seen(name, request.caller) === undefined ? undefined : name
}

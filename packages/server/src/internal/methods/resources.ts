/** `resources/list`, `resources/templates/list` and `resources/read`. */
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { ReadResourceResult } from "@skein/protocol/Resource"
import type { Caller, Exchange } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import type { Catalog, Handled } from "../../Catalog.ts"
import * as listing from "../listing.ts"
import type { Methods } from "../methods.ts"

/** What reads a URI for a caller: a resource of that URI, or the first template that matches; `undefined` where nothing does. */
export const reader = (
  { resources, templates }: Catalog["Service"],
  uri: string,
  caller: Caller
): ((exchange: Exchange) => Handled<ReadResourceResult>) | undefined => {
  const resource = resources.seen(uri, caller)
  if (resource !== undefined) return resource.read
  for (const [, template] of templates.sorted) {
    if (template.visible?.(caller) === false) continue
    const reading = template.match(uri)
    if (reading !== undefined) return reading
  }
  return undefined
}

export const install = (methods: Methods): void => {
  const { catalog } = methods
  listing.install(methods, Method.ListResources, "resources", catalog.resources)
  listing.install(methods, Method.ListResourceTemplates, "resourceTemplates", catalog.templates)
  methods.on(Method.ReadResource, ({ uri }, exchange) => {
    const read = reader(catalog, uri, exchange.caller)
    return read === undefined ? Effect.fail(McpError.resourceNotFound(uri)) : read(exchange)
  })
}

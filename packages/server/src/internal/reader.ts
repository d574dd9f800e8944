import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Catalog, Reader } from "../Catalog.ts"

/** What reads a URI for a caller: a resource of that URI, or the first template that matches; `undefined` where nothing does. */
export const reader = (
  { resources, templates }: Catalog["Service"],
  uri: string,
  caller: Caller
): Reader | undefined => {
  const resource = resources.seen(uri, caller)
  if (resource !== undefined) return resource.visible === undefined ? resource.read : privately(resource.read)
  for (const [, template] of templates.sorted) {
    if (template.visible?.(caller) === false) continue
    const reading = template.match(uri)
    if (reading !== undefined) return template.visible === undefined ? reading : privately(reading)
  }
  return undefined
}

/** What not everybody may see is not to be shared, whatever its caching hints say. */
const privately = (read: Reader): Reader => (exchange) =>
  Effect.map(read(exchange), (result) => ({ ...result, cacheScope: "private" }))

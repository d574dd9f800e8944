import type * as Wire from "@skein/protocol/Content"
import type { ReadResourceResult } from "@skein/protocol/Resource"
import type { Caller, McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Hint } from "../../Caching.ts"
import type { Catalog, Handled, Reader } from "../../Catalog.ts"
import * as Content from "../../Content.ts"
import type { HandlerError } from "../../HandlerError.ts"
import { toMcpError } from "./handlerError.ts"
import * as details from "./validateDefinition.ts"
import type { Defined } from "../json.ts"

/** What a reader of resources may answer: text, bytes, contents made by `Content.resourceContents`, or the whole result. */
export type ResourceBody = string | Uint8Array | ReadonlyArray<Wire.AnyResourceContents> | ReadResourceResult

/** What is known of a resource before it is read. */
interface About extends Hint {
  readonly mimeType?: string | undefined
}

/** Reads a resource, and gives the contents that are meant. */
export const readResource = <E extends HandlerError>(
  read: Effect.Effect<ResourceBody, E, McpRequest>,
  uri: string,
  about: About
): Handled<ReadResourceResult> => {
  const hint = cacheHint(about)
  return Effect.mapBoth(read, {
    onFailure: toMcpError,
    onSuccess: (body) => {
      if (typeof body === "string" || body instanceof Uint8Array) {
        return { contents: [Content.resourceContents(uri, body, about.mimeType)], ...hint }
      }
      if (!("contents" in body)) return { contents: details.checkContents(body), ...hint }
      details.checkContents(body.contents)
      return { ...hint, ...body, ...cacheHint(body) }
    }
  })
}

/** The hint as it is written: "Servers MUST provide a `ttlMs` value that is `>= 0`", and an integer. */
export const cacheHint = ({ cacheScope, ttlMs }: Hint): Defined<Hint> => ({
  ...(ttlMs === undefined ? undefined : { ttlMs: whole(ttlMs) }),
  ...(cacheScope === undefined ? undefined : { cacheScope })
})

const whole = (ttlMs: number): number => Math.min(Math.max(0, Math.floor(ttlMs) || 0), Number.MAX_SAFE_INTEGER)

/** What reads a URI for a caller: a resource of that URI, or the first template that matches; `undefined` where nothing does. */
export const findReader = (
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

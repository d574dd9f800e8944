import type * as Wire from "@skein/protocol/Content"
import type { ReadResourceResult } from "@skein/protocol/Resource"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Hint } from "../../Caching.ts"
import type { Handled } from "../../Catalog.ts"
import * as Content from "../../Content.ts"
import type { HandlerError } from "../../HandlerError.ts"
import * as caching from "./caching.ts"
import * as details from "./validateDefinition.ts"
import { toMcpError } from "./handlerError.ts"

/** What a reader of resources may answer: text, bytes, contents made by `Content.resourceContents`, or the whole result. */
export type Body = string | Uint8Array | ReadonlyArray<Wire.AnyResourceContents> | ReadResourceResult

/** What is known of a resource before it is read. */
interface About extends Hint {
  readonly mimeType?: string | undefined
}

/** Reads a resource, and gives the contents that are meant. */
export const reading = <E extends HandlerError>(
  read: Effect.Effect<Body, E, McpRequest>,
  uri: string,
  about: About
): Handled<ReadResourceResult> => {
  const hint = caching.hint(about)
  return Effect.mapBoth(read, {
    onFailure: toMcpError,
    onSuccess: (body) => {
      if (typeof body === "string" || body instanceof Uint8Array) {
        return { contents: [Content.resourceContents(uri, body, about.mimeType)], ...hint }
      }
      if (!("contents" in body)) return { contents: details.contents(body), ...hint }
      details.contents(body.contents)
      return { ...hint, ...body, ...caching.hint(body) }
    }
  })
}

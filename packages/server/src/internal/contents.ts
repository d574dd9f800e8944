import type * as Wire from "@skein/protocol/Content"
import type { McpRequest } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import type { ReadResourceResult } from "@skein/protocol/Resource"
import type { Handled } from "../Catalog.ts"
import * as Content from "../Content.ts"
import type { HandlerError } from "../HandlerError.ts"
import { toMcpError } from "./handlerError.ts"

/** What a reader of resources may answer: text, bytes, or contents made by `Content.resourceContents`. */
export type Body = string | Uint8Array | ReadonlyArray<Wire.AnyResourceContents>

/** Reads a resource, and gives the contents that are meant. */
export const reading = <E extends HandlerError>(
  read: Effect.Effect<Body, E, McpRequest>,
  uri: string,
  mimeType: string | undefined
): Handled<ReadResourceResult> =>
  Effect.mapBoth(read, {
    onFailure: toMcpError,
    onSuccess: (body) => ({
      contents: typeof body === "string" || body instanceof Uint8Array
        ? [Content.resourceContents(uri, body, mimeType)]
        : body
    })
  })

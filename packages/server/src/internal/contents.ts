import type * as Wire from "@skein/protocol/Content"
import * as Content from "../Content.ts"

/** What a reader of resources may answer: text, bytes, or contents made by `Content.resourceContents`. */
export type Body = string | Uint8Array | ReadonlyArray<Wire.AnyResourceContents>

/** The contents that are meant. */
export const contents = (
  uri: string,
  body: Body,
  mimeType: string | undefined
): ReadonlyArray<Wire.AnyResourceContents> =>
  typeof body === "string" || body instanceof Uint8Array ? [Content.resourceContents(uri, body, mimeType)] : body

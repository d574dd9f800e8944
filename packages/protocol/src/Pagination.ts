/**
 * Pagination: the params and the result of a request for one page of a list (server/utilities/pagination, in every
 * revision). `Cursor` writes and reads the cursors of Skein's own servers.
 */
import * as Schema from "effect/Schema"
import { essential } from "./Annotate.ts"
import { requestFields, resultFields } from "./Message.ts"

/** An opaque position in a list. */
export const Cursor = Schema.String
export type Cursor = string

/** The params of a request for a page of a list. Without a `cursor` it is the first page. */
export class PaginatedRequestParams extends Schema.Opaque<PaginatedRequestParams>()(Schema.Struct({
  ...requestFields,
  cursor: essential(Schema.optionalKey(Cursor))
})) {}

/**
 * The fields of a page of a list. A `nextCursor` of `null` ends the list as an absent one does: the specification asks
 * "whether a non-null value was provided" (2026-07-28, pagination).
 */
export const pageFields = {
  ...resultFields,
  nextCursor: essential(Schema.optionalKey(Cursor))
}

/** A page of a list without its items. */
export class PaginatedResult extends Schema.Opaque<PaginatedResult>()(Schema.Struct(pageFields)) {}

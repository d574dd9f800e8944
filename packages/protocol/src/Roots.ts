/**
 * Roots: the places that the client works in, `roots/list`.
 */
import * as Schema from "effect/Schema"
import { answerFields, metaFields, RequestParams, Uri } from "./Common.ts"

/** A directory or file, as a `file://` URI. */
export class Root extends Schema.Opaque<Root>()(Schema.Struct({
  uri: Uri,
  name: Schema.optionalKey(Schema.String),
  ...metaFields
})) {}

/** The params of `roots/list`. */
export const ListRootsRequestParams = RequestParams
export type ListRootsRequestParams = RequestParams

/** The answer to `roots/list`. */
export class ListRootsResult extends Schema.Opaque<ListRootsResult>()(Schema.Struct({
  ...answerFields,
  roots: Schema.Array(Root)
})) {}

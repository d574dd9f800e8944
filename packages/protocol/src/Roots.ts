/**
 * Roots: the directories and files that the client works in, `roots/list`.
 */
import * as Schema from "effect/Schema"
import { answerFields, metaFields, RequestParams } from "./Message.ts"
import { Uri } from "./Primitive.ts"

/** A directory or file, as a `file://` URI. */
export class Root extends Schema.Opaque<Root>()(Schema.Struct({
  uri: Uri,
  name: Schema.optionalKey(Schema.String),
  ...metaFields
})) {}

/** The params of `roots/list`. */
export const ListRootsRequestParams = RequestParams
export type ListRootsRequestParams = RequestParams

/** The result of `roots/list`. */
export class ListRootsResult extends Schema.Opaque<ListRootsResult>()(Schema.Struct({
  ...answerFields,
  roots: Schema.Array(Root)
})) {}

/**
 * The name and version of a client or server: `clientInfo` and `serverInfo`.
 */
import * as Schema from "effect/Schema"
import { since } from "./Annotate.ts"
import { iconFields, nameFields } from "./BaseMetadata.ts"
import { isObject } from "./JsonRpc.ts"
import { Uri } from "./Primitive.ts"

/** The name and version of a client or server, as it declares them. */
export class Implementation extends Schema.Opaque<Implementation>()(Schema.Struct({
  ...nameFields,
  version: Schema.String,
  description: since("2025-11-25", Schema.optionalKey(Schema.String)),
  websiteUrl: since("2025-11-25", Schema.optionalKey(Uri)),
  ...iconFields
})) {}

/**
 * Whether the value has the members that every revision requires: a `name` and a `version`. Use it where compiling the
 * schema would delay a start or every request; it does not check the optional members.
 */
export const isImplementation = (value: unknown): value is Implementation =>
  isObject(value) && typeof value["name"] === "string" && typeof value["version"] === "string"

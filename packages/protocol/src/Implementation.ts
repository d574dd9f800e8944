/**
 * The name and version of a client or server: `clientInfo` and `serverInfo`.
 */
import * as Schema from "effect/Schema"
import { since } from "./Annotate.ts"
import { iconFields, nameFields } from "./BaseMetadata.ts"
import { Uri } from "./Primitive.ts"

/** The name and version of a client or server, as it declares them. */
export class Implementation extends Schema.Opaque<Implementation>()(Schema.Struct({
  ...nameFields,
  version: Schema.String,
  description: since("2025-11-25", Schema.optionalKey(Schema.String)),
  websiteUrl: since("2025-11-25", Schema.optionalKey(Uri)),
  ...iconFields
})) {}

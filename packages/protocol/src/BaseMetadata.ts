/**
 * The members that tools, prompts, resources and implementations have in common: a name, a title, icons.
 */
import * as Schema from "effect/Schema"
import { since } from "./Annotate.ts"
import { Uri } from "./Primitive.ts"

/** The fields `name`, for programs, and `title`, for people. */
export const nameFields = {
  name: Schema.String,
  title: since("2025-06-18", Schema.optionalKey(Schema.String))
}

/** A name and a title. */
export class BaseMetadata extends Schema.Opaque<BaseMetadata>()(Schema.Struct(nameFields)) {}

/** An icon to show beside an item. `sizes` holds texts such as `48x48` and `any`. */
export class Icon extends Schema.Opaque<Icon>()(Schema.Struct({
  src: Uri,
  mimeType: Schema.optionalKey(Schema.String),
  sizes: Schema.optionalKey(Schema.Array(Schema.String)),
  theme: Schema.optionalKey(Schema.Literals(["light", "dark"]))
})) {}

/** The field `icons`, since 2025-11-25. */
export const iconFields = { icons: since("2025-11-25", Schema.optionalKey(Schema.Array(Icon))) }

/**
 * Why a definition cannot be offered.
 */
import * as Data from "effect/Data"

/**
 * A definition that cannot be offered. It fails the layer that offers it, when that is built.
 *
 * - `Duplicate`: something with the same name, or the same URI, is offered already.
 * - `Schema`: a schema cannot be said as JSON Schema, or is not one that the specification allows.
 * - `Unknown`: there is nothing of that name to replace, remove, enable or disable.
 * - `Uri`: the URI of a resource is none.
 * - `UriTemplate`: the URI template is malformed.
 * - `Value`: something that it says of itself is not what the specification allows: the `src` of an icon that is no URI, a `priority`
 *   beyond 1, a `size` that is no whole number, a key of `_meta` that is none, and so on.
 */
export class DefinitionError extends Data.TaggedError("DefinitionError")<{
  readonly reason: "Duplicate" | "Schema" | "Unknown" | "Uri" | "UriTemplate" | "Value"
  readonly kind: "tool" | "resource" | "resource template" | "prompt"
  /** The name of the definition; of a resource its URI, of a template its text. */
  readonly definition: string
  readonly message: string
}> {}

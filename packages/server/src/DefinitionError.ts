/**
 * The errors of definitions: why a tool, resource, template or prompt cannot be registered or changed.
 *
 * @example
 * Tool.add(search, find).pipe(Effect.catchReason("DefinitionError", "DuplicateName", () => Effect.void))
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The catalog has an entry with the same name, or the same URI, already. */
export class DuplicateName extends PrintableError.tagged("DuplicateName") {}

/** No entry has the name: there is nothing to replace, remove, enable or disable. */
export class NotFound extends PrintableError.tagged("NotFound") {}

/**
 * A schema has no JSON Schema, or one that the specification does not allow. An invalid `x-mcp-header` annotation is
 * such a fault too.
 */
export class InvalidSchema extends PrintableError.tagged("InvalidSchema")<{
  /** The schema of the definition that is invalid. */
  readonly schema: "input" | "output" | "arguments" | "variables"
  readonly cause?: unknown
}> {}

/** The URI of a resource is not a URI by RFC 3986. */
export class InvalidUri extends PrintableError.tagged("InvalidUri") {}

/** The URI template is malformed or exceeds a bound. */
export class InvalidUriTemplate extends PrintableError.tagged("InvalidUriTemplate") {}

/**
 * A value of the definition is not allowed by the specification: the `src` of an icon is not a URI, a `priority` is
 * above 1, a `size` is not a whole number, a key of `_meta` is malformed, and so on.
 */
export class InvalidValue extends PrintableError.tagged("InvalidValue") {}

/** Why a definition cannot be registered or changed. */
export type Reason = DuplicateName | NotFound | InvalidSchema | InvalidUri | InvalidUriTemplate | InvalidValue

/**
 * A definition that cannot be registered or changed. It fails the layer or the effect that does so.
 *
 * The `reason` is a tagged error with the details, for `Effect.catchReason`. The `message` is that of the reason and
 * names the definition.
 */
export class DefinitionError extends PrintableError.withReason("DefinitionError")<{
  readonly reason: Reason
  readonly kind: "tool" | "resource" | "resource template" | "prompt"
  /** The name of the definition: the URI of a resource, the text of a template. */
  readonly definition: string
}> {}

/**
 * Why an OpenAPI document could not be served.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** A document could not be read: its file, or the answer of its URL. */
export class LoadFailed extends PrintableError.tagged("LoadFailed")<{
  /** The URL of the document. */
  readonly url: string
}> {}

/** A document is neither JSON nor YAML. The message has the line, as far as the parser reports it. */
export class ParseFailed extends PrintableError.tagged("ParseFailed")<{
  /** The URL of the document, if it has one. */
  readonly url: string | undefined
}> {}

/** The document is not of OpenAPI 3: of Swagger 2.0, for example. */
export class UnsupportedVersion extends PrintableError.tagged("UnsupportedVersion") {}

/** A part of the document, or the base URL, is not as the specification demands. */
export class InvalidDocument extends PrintableError.tagged("InvalidDocument")<{
  /** The JSON Pointer of the part, `#/servers/0/url` for example. */
  readonly place: string
}> {}

/** A `$ref` leads to a place that does not exist, or in a circle of references. */
export class InvalidReference extends PrintableError.tagged("InvalidReference")<{
  readonly reference: string
}> {}

/** A `$ref` leads to another document that the options do not allow: see `OpenApi.Options.allowReference`. */
export class ReferenceNotAllowed extends PrintableError.tagged("ReferenceNotAllowed")<{
  readonly reference: string
}> {}

/** The document exceeds a bound. */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded")<{
  /** The option with the bound, or one that is fixed: the number or the size of documents, or the time to load them. */
  readonly limit: "maxOperations" | "documents" | "documentBytes" | "loadTime"
}> {}

/** An operation cannot be called, and `onInvalidOperation` is `"fail"`. */
export class InvalidOperation extends PrintableError.tagged("InvalidOperation")<{
  /** The JSON Pointer of the operation. */
  readonly place: string
}> {}

/** Why a document could not be served. */
export type Reason =
  | LoadFailed
  | ParseFailed
  | UnsupportedVersion
  | InvalidDocument
  | InvalidReference
  | ReferenceNotAllowed
  | LimitExceeded
  | InvalidOperation

/**
 * A document could not be served. It fails the layer. The `reason` has the details, and the `message` is that of the
 * reason.
 *
 * @example
 * const pets = OpenApi.layer(new URL("https://pets.example/openapi.json")).pipe(
 *   Layer.catchTag("OpenApiError", ({ message }) => Layer.effectDiscard(Effect.logError(message)))
 * )
 */
export class OpenApiError extends PrintableError.withReason("OpenApiError")<{
  readonly reason: Reason
}> {}

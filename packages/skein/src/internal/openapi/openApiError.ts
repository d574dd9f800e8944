/**
 * The errors of OpenAPI documents.
 */
import * as Core from "@skein/openapi/OpenApiError"

/** Why a document cannot be served. */
export type OpenApiErrorReason =
  /** The document, or a file or an answer that it needs, could not be read. */
  | { readonly _tag: "LoadFailed"; readonly message: string; readonly url: string }
  /** It is neither JSON nor YAML. The message has the line, as far as the parser reports it. */
  | { readonly _tag: "ParseFailed"; readonly message: string; readonly url: string | undefined }
  /** It is not of OpenAPI 3: of Swagger 2.0, for example. */
  | { readonly _tag: "UnsupportedVersion"; readonly message: string }
  /** A part of it, or the base URL, is not as the specification demands. `place` is the JSON Pointer of the part. */
  | { readonly _tag: "InvalidDocument"; readonly message: string; readonly place: string }
  /** A `$ref` leads to a place that does not exist, or in a circle of references. */
  | { readonly _tag: "InvalidReference"; readonly message: string; readonly reference: string }
  /** A `$ref` leads to another document that `allowReference` does not allow. */
  | { readonly _tag: "ReferenceNotAllowed"; readonly message: string; readonly reference: string }
  /** It exceeds a bound: an option, or the fixed number or size of documents, or the time to load them. */
  | {
    readonly _tag: "LimitExceeded"
    readonly message: string
    readonly limit: "maxOperations" | "documents" | "documentBytes" | "loadTime"
  }
  /** An operation cannot be called, and `onInvalidOperation` is `"fail"`. `place` is its JSON Pointer. */
  | { readonly _tag: "InvalidOperation"; readonly message: string; readonly place: string }

/**
 * An OpenAPI document cannot be served.
 *
 * @example
 * const listing = await listOpenApi(url).catch((error) => {
 *   if (error instanceof OpenApiError && error.reason._tag === "LoadFailed") return undefined
 *   throw error
 * })
 */
export interface OpenApiError extends Error {
  readonly _tag: "OpenApiError"
  readonly reason: OpenApiErrorReason
}

/** The class of `OpenApiError`, for `instanceof`. */
export interface OpenApiErrorClass {
  readonly [Symbol.hasInstance]: (value: unknown) => value is OpenApiError
}

export const OpenApiError: OpenApiErrorClass = Core.OpenApiError as never

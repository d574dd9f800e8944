/**
 * Errors that programs throw and catch. Each is the class of the packages `@skein/*`, with a type without Effect.
 */
import * as Core from "@skein/protocol/McpError"
import * as HandlerError from "@skein/server/HandlerError"
import * as Http from "@skein/server/Http"
import * as CoreInputError from "@skein/server/InputError"
import * as CoreStateError from "@skein/server/StateError"
import type { JsonObject, Revision } from "./messages.ts"

/**
 * An error of a handler whose message the client, or its model, receives. Write it as an instruction that a model can act
 * on. The messages of other errors may contain secrets: they stay in the log, and the client receives a reference.
 *
 * @example
 * throw new VisibleError("No tea is left today. Ask again tomorrow")
 */
export interface VisibleError extends Error {
  readonly name: "VisibleError"
}

/** The class of `VisibleError`. */
export interface VisibleErrorClass {
  new(message?: string, options?: { readonly cause?: unknown }): VisibleError
  readonly prototype: VisibleError
}

export const VisibleError: VisibleErrorClass = HandlerError.VisibleError

/** Why a request failed. `Other` is the reason of every other code; the error has that `code`. */
export type McpErrorReason =
  | "ParseError"
  | "InvalidRequest"
  | "MethodNotFound"
  | "InvalidParams"
  | "InternalError"
  | "ResourceNotFound"
  | "UrlElicitationRequired"
  | "HeaderMismatch"
  | "MissingRequiredClientCapability"
  | "UnsupportedProtocolVersion"
  | "Other"

/** The HTTP response that an error is sent with, if it is not 200. */
export interface HttpError {
  readonly status: number
  readonly headers?: { readonly [name: string]: string } | undefined
}

/** The members of an `McpError`. */
export interface McpErrorFields {
  readonly reason: McpErrorReason
  readonly message: string
  /** Details for the receiver, as JSON. */
  readonly data?: unknown
  /** The code as received, or as given to `applicationError`. It is written only where the reason is `Other`. */
  readonly code?: number | undefined
  /** The HTTP response, if it is not 200: see `withHttp`. */
  readonly http?: HttpError | undefined
}

/** An error of the protocol, which becomes a JSON-RPC error response. `invalidParams` and the like make one. */
export interface McpError extends Error, McpErrorFields {
  readonly _tag: "McpError"
  readonly message: string
}

/** The class of `McpError`. */
export interface McpErrorClass {
  new(fields: McpErrorFields): McpError
  readonly prototype: McpError
}

export const McpError: McpErrorClass = Core.McpError

/**
 * Makes the error for params that are not valid, or that name something that does not exist: `-32602`.
 *
 * @example
 * throw invalidParams("limit must be at most 100")
 */
export const invalidParams: (message?: string, data?: unknown) => McpError = Core.invalidParams

/** Makes the error for a request that is not allowed now: `-32600`. */
export const invalidRequest: (message?: string, data?: unknown) => McpError = Core.invalidRequest

/** Makes the error for a method that does not exist: `-32601`. The name is cut at 128 characters. */
export const methodNotFound: (method: string, data?: unknown) => McpError = Core.methodNotFound

/**
 * Makes the error for a resource that does not exist: `-32002` up to 2025-11-25, `-32602` in 2026-07-28.
 *
 * @example
 * if (note === undefined) throw resourceNotFound(uri)
 */
export const resourceNotFound: (uri: string) => McpError = Core.resourceNotFound

/**
 * Makes the error for a request that needs capabilities which the client has not declared: `-32021` in 2026-07-28.
 *
 * @example
 * throw missingCapability({ elicitation: { url: {} } })
 */
export const missingCapability: (capabilities: JsonObject) => McpError = Core.missingRequiredClientCapability

/**
 * Makes an error of the application. Choose a code outside `-32768` to `-32000`, which JSON-RPC reserves.
 *
 * @example
 * throw applicationError(1001, "The account is locked", { until: "2026-08-01" })
 */
export const applicationError: (code: number, message: string, data?: unknown) => McpError = Core.other

/**
 * Gives an error an HTTP status and headers. Over HTTP they are those of the response, if the error is the first message
 * that is sent about its request. Elsewhere only the JSON-RPC error is sent.
 *
 * @example
 * throw withHttp(invalidRequest("Forbidden: the shop is closed"), { status: 403 })
 */
export const withHttp: (error: McpError, http: HttpError) => McpError = Core.withHttp as never

/** Why an input request has no answer. */
export interface InputErrorReason {
  /**
   * - `MissingCapability`: the client has not declared a capability that the input request needs. Nothing was sent.
   * - `Unsupported`: the revision cannot carry the input request, or this request may not be answered with one.
   * - `InvalidRequest`: the specification does not allow the input request. For example, a form has a field with fields.
   * - `InvalidResponse`: the client's answer is not valid for the input request.
   * - `Declined`, `Cancelled`: the user declined, or dismissed the input request.
   * - `ProtocolError`: the client answered with a JSON-RPC error.
   * - `Timeout`: no answer came within the `timeout`, or a `once` took longer than its own.
   * - `LimitExceeded`: too many input requests wait, or the request was answered with input requests too often.
   * - `Closed`: the connection ended, or the request was over already.
   */
  readonly _tag:
    | "MissingCapability"
    | "Unsupported"
    | "InvalidRequest"
    | "InvalidResponse"
    | "Declined"
    | "Cancelled"
    | "ProtocolError"
    | "Timeout"
    | "LimitExceeded"
    | "Closed"
  readonly message: string
  readonly cause?: unknown
  /** Of `MissingCapability`: the missing capabilities, as the client would have declared them. */
  readonly capabilities?: JsonObject
  /** Of `ProtocolError`: the error as it was received. */
  readonly error?: McpError
}

/**
 * An input request (`elicit`, `sample`, `roots`) without an answer, or a `once` that took too long. A handler may let it
 * pass: its caller then receives the message.
 *
 * @example
 * try {
 *   return await sample({ messages: text, maxTokens: 100 })
 * } catch (error) {
 *   if (error instanceof InputError && error.reason._tag === "MissingCapability") return text
 *   throw error
 * }
 */
export interface InputError extends Error {
  readonly _tag: "InputError"
  readonly reason: InputErrorReason
  /** The method of the input request, for example `elicitation/create`, or the key of a `once`. */
  readonly method: string
  readonly revision: Revision
}

/** The class of `InputError`, for `instanceof`. */
export interface InputErrorClass {
  readonly [Symbol.hasInstance]: (value: unknown) => value is InputError
}

export const InputError: InputErrorClass = CoreInputError.InputError as never

/** Why an operation on a state failed. */
export interface StateErrorReason {
  /**
   * - `Anonymous`: the state belongs to a user, and the caller is anonymous.
   * - `NoSession`: the state belongs to a session, and the request has none.
   * - `TooLarge`, `Full`: the value, all values of its owner, or all values of the store exceed a bound.
   * - `InvalidValue`: the value does not match the schema, or has no JSON form.
   * - `Conflict`: other requests changed the value each time before this one could write it.
   * - `Unavailable`: the store failed.
   */
  readonly _tag: "Anonymous" | "NoSession" | "TooLarge" | "Full" | "InvalidValue" | "Conflict" | "Unavailable"
  readonly message: string
  readonly cause?: unknown
}

/** A failed operation on a state. The earlier value stays. */
export interface StateError extends Error {
  readonly _tag: "StateError"
  readonly reason: StateErrorReason
}

/** The class of `StateError`, for `instanceof`. */
export interface StateErrorClass {
  readonly [Symbol.hasInstance]: (value: unknown) => value is StateError
}

export const StateError: StateErrorClass = CoreStateError.StateError as never

/** The members of a `Refusal`. */
export interface RefusalFields {
  /** The status of the response, from 400 to 599. */
  readonly status: number
  readonly message: string
  readonly headers?: { readonly [name: string]: string } | undefined
}

/**
 * Refuses an HTTP request: the function that finds its principal throws it. The response has this status, these headers,
 * and a JSON-RPC error with this message.
 *
 * @example
 * throw new Refusal({ status: 401, message: "Unauthorized", headers: { "www-authenticate": "Bearer" } })
 */
export interface Refusal extends Error, RefusalFields {
  readonly _tag: "Refusal"
  readonly message: string
}

/** The class of `Refusal`. */
export interface RefusalClass {
  new(fields: RefusalFields): Refusal
  readonly prototype: Refusal
}

export const Refusal: RefusalClass = Http.Refusal as never

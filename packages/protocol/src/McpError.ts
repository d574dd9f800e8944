/**
 * The typed errors of the Model Context Protocol, and the code that each has in each revision.
 *
 * An error is a value with a `reason`. Its JSON-RPC code is chosen when it is written, by `toErrorObject`, because the same
 * reason has different codes in different revisions; `fromErrorObject` reads a peer's error back.
 *
 * The constructors (`invalidParams`, `methodNotFound`, …) capture no stack trace: refusing a request costs about a tenth of a
 * microsecond, a captured stack five. `new McpError({…})` captures one, as every error class does.
 */
import * as Data from "effect/Data"
import { clip } from "./internal/clip.ts"
import * as JsonRpc from "./JsonRpc.ts"
import * as Revision from "./Revision.ts"

/** Why a request failed. `Other` keeps the code that the peer, or the author, gave it. */
export type Reason =
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

/** A protocol fault: what a JSON-RPC error says. `code` counts only where the reason is `Other`. */
export class McpError extends Data.TaggedError("McpError")<{
  readonly reason: Reason
  readonly message: string
  readonly data?: unknown
  readonly code?: number
}> {
  static {
    // Errors made without a stack still answer one when they are logged.
    Object.defineProperty(this.prototype, "stack", {
      configurable: true,
      get(this: McpError): string {
        return `${this.name}: ${this.message}`
      },
      set(this: McpError, value: unknown) {
        Object.defineProperty(this, "stack", { configurable: true, writable: true, value })
      }
    })
  }
}

interface Fields {
  _tag: "McpError"
  reason: Reason
  message: string
  data?: unknown
  code?: number
}

const make = (reason: Reason, message: string, data?: unknown, code?: number): McpError => {
  const error = Object.create(McpError.prototype) as Fields
  error._tag = "McpError"
  error.reason = reason
  error.message = message
  if (data !== undefined) error.data = data
  if (code !== undefined) error.code = code
  return error as unknown as McpError
}

/** Whether the value is an `McpError`. */
export const isMcpError = (value: unknown): value is McpError => value instanceof McpError

/** The text was not JSON: `-32700`. */
export const parseError = (message = "Parse error", data?: unknown): McpError => make("ParseError", message, data)

/** The message was JSON but not a request, or not one that may be sent now: `-32600`. */
export const invalidRequest = (message = "Invalid request", data?: unknown): McpError =>
  make("InvalidRequest", message, data)

/** The receiver does not have the method, or did not offer the capability that it belongs to: `-32601`. */
export const methodNotFound = (method: string, data?: unknown): McpError =>
  make("MethodNotFound", `Method not found: ${clip(method)}`, data)

/** The parameters do not fit the method, or name what is not there: `-32602`. */
export const invalidParams = (message = "Invalid params", data?: unknown): McpError =>
  make("InvalidParams", message, data)

/**
 * Something broke on this side: `-32603`. The peer learns nothing but a reference, as `data.reference`, under which the cause
 * stands in the log.
 */
export const internal = (reference?: string): McpError =>
  make("InternalError", "Internal error", reference === undefined ? undefined : { reference })

/** There is no such resource: `-32002` up to 2025-11-25, `-32602` in 2026-07-28. The URI stands in `data.uri`. */
export const resourceNotFound = (uri: string): McpError => make("ResourceNotFound", "Resource not found", { uri })

/**
 * The request cannot go on before the user has visited these URLs: `-32042`, in 2025-11-25 only. Each elicitation is the
 * params of an `elicitation/create` in URL mode, with its `elicitationId`.
 */
export const urlElicitationRequired = (
  elicitations: ReadonlyArray<JsonRpc.JsonObject>,
  message = "This request requires more information"
): McpError => make("UrlElicitationRequired", message, { elicitations })

/**
 * The HTTP headers and the body disagree, or a required header is missing or malformed: `-32020` in 2026-07-28. `detail` is a
 * sentence such as those that `Header` and `XMcpHeader` give.
 */
export const headerMismatch = (detail: string): McpError => make("HeaderMismatch", `Header mismatch: ${detail}`)

/**
 * The request needs capabilities that the client did not declare: `-32021` in 2026-07-28. They are written as the client
 * would have declared them, `{ elicitation: { url: {} } }` for instance.
 */
export const missingRequiredClientCapability = (requiredCapabilities: JsonRpc.JsonObject): McpError =>
  make(
    "MissingRequiredClientCapability",
    `Missing required client capability: ${clip(Object.keys(requiredCapabilities).join(", "))}`,
    { requiredCapabilities }
  )

/** The receiver does not speak the requested version: `-32022` in 2026-07-28, `-32602` before. */
export const unsupportedProtocolVersion = (options: {
  readonly supported: ReadonlyArray<string>
  readonly requested: string
}): McpError =>
  make("UnsupportedProtocolVersion", "Unsupported protocol version", {
    supported: options.supported,
    requested: options.requested
  })

/**
 * An error of the application's own. The specification asks for a code outside `-32768` to `-32000`. A code that a revision
 * forbids is replaced when it is written; see `toErrorObject`.
 */
export const other = (code: number, message: string, data?: unknown): McpError => make("Other", message, data, code)

const standard: Partial<Record<Reason, number>> = {
  ParseError: -32700,
  InvalidRequest: -32600,
  MethodNotFound: -32601,
  InvalidParams: -32602,
  InternalError: -32603
}

// Before 2026-07-28 a refused version was -32602, as the lifecycle pages show; headers and capabilities had no code of
// their own, and the request was one that may not be sent.
const session: Partial<Record<Reason, number>> = {
  ResourceNotFound: -32002,
  HeaderMismatch: -32600,
  MissingRequiredClientCapability: -32600,
  UnsupportedProtocolVersion: -32602
}

const request: Partial<Record<Reason, number>> = {
  ResourceNotFound: -32602,
  HeaderMismatch: -32020,
  MissingRequiredClientCapability: -32021,
  UnsupportedProtocolVersion: -32022
}

// 2026-07-28, basic, error codes: -32002 and -32042 MUST NOT be emitted, nor a code from -32020 to -32099 that is not defined;
// those that are MUST have their own meaning, and so have a reason of their own.
const permitted = (code: number | undefined, revision: Revision.Revision): number => {
  if (!Number.isSafeInteger(code)) return -32603
  if (Revision.era(revision) === "session") return code!
  if (code === -32002) return -32602
  return code! <= -32020 && code! >= -32099 ? -32603 : code!
}

/**
 * The code of an error in a revision.
 *
 * - `ResourceNotFound` is `-32002` up to 2025-11-25 and `-32602` in 2026-07-28.
 * - `UrlElicitationRequired` is `-32042` in 2025-11-25 and `-32603` in every other revision: they have no code for it, and it
 *   is this side that cannot go on.
 * - `HeaderMismatch`, `MissingRequiredClientCapability` and `UnsupportedProtocolVersion` are `-32020` to `-32022` in
 *   2026-07-28, and `-32600`, `-32600` and `-32602` before.
 * - `Other` keeps its code, with two exceptions: what is not a safe integer becomes `-32603`, and in 2026-07-28 the codes that
 *   it MUST NOT emit become `-32602` (`-32002`) or `-32603` (`-32020` to `-32099`: those that are defined have a reason of
 *   their own, since they MUST be used with their specified meanings only).
 */
export const codeOf = (error: McpError, revision: Revision.Revision): number => {
  const reason = error.reason
  if (reason === "Other") return permitted(error.code, revision)
  if (reason === "UrlElicitationRequired") return revision === "2025-11-25" ? -32042 : -32603
  return standard[reason] ?? (Revision.era(revision) === "session" ? session : request)[reason] ?? -32603
}

/** Writes an error for a peer that speaks `revision`. See {@link codeOf} for the code; message and data are kept. */
export const toErrorObject = (error: McpError, revision: Revision.Revision): JsonRpc.ErrorObject => {
  const code = codeOf(error, revision)
  return error.data === undefined
    ? { code, message: error.message }
    : { code, message: error.message, data: error.data }
}

const member = (data: unknown, key: string): unknown =>
  JsonRpc.isObject(data) && Object.hasOwn(data, key) ? data[key] : undefined

const isVersions = (data: unknown): boolean =>
  Array.isArray(member(data, "supported")) && typeof member(data, "requested") === "string"

// What SEP-2243 had before the codes were allotted anew. Others say other things with it: "Session not found", for instance.
const isDraftMismatch = (message: string): boolean => /^header mismatch\b/i.test(message)

const reasonOf = ({ code, data, message }: JsonRpc.ErrorObject, revision: Revision.Revision): Reason => {
  const modern = Revision.era(revision) === "request"
  switch (code) {
    case -32700:
      return "ParseError"
    case -32600:
      return "InvalidRequest"
    case -32601:
      return "MethodNotFound"
    case -32602:
      if (modern) return typeof member(data, "uri") === "string" ? "ResourceNotFound" : "InvalidParams"
      return isVersions(data) ? "UnsupportedProtocolVersion" : "InvalidParams"
    case -32603:
      return "InternalError"
    case -32002:
      return "ResourceNotFound"
    case -32042:
      return "UrlElicitationRequired"
    case -32001:
      return isDraftMismatch(message) ? "HeaderMismatch" : "Other"
    case -32020:
      return "HeaderMismatch"
    case -32021:
      return "MissingRequiredClientCapability"
    case -32022:
      return "UnsupportedProtocolVersion"
    default:
      return "Other"
  }
}

/**
 * Reads a peer's error. It never throws, and is lenient:
 *
 * - `-32002`, `-32042` and `-32020` to `-32022` are read in every revision: no revision gives them another meaning.
 * - In 2026-07-28 `-32602` with a `data.uri` is `ResourceNotFound`; before, `-32602` with `data.supported` and
 *   `data.requested` is `UnsupportedProtocolVersion`, as the lifecycle pages show it.
 * - `-32001` is `HeaderMismatch` where the message says so: peers that were written to a draft of 2026-07-28 send it.
 * - Whatever else is between `-32000` and `-32019` stays `Other`: "receivers MUST NOT assume any specific meaning for these
 *   codes" (2026-07-28, basic, error codes).
 *
 * `code` keeps the number as it was received.
 */
export const fromErrorObject = (object: JsonRpc.ErrorObject, revision: Revision.Revision): McpError =>
  make(reasonOf(object, revision), object.message, object.data, object.code)

/**
 * Whether an error can only have come from a peer of the request era: `-32020` to `-32022`. A client that probes a server does not
 * fall back to `initialize` after one (2026-07-28, versioning, backward compatibility).
 */
export const isRequestEra = ({ code }: JsonRpc.ErrorObject): boolean => code <= -32020 && code >= -32022

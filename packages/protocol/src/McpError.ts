/**
 * The errors of the Model Context Protocol, and the JSON-RPC code of each in each revision.
 *
 * An error has a `reason`. {@link toErrorObject} chooses the code when the error is written, because a reason can have
 * different codes in different revisions. {@link fromErrorObject} reads the error of a peer.
 *
 * The constructors ({@link invalidParams}, {@link methodNotFound}, …) capture no stack trace: refusing a request then
 * takes about 0.1 µs, and capturing a stack 5 µs. `new McpError({…})` captures one, as any error class.
 *
 * @example
 * const handler = (name: string) =>
 *   name === "" ? Effect.fail(McpError.invalidParams("name must not be empty")) : Effect.succeed(name)
 */
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import type * as Types from "effect/Types"
import * as JsonRpc from "./JsonRpc.ts"
import * as Revision from "./Revision.ts"
import { clip, printableLines } from "./Text.ts"

/** Why a request failed. `Other` is the reason of every other code; the error has that `code`. */
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

/** An error of the protocol, which becomes a JSON-RPC error response. Make one with the constructors of this module. */
export class McpError extends Data.TaggedError("McpError")<{
  readonly reason: Reason
  readonly message: string
  /** Details for the receiver, as JSON. */
  readonly data?: unknown
  /** The code as received, or as given to {@link other}. It is written only where the reason is `Other`. */
  readonly code?: number | undefined
  /** The HTTP response, if it is not 200: see {@link withHttp}. */
  readonly http?: JsonRpc.HttpError | undefined
}> {
  static {
    // An error without a captured stack needs one for logs.
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

type Fields = Types.Mutable<Pick<McpError, "_tag" | "reason" | "message" | "data" | "code" | "http">>

const make = (reason: Reason, message: string, data?: unknown, code?: number): McpError => {
  const error = Object.create(McpError.prototype) as Fields
  error._tag = "McpError"
  error.reason = reason
  error.message = message
  if (data !== undefined) error.data = data
  if (code !== undefined) error.code = code
  return error as unknown as McpError
}

/** Whether the value is an `McpError`, also of another copy of this module: the package `skein` has its own. */
export const isMcpError = (value: unknown): value is McpError =>
  value instanceof McpError ||
  (value instanceof Error && Predicate.isTagged(value, "McpError") && "reason" in value &&
    Predicate.isString(value.reason))

/** The text is not JSON: `-32700`. */
export const parseError = (message = "Parse error", data?: unknown): McpError => make("ParseError", message, data)

/** The message is not a request, or the request is not allowed now: `-32600`. */
export const invalidRequest = (message = "Invalid request", data?: unknown): McpError =>
  make("InvalidRequest", message, data)

/**
 * The receiver does not have the method, or has not declared its capability: `-32601`. The name is cut at 128
 * characters.
 */
export const methodNotFound = (method: string, data?: unknown): McpError =>
  make("MethodNotFound", `Method not found: ${clip(method)}`, data)

/**
 * The params are invalid, or name something that does not exist: `-32602`.
 *
 * @example
 * McpError.invalidParams("Unknown tool: add")
 */
export const invalidParams = (message = "Invalid params", data?: unknown): McpError =>
  make("InvalidParams", message, data)

/**
 * The receiver failed internally: `-32603`. The peer gets only a reference, in `data.reference`. Log the cause with the
 * same reference.
 */
export const internal = (reference?: string): McpError =>
  make("InternalError", "Internal error", reference === undefined ? undefined : { reference })

/** The resource does not exist: `-32002` up to 2025-11-25, `-32602` in 2026-07-28. The URI is in `data.uri`. */
export const resourceNotFound = (uri: string): McpError => make("ResourceNotFound", "Resource not found", { uri })

/**
 * The HTTP headers do not match the body, or a required header is missing or malformed: `-32020` in 2026-07-28.
 * `Header.mismatch` and `XMcpHeader.mismatch` return the `detail`.
 */
export const headerMismatch = (detail: string): McpError => make("HeaderMismatch", `Header mismatch: ${detail}`)

/**
 * The request needs capabilities that the client has not declared: `-32021` in 2026-07-28. They have the form of a
 * declaration.
 *
 * @example
 * McpError.missingRequiredClientCapability({ elicitation: { url: {} } })
 */
export const missingRequiredClientCapability = (requiredCapabilities: JsonRpc.JsonObject): McpError =>
  make(
    "MissingRequiredClientCapability",
    `Missing required client capability: ${clip(Object.keys(requiredCapabilities).join(", "))}`,
    { requiredCapabilities }
  )

/** The receiver does not support the requested revision: `-32022` in 2026-07-28, `-32602` up to 2025-11-25. */
export const unsupportedProtocolVersion = (options: {
  readonly supported: ReadonlyArray<string>
  readonly requested: string
}): McpError =>
  make("UnsupportedProtocolVersion", "Unsupported protocol version", {
    supported: options.supported,
    requested: options.requested
  })

/**
 * An error of the application. Choose a code outside `-32768` to `-32000`, which JSON-RPC reserves. A code that a
 * revision forbids is replaced when the error is written; see {@link codeOf}.
 *
 * @example
 * McpError.other(1001, "The account is locked", { until: "2026-08-01" })
 */
export const other = (code: number, message: string, data?: unknown): McpError => make("Other", message, data, code)

/**
 * Gives an error an HTTP status and headers, such as 403 with `WWW-Authenticate`. Over HTTP they are those of the
 * response, if the error is the first message that is sent about its request. After a message, in a batch, over HTTP+SSE
 * and over stdio only the JSON-RPC error is sent, so its `data` should have what the client needs. They are not a part
 * of the JSON-RPC message.
 *
 * @example
 * McpError.withHttp(McpError.invalidRequest("Forbidden: the shop is closed"), { status: 403 })
 */
export const withHttp = ({ code, data, message, reason }: McpError, http: JsonRpc.HttpError): McpError => {
  const error = make(reason, message, data, code) as Fields
  error.http = http
  return error as unknown as McpError
}

// Before 2026-07-28 the lifecycle pages show -32602 for an unsupported version. Headers and capabilities had no code;
// -32600 is the code for a request that is not allowed.
const codes: Partial<Record<Reason, readonly [session: number, stateless: number]>> = {
  ParseError: [-32700, -32700],
  InvalidRequest: [-32600, -32600],
  MethodNotFound: [-32601, -32601],
  InvalidParams: [-32602, -32602],
  InternalError: [-32603, -32603],
  ResourceNotFound: [-32002, -32602],
  HeaderMismatch: [-32600, -32020],
  MissingRequiredClientCapability: [-32600, -32021],
  UnsupportedProtocolVersion: [-32602, -32022]
}

// 2026-07-28, basic, error codes: -32002 and -32042 MUST NOT be emitted, nor an undefined code from -32020 to -32099.
// The defined ones MUST have their specified meaning, and have their own reasons here.
const permitted = (code: number | undefined, revision: Revision.Revision): number => {
  if (!Number.isSafeInteger(code)) return -32603
  if (Revision.era(revision) === "session") return code!
  if (code === -32002) return -32602
  return code! <= -32020 && code! >= -32099 ? -32603 : code!
}

/**
 * Returns the code of an error in a revision.
 *
 * - `ResourceNotFound` is `-32002` up to 2025-11-25 and `-32602` in 2026-07-28.
 * - `UrlElicitationRequired` is `-32042` in 2025-11-25. Other revisions have no code for it, so it is `-32603`.
 * - `HeaderMismatch`, `MissingRequiredClientCapability` and `UnsupportedProtocolVersion` are `-32020` to `-32022` in
 *   2026-07-28, and `-32600`, `-32600` and `-32602` up to 2025-11-25.
 * - `Other` keeps its code, with two exceptions. A code that is not a safe integer becomes `-32603`. In 2026-07-28
 *   `-32002` becomes `-32602`, and a code from `-32020` to `-32099` becomes `-32603`: implementations MUST NOT emit
 *   them, except for the defined ones with their specified meaning, which have their own reasons.
 */
export const codeOf = (error: McpError, revision: Revision.Revision): number => {
  const reason = error.reason
  if (reason === "Other") return permitted(error.code, revision)
  if (reason === "UrlElicitationRequired") return revision === "2025-11-25" ? -32042 : -32603
  return codes[reason]?.[Revision.era(revision) === "session" ? 0 : 1] ?? -32603
}

/**
 * Makes the JSON-RPC error for a peer of `revision`. {@link codeOf} chooses the code; the message and the data stay, and
 * the HTTP response as a member that is not enumerable.
 *
 * @example
 * JsonRpc.failure(1, McpError.toErrorObject(McpError.resourceNotFound("file:///a"), "2025-11-25"))
 */
export const toErrorObject = (error: McpError, revision: Revision.Revision): JsonRpc.ErrorObject => {
  const code = codeOf(error, revision)
  const object = error.data === undefined
    ? { code, message: error.message }
    : { code, message: error.message, data: error.data }
  return error.http === undefined ? object : Object.defineProperty(object, "http", { value: error.http })
}

const member = (data: unknown, key: string): unknown =>
  JsonRpc.isObject(data) && Object.hasOwn(data, key) ? data[key] : undefined

const isVersions = (data: unknown): boolean =>
  Array.isArray(member(data, "supported")) && typeof member(data, "requested") === "string"

// SEP-2243 used -32001 before the codes were assigned again. Other peers use -32001 for "Session not found" and the
// like.
const isDraftMismatch = (message: string): boolean => /^header mismatch\b/i.test(message)

const reasons: ReadonlyMap<number, Reason> = new Map([
  [-32700, "ParseError"],
  [-32600, "InvalidRequest"],
  [-32601, "MethodNotFound"],
  [-32603, "InternalError"],
  [-32002, "ResourceNotFound"],
  [-32042, "UrlElicitationRequired"],
  [-32020, "HeaderMismatch"],
  [-32021, "MissingRequiredClientCapability"],
  [-32022, "UnsupportedProtocolVersion"]
])

const reasonOf = ({ code, data, message }: JsonRpc.ErrorObject, revision: Revision.Revision): Reason => {
  if (code === -32602) {
    if (Revision.era(revision) === "session") return isVersions(data) ? "UnsupportedProtocolVersion" : "InvalidParams"
    return typeof member(data, "uri") === "string" ? "ResourceNotFound" : "InvalidParams"
  }
  if (code === -32001 && isDraftMismatch(message)) return "HeaderMismatch"
  return reasons.get(code) ?? "Other"
}

/**
 * Reads the error of a peer. It does not throw, and is lenient:
 *
 * - `-32002`, `-32042` and `-32020` to `-32022` are recognized in every revision: no revision gives them another
 *   meaning.
 * - In 2026-07-28 `-32602` with `data.uri` is `ResourceNotFound`. Before, `-32602` with `data.supported` and
 *   `data.requested` is `UnsupportedProtocolVersion`, as the lifecycle pages show it.
 * - `-32001` is `HeaderMismatch` where the message starts with "Header mismatch": peers written to a draft of
 *   2026-07-28 send it.
 * - Any other code from `-32000` to `-32019` is `Other`: "receivers MUST NOT assume any specific meaning for these
 *   codes" (2026-07-28, basic, error codes).
 *
 * The error's `code` is the received number. Its `message` is the received one with unprintable characters escaped,
 * except for tabs and line breaks: errors are written to logs and terminals.
 */
export const fromErrorObject = (object: JsonRpc.ErrorObject, revision: Revision.Revision): McpError =>
  make(reasonOf(object, revision), printableLines(object.message, Infinity), object.data, object.code)

/**
 * Whether only a peer of the stateless revision sends the error: `-32020` to `-32022`. After such an error, a client
 * that probes a server must not fall back to `initialize` (2026-07-28, versioning, backward compatibility).
 */
export const isStateless = ({ code }: JsonRpc.ErrorObject): boolean => code <= -32020 && code >= -32022

/**
 * A request, as handlers and middleware see it.
 */
import type { Principal } from "../base/http.ts"
import type { Implementation, JsonObject, Revision } from "../base/messages.ts"

/** The sender of a request, as the request itself or its session describes it. */
export interface Caller {
  /** The revision that the request is written in, and is answered in. */
  readonly revision: Revision
  /** The name and version that the client claims. Not to be trusted. */
  readonly info: Partial<Implementation> | undefined
  /** The capabilities that the client declared. */
  readonly capabilities: JsonObject
  /** The least severe level of the log messages that the client wants for this request, if it named one. */
  readonly logLevel?: string | undefined
  /** The authenticated user, if the transport or the application around it has found one. */
  readonly principal?: Principal | undefined
}

/** The values that the transport supplies with a request. */
export interface Origin {
  /** The network address of the sender, if the transport has it. */
  readonly address?: string | undefined
  /** Reads a header of the HTTP request, by its name in lower case. */
  readonly header?: ((name: string) => string | undefined) | undefined
}

/** A request. It does not change: `with` returns another one. */
export interface McpRequest {
  readonly id: string | number
  /** The method, such as `tools/call`. */
  readonly method: string
  readonly params: JsonObject | undefined
  readonly caller: Caller
  /** The values that the transport supplies: headers and the address over HTTP. */
  readonly origin: Origin | undefined
  /** The tool, prompt or resource that the params name, if they name one. */
  readonly target: string | undefined
  /** The request as its sender sent it. It differs from the request itself after `with`. */
  readonly original: McpRequest
  /** Whether the request was cancelled by its sender, or because the server stops. */
  readonly cancelled: boolean
  /** Whether the request is over: its response was sent, or it was cancelled. */
  readonly finished: boolean
  /** Returns the same request with other params, for `next` of a middleware. */
  readonly with: (change: { readonly params: JsonObject | undefined }) => McpRequest
}

/**
 * Decides whether a caller may see a definition. For other callers it does not exist, neither in lists nor by name. It runs
 * for each request and must be fast: only `true` shows the definition, and a promise does not.
 */
export type Visible = (caller: Caller) => boolean

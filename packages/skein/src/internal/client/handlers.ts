/**
 * The questions of servers, and the handlers of a host that answer them.
 */
import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  ElicitValue,
  Implementation,
  Revision,
  Root
} from "../base/messages.ts"
import type { Awaitable } from "../base/types.ts"
import type { RequestedSchema } from "./forms.ts"

/** The server that asks, and the request that it belongs to. Show the server to the user. */
export interface RequestingServer {
  /**
   * The name that the host gives the server: the option `label` of its client, or its name in a pool. It is the only name here
   * that the server does not choose.
   */
  readonly label: string | undefined
  /** Name and version of the server, as it sent them. Do not trust them. */
  readonly info: Implementation | undefined
  /** The negotiated revision. */
  readonly revision: Revision
  /** The method of the request that waits for the answer, for instance `tools/call`. `undefined` in sessions. */
  readonly method: string | undefined
  /** The id of that request, as `onSend` received it. Only known in a session over HTTP. */
  readonly requestId?: number | undefined
}

/** The second argument of a handler, beside the question. */
export interface HandlerContext {
  /**
   * Aborts when the question is no longer open: the call was aborted, the server has withdrawn the question, or the client
   * closes.
   */
  readonly signal: AbortSignal
}

/** The values of a form. A member that is `undefined` is a field that the user left empty. It gets no default. */
export interface FormContent {
  readonly [field: string]: ElicitValue | undefined
}

/** A form for the user. */
export interface FormRequest {
  /** The server that asks. Show it to the user. */
  readonly server: RequestingServer
  /** The reason that the server gives. */
  readonly message: string
  /** The fields, in the form of the newest revision, in all revisions. */
  readonly requestedSchema: RequestedSchema
  /** The initial values of the fields: the defaults of the schema, without invalid ones. */
  readonly defaults: { readonly [field: string]: ElicitValue }
  /**
   * Returns why content is not valid, in one line that names the field but not its value, or `undefined` if it is valid. Use it
   * to validate a form while the user fills it in.
   */
  readonly problem: (content: FormContent) => string | undefined
}

/** The user's response to a form. Content that does not match the form is never sent. */
export type FormAnswer =
  | { readonly action: "accept"; readonly content: FormContent }
  | { readonly action: "decline" | "cancel" }

/** A URL that the user is asked to visit. The client never opens it: open it after the user has agreed. */
export interface UrlRequest {
  /** The server that asks. Show it to the user. */
  readonly server: RequestingServer
  /** The reason that the server gives. */
  readonly message: string
  /** The URL: `http:` or `https:`. Show all of it (`url.href`) before the user agrees. */
  readonly url: URL
  /** The host and port of the URL. Show it clearly. */
  readonly host: string
  /**
   * Properties of the URL that the user must be warned of: a name in Punycode, which may look like another one; a user name or
   * a password, which may look like the host; no encryption.
   */
  readonly warnings: ReadonlyArray<"punycode" | "credentials" | "insecure">
  /** 2025-11-25: the id in the notification that the server sends after the visit. */
  readonly elicitationId: string | undefined
  /** Whether a call failed because the visit is required first. Then the client repeats the call after the visit. */
  readonly required: boolean
}

/** The user's response to a URL. */
export type UrlAnswer =
  | {
    readonly action: "accept"
    /** Settles when the user says that the visit is complete, for a call that waits for the visit (`required`). */
    readonly done?: PromiseLike<unknown> | undefined
  }
  | { readonly action: "decline" | "cancel" }

/** A request to the language model of the host. `maxTokens` must be respected; the rest may be changed. */
export interface SamplingRequest extends Omit<CreateMessageRequestParams, "_meta"> {
  /** The server that asks. Show it to the user. */
  readonly server: RequestingServer
}

/** The features that `sample` supports. */
export interface SamplingOptions {
  /** Whether requests may have tools: false by default. Other requests with tools are refused before the handler runs. */
  readonly tools?: boolean | undefined
  /** Whether the handler supports `includeContext`: false by default. Then the member is removed from each request. */
  readonly context?: boolean | undefined
}

/**
 * The handlers of questions. The client declares only the capabilities of those that are given. An error that a handler
 * throws is logged, and the server receives an error without details.
 */
export interface AsyncHandlers {
  /** Shows a form to the user. Make clear which server asks, and let the user decline. */
  readonly elicit?: ((request: FormRequest, context: HandlerContext) => Awaitable<FormAnswer>) | undefined
  /** Asks the user for consent to visit a URL, and opens it if the user agrees. */
  readonly elicitUrl?: ((request: UrlRequest, context: HandlerContext) => Awaitable<UrlAnswer>) | undefined
  /** Requests a message from the language model. Throw a `SamplingRefused` if the user refuses it. */
  readonly sample?:
    | ((request: SamplingRequest, context: HandlerContext) => Awaitable<CreateMessageResult>)
    | undefined
  /** The features that `sample` supports: neither tools nor contexts by default. */
  readonly sampling?: SamplingOptions | undefined
  /**
   * The folders that the user has opened: a list, a function that returns those for a server, or an async iterable of lists,
   * whose latest element counts and whose changes are sent to servers of sessions. An invalid root of a fixed list rejects
   * with `InvalidRoot`; otherwise it is left out and logged.
   */
  readonly roots?:
    | ReadonlyArray<Root>
    | AsyncIterable<ReadonlyArray<Root>>
    | ((server: RequestingServer, context: HandlerContext) => Awaitable<ReadonlyArray<Root>>)
    | undefined
}

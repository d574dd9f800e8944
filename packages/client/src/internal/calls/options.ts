/**
 * How one request of a client is made.
 */
import type { PromptReference, ResourceTemplateReference } from "@skein/protocol/Completion"
import type { CallOptions } from "@skein/runtime/RequestContext"
import type * as Schema from "effect/Schema"
import type { TaskOptions } from "../../RemoteTask.ts"

/**
 * How one request is made: `timeout` and `maxTimeout` instead of those of the client's limits (60 seconds and 1 hour),
 * and `onProgress` to ask the server for progress. What `onProgress` throws is logged.
 *
 * Both cover what a lost connection costs: the wait for the next one, and the request made again there. One that asks
 * for progress has a whole `timeout` each time that it is made, and `maxTimeout` for all of it. So has one that is
 * answered with questions (`input_required`), from round to round; the time that the host takes to answer them counts
 * for neither.
 */
export interface RequestOptions extends Pick<CallOptions, "timeout" | "maxTimeout" | "onProgress" | "onNotification"> {
  /**
   * For what a server lets clients keep (lists, resources): `use` a response that is kept while it is fresh (the
   * default), `refresh` it, or `bypass` the cache and leave it as it is.
   */
  readonly cache?: "use" | "refresh" | "bypass" | undefined
  /**
   * Whether the request may be made again when its answer was lost, so that it may reach the server twice. By default
   * calls of tools are not, unless the tool says that it is read-only or idempotent, nor are methods that are not of
   * the protocol; everything else is. What surely was not begun is made again in any case, where that may help: not
   * what was turned away for what it is.
   */
  readonly retry?: boolean | undefined
}

/** How one page of a listing is asked for. */
export interface PageOptions extends RequestOptions {
  /** The `nextCursor` of the page before; the first page without it. */
  readonly cursor?: string | undefined
}

/** What is to be completed, and how the request is made. */
export interface CompleteOptions extends RequestOptions {
  /** The prompt or the resource template whose argument is completed. */
  readonly ref: PromptReference | ResourceTemplateReference
  /** The argument, and its value as far as the user has typed it. */
  readonly argument: { readonly name: string; readonly value: string }
  /** The values of other arguments that the user has chosen already. Sent since 2025-06-18. */
  readonly contextArguments?: Readonly<Record<string, string>> | undefined
}

/** How a `ping` is made. */
export type PingOptions = Pick<RequestOptions, "timeout" | "maxTimeout" | "retry">

/**
 * How a tool is called. The server may answer with a task, which is seen through to its end then: `timeout` is that of
 * each request, and `maxTimeout`, where it is given here, that of all of it.
 */
export interface CallToolOptions extends RequestOptions {
  /** What happens where the answer is a task; see `RemoteTask`. */
  readonly task?: TaskOptions | undefined
}

/** How a tool is called whose structured result is read with a schema. */
export interface TypedCallOptions<A, RD = never> extends CallToolOptions {
  /**
   * The schema of the structured content, in its JSON form: one that is shared with a server of ours reads what that
   * writes, dates and classes included.
   */
  readonly output: Schema.Decoder<A, RD>
}

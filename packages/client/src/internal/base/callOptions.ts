/**
 * The options of a request.
 */
import type { PromptReference, ResourceTemplateReference } from "@skein/protocol/Completion"
import * as Options from "@skein/runtime/Options"
import type { CallOptions } from "@skein/runtime/RequestContext"
import type * as Schema from "effect/Schema"
import type { TaskOptions } from "../../RemoteTask.ts"

/**
 * The options of one request. `timeout` and `maxTimeout` replace those of the client's limits (60 seconds and 1 hour).
 * `onProgress` asks the server for progress; an exception that it throws is logged.
 *
 * Both timeouts include the time that a lost connection costs: waiting for the next connection, and repeating the
 * request. A request with `onProgress` has its full `timeout` at each attempt, and `maxTimeout` for all attempts. The
 * same applies to the rounds of a request that is answered with input requests (`input_required`); the time in which
 * the host answers them counts for neither timeout. Nor does the time in which credentials are obtained.
 */
export interface RequestOptions
  extends Pick<CallOptions, "timeout" | "maxTimeout" | "onProgress" | "onNotification" | "onSend">
{
  /**
   * The use of the cache for a request that the server allows to be cached (lists, resources). `use` returns a fresh
   * cached response (the default), `refresh` replaces it, and `bypass` neither reads nor writes the cache.
   */
  readonly cache?: "use" | "refresh" | "bypass" | undefined
  /**
   * Whether the request may be sent again when its response was lost, so that it may reach the server twice. By default
   * all requests are, except for calls of tools that are not marked as read-only or idempotent, and methods outside of
   * the protocol. A request that the server has certainly not begun to handle is sent again in any case, unless it
   * would be rejected again.
   */
  readonly retry?: boolean | undefined
  /**
   * The handling of input requests in an answer (`input_required`, 2026-07-28): `answer` passes them to the
   * host and sends the request again (the default). `fail` fails the call with `InputRequired`, which has the result.
   * The caller then sends the request again itself, with `inputResponses` and `requestState` among its params.
   */
  readonly inputRequests?: "answer" | "fail" | undefined
  /**
   * The handling of integers beyond 2^53 in the result of a tool, which JavaScript rounds: `fail` fails the call with
   * `InvalidResponse`, which names the path and has the result (the default). `keep` returns the result. Its numbers are
   * rounded, and `Json.stringify` of `@skein/protocol` writes them as the server sent them: use it for a result
   * that is passed on.
   */
  readonly roundedIntegers?: "fail" | "keep" | undefined
}

/** The options of a request for one page of a list. */
export interface PageOptions extends RequestOptions {
  /** The `nextCursor` of the previous page. Without it, the first page is requested. */
  readonly cursor?: string | undefined
}

/** The options of `complete`. */
export interface CompleteOptions extends RequestOptions {
  /** The prompt or the resource template whose argument is completed. */
  readonly ref: PromptReference | ResourceTemplateReference
  /** The argument, and its value as far as the user has typed it. */
  readonly argument: { readonly name: string; readonly value: string }
  /** The values of other arguments that the user has chosen already. Sent since 2025-06-18. */
  readonly contextArguments?: Readonly<Record<string, string>> | undefined
}

/** The options of `ping`. */
export type PingOptions = Pick<RequestOptions, "timeout" | "maxTimeout" | "retry">

/**
 * The options of a tool call. If the server answers with a task, its result is awaited: then `timeout` applies to each
 * request, and `maxTimeout`, if it is given here, to all of them.
 */
export interface CallToolOptions extends RequestOptions {
  /** How a task is handled that the server answers with; see `RemoteTask`. */
  readonly task?: TaskOptions | undefined
}

/** The options of a tool call whose structured content is decoded with a schema. */
export interface TypedCallOptions<A, RD = never> extends CallToolOptions {
  /**
   * The schema of the structured content, in its JSON form. A schema that is shared with a Skein server decodes
   * everything that the server encodes, including dates and classes.
   */
  readonly output: Schema.Decoder<A, RD>
}

/** The remaining time of a call that takes more than one request, in milliseconds; 0 or less if no time remains. */
export interface RemainingTime {
  readonly timeout: number
  readonly maxTimeout: number
}

/** The remaining time of a call after so many milliseconds. */
export const remainingTime = (
  timeouts: RemainingTime,
  options: Pick<CallOptions, "timeout" | "maxTimeout">,
  spent: number
): RemainingTime => {
  const { maxTimeout, timeout } = Options.resolve<Pick<CallOptions, "timeout" | "maxTimeout">>(options, {}, timeouts)
  return { timeout: timeout - spent, maxTimeout: maxTimeout - spent }
}

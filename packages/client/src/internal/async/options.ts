/**
 * The options and the handlers of an `AsyncClient`, and its tasks. `AsyncClient.ts` exports them; the modules below it
 * read their own part.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type * as Context from "effect/Context"
import type { FormAnswer, FormRequest, UrlRequest } from "../../Elicitation.ts"
import type * as RemoteTask from "../../RemoteTask.ts"
import type { RequestingServer } from "../../RequestingServer.ts"
import type { Root } from "../../Roots.ts"
import type * as Sampling from "../../Sampling.ts"
import type { CallToolOptions, RequestOptions } from "../base/callOptions.ts"

/** Finds services for a call. */
export type Services = () => Context.Context<never>

/** The second argument of a handler, beside the request. */
export interface HandlerContext {
  /**
   * Aborts when the question is no longer open: the call was aborted, the server has withdrawn the question, or the
   * client closes.
   */
  readonly signal: AbortSignal
}

/** The user's response to a URL. */
export type AsyncUrlAnswer =
  | {
    readonly action: "accept"
    /** Settles when the user says that the visit is complete: see `Elicitation.consent`. */
    readonly done?: PromiseLike<unknown> | undefined
  }
  | { readonly action: "decline" | "cancel" }

/**
 * The handlers of input requests. The client declares only the capabilities of those that are given. An error
 * that a handler throws is logged, and the server receives an error without details.
 */
export interface AsyncHandlers {
  /** Shows a form to the user: see `Elicitation`. */
  readonly elicit?:
    | ((request: FormRequest, context: HandlerContext) => FormAnswer | PromiseLike<FormAnswer>)
    | undefined
  /** Asks the user for consent to visit a URL, and opens it if the user agrees: see `Elicitation`. */
  readonly elicitUrl?:
    | ((request: UrlRequest, context: HandlerContext) => AsyncUrlAnswer | PromiseLike<AsyncUrlAnswer>)
    | undefined
  /** Requests a message from the language model. Throw a `Sampling.SamplingRefused` if the user refuses it. */
  readonly sample?:
    | ((request: Sampling.Request, context: HandlerContext) => Sampling.Answer | PromiseLike<Sampling.Answer>)
    | undefined
  /** The features that `sample` supports: see `Sampling.Options`. */
  readonly sampling?: Sampling.Options | undefined
  /**
   * The roots, a function that returns the roots for a server, or an async iterable of roots, whose latest element counts:
   * the servers of sessions are notified of each change (see `Roots.layerStream`). `connect` rejects with `InvalidRoot`
   * if a fixed root is invalid. An invalid root of a function or an iterable is left out and logged.
   */
  readonly roots?:
    | ReadonlyArray<Root>
    | AsyncIterable<ReadonlyArray<Root>>
    | ((server: RequestingServer, context: HandlerContext) => ReadonlyArray<Root> | PromiseLike<ReadonlyArray<Root>>)
    | undefined
  /**
   * Services for all that runs in the client, such as loggers and a tracer. The function is called when the client
   * connects, and at each call of a method: the span around the call may be among its services.
   *
   * @example
   * const client = await AsyncClient.connect(url, { services: () => Context.make(References.CurrentLoggers, loggers) })
   */
  readonly services?: Services | undefined
}

/** Options with a signal that cancels the call. */
export type Abortable<A> = A & {
  /** Cancels the request when it aborts. The promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
}

/** The options of a request. */
export type AsyncRequestOptions = Abortable<RequestOptions>

/** The options of a tool call. */
export type AsyncCallOptions = Abortable<
  Omit<CallToolOptions, "task"> & {
    /** How a task is handled that the server answers with: see `RemoteTask`. */
    readonly task?:
      | (Omit<RemoteTask.TaskOptions, "onTask"> & {
        /** Called with the task as soon as it is created. An exception is logged. */
        readonly onTask?: ((task: AsyncTask) => void) | undefined
      })
      | undefined
  }
>

/**
 * A task of a server: see `RemoteTask`. The client follows the task while a call of `result` or a loop over `states`
 * runs. Aborting their signals does not cancel the task, unless the option `leaveRunning` is off.
 */
export interface AsyncTask {
  readonly _tag: "RemoteTask"
  readonly id: string
  /** A JSON value to store, for `resumeTask`. */
  readonly handle: RemoteTask.Handle
  /** The present state first, then each change, and the final state at the end. */
  readonly states: (options?: Abortable<{}>) => AsyncIterable<RemoteTask.State>
  /** Waits for the result. */
  readonly result: (options?: Abortable<{}>) => Promise<CallToolResult>
  /** Asks the server to cancel the task, and does not wait for its end. */
  readonly cancel: (options?: Abortable<{}>) => Promise<void>
}

/** The result of `startTask`: the task, or the result of a call that the server has answered at once. */
export type AsyncStarted = AsyncTask | {
  readonly _tag: "Finished"
  readonly result: () => Promise<CallToolResult>
}

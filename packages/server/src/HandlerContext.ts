/**
 * The second argument of an async handler: the request, and functions that return promises in the place of
 * Effect's effects. `Tool.async`, `Resource.async`, `ResourceTemplate.async` and `Prompt.async` pass it to handlers.
 *
 * An async handler works in all revisions, as a handler of effects does, and by the same rules:
 *
 * - **When it ends early**, because the client cancels the request, a timeout passes or the server stops, `signal`
 *   aborts. Promises of the context that are pending reject with its reason, and so does each later call, so that
 *   `finally` blocks run and nothing else happens. The result of the handler is ignored then. Pass `signal` to `fetch`
 *   and the like. A `catch` block that does more than to clean up must check `signal.aborted`.
 * - **Input requests** (`elicit`, `elicitUrl`, `sample`, `roots`) of the stateless revision run the handler again from
 *   its start with the answers, as the module `Elicitation` describes. For the handler, the end of such a round is an
 *   early end. Concurrent input requests (`Promise.all`) go out together. Wrap effects that must not repeat in `once`.
 * - **Errors.** The client, or its model, receives the message of a `VisibleError`, of an `InputError`, of an `McpError`
 *   and of a tagged error of Effect. Any other error may contain secrets: the client receives a reference, in a
 *   result with `isError` from a tool and with `-32603` otherwise, and the error is logged with that reference.
 *
 * @example
 * const report = Tool.async(
 *   Tool.make("report", { input: { city: Schema.String } }),
 *   async ({ city }, { elicit, signal }) => {
 *     const answer = await elicit("Include prices?", { prices: Schema.Boolean })
 *     if (answer.action !== "accept") throw new VisibleError("The user did not say which report to make")
 *     const response = await fetch(reportUrl(city, answer.content.prices), { signal })
 *     return response.text()
 *   }
 * )
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type { Checked, JsonForm } from "@skein/protocol/JsonForm"
import type { McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Elicitation from "./Elicitation.ts"
import type * as Once from "./Once.ts"
import type { PerSession } from "./PerSession.ts"
import type { Principal } from "./Principal.ts"
import type { Progress } from "./Progress.ts"
import type * as Roots from "./Roots.ts"
import type * as Sampling from "./Sampling.ts"
import type { AsyncState, State } from "./State.ts"

/**
 * The context of an async handler. `R` are the services of its layer that `run` provides to effects, none by default.
 * The functions may be taken out of it: `const { elicit, signal } = context`.
 */
export interface HandlerContext<R = never> {
  /** Aborts when the handler ends early: see the module. */
  readonly signal: AbortSignal
  /** The request: its method and params, the caller and its capabilities. */
  readonly request: RequestContext
  /** The authenticated caller, if the transport or the application around the server has found one. */
  readonly principal: Principal | undefined
  /** The name and version that the client claims. Not to be trusted. */
  readonly client: Partial<Implementation> | undefined
  /**
   * A header of the HTTP request, by its name in any case; `undefined` over stdio and in a task, which may continue long
   * after the request. In a request with a principal, headers with credentials are `undefined`: see `readableCredentials` of
   * `Http.Options`.
   */
  readonly header: (name: string) => string | undefined
  /** Asks the user to fill in a form: see `Elicitation.form`. */
  readonly elicit: <const S extends Elicitation.GivenForm>(
    message: string,
    form: S & Elicitation.CheckedForm<S>,
    options?: Elicitation.Options
  ) => Promise<Elicitation.Answer<Elicitation.ContentOf<S>>>
  /** Asks the user to visit a URL: see `Elicitation.url`. */
  readonly elicitUrl: (
    message: string,
    url: string | URL,
    options?: Elicitation.UrlOptions
  ) => Promise<{ readonly action: "accept" | "decline" | "cancel" }>
  /** Requests a message from the client's model: see `Sampling.createMessage`. */
  readonly sample: (request: Sampling.Request, options?: Sampling.Options) => Promise<Sampling.Answer>
  /** Requests the roots of the client: see `Roots.list`. */
  readonly roots: (options?: Roots.Options) => Promise<ReadonlyArray<Roots.Root>>
  /** Reports progress: see `Progress.report`. Resolves when the report is sent. */
  readonly progress: {
    (progress: Progress): Promise<void>
    (progress: "Pass one object: progress({ progress: 1, total: 2 })", total: unknown): Promise<void>
  }
  /** Lets the client poll for the result instead of holding a connection open: see `Polling.disconnect`. */
  readonly disconnect: (retry?: Duration.Input) => Promise<void>
  /** Logs to the loggers of the server, and to the client if it wants logs: see `Logging`. */
  readonly log: Log
  /**
   * Runs a function once per request, however often the handler runs: see `Once.once`. The result is stored as JSON, and
   * you receive what JSON makes of it in each round: a `Date` is its text. A value that JSON cannot hold, such as a
   * `bigint`, is an error. At most one minute by default (`timeout`).
   */
  readonly once: <A>(
    key: string,
    run: (() => A | Promise<A>) & Checked<A>,
    options?: Once.Options
  ) => Promise<JsonForm<NoInfer<A>>>
  /**
   * Reads and changes a state of the user or the session: see `State`. The promises reject with `StateError`.
   *
   * @example
   * const items = await context.state(cart).update((items) => [...items, item])
   */
  readonly state: <A>(state: State<A>) => AsyncState<A>
  /**
   * Returns a value that lives as long as the session, and acquires it if the session has none: see `PerSession`. It is not
   * released before the handler ends. The promise rejects with `StateError` where there is no session, and with the error
   * of the acquisition.
   *
   * @example
   * const page = await (await context.use(browser)).newPage()
   */
  readonly use: <A, E>(value: PerSession<A, E, R>) => Promise<A>
  /** Runs an effect with the services of the layer. Rejects with its failure, or with its defect. */
  readonly run: <A, E>(effect: Effect.Effect<A, E, R | McpRequest>) => Promise<A>
}

/**
 * Writes log messages. Further values become part of the message. They reach the loggers of the application, and the
 * clients that request logs, which the specification deprecates since 2026-07-28 (see `Logging`).
 */
export interface Log {
  readonly debug: (...message: ReadonlyArray<unknown>) => void
  readonly info: (...message: ReadonlyArray<unknown>) => void
  readonly warn: (...message: ReadonlyArray<unknown>) => void
  readonly error: (...message: ReadonlyArray<unknown>) => void
}

/** A handler that returns a value or a promise. */
export type AsyncHandler<Input, A, R> = (input: Input, context: HandlerContext<R>) => A | Promise<A>

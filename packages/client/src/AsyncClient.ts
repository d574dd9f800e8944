/**
 * A client as a class, for programs that do not use Effect: async handlers for the questions of the server, and methods
 * that return promises.
 *
 * The methods, their arguments and their results are those of `Client`, in all five revisions. In addition:
 *
 * - **Errors.** A promise rejects with a `ClientError`. Its `reason` is tagged: `error.reason._tag === "Timeout"`.
 * - **Signals.** Each method takes a `signal`. When it aborts, the promise rejects at once with the reason of the signal,
 *   as `fetch` does: a `DOMException` named `AbortError`, or `TimeoutError` for `AbortSignal.timeout`. The request is
 *   cancelled at the server.
 * - **Streams.** `changes`, `notifications` and `status` return async iterables. Each loop runs the stream again, and
 *   leaving the loop ends it.
 * - **The end.** `close` ends the connection and everything that still runs: pending calls reject with the reason
 *   `Closed`, loops end without an error, and the signals of handlers abort. So does `await using`.
 *
 * A method may be taken out of its client: `const { callTool } = client`. For many servers use `AsyncClientPool`.
 *
 * @example
 * const client = await AsyncClient.connect(Stdio.transport({ command: "node", args: ["server.js"] }), {
 *   elicit: async ({ message, requestedSchema }, { signal }) => {
 *     const values = await showForm(message, requestedSchema, signal)
 *     return values === undefined ? { action: "decline" } : { action: "accept", content: values }
 *   }
 * })
 * try {
 *   const { sum } = await client.callTool("add", { a: 1, b: 2 }, { output: z.object({ sum: z.number() }) })
 * } finally {
 *   await client.close()
 * }
 */
import type { LoggingLevel, LoggingMessageNotificationParams } from "@skein/protocol/Logging"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Client from "./Client.ts"
import { ClientMethods } from "./internal/async/clientMethods.ts"
import type { AsyncHandlers } from "./internal/async/options.ts"
import { openWith, type PromiseRunner } from "./internal/async/promiseRunner.ts"
import { bindOnRead } from "./internal/client/client.ts"

export type { CallTool, OutputOf, OutputSchema } from "./internal/async/clientMethods.ts"
export type * from "./internal/async/options.ts"

/** The options of a client: those of `Client`, the handlers, and these. */
export interface Options extends Client.Options, AsyncHandlers {
  /**
   * Receives the log messages of the server. An exception that it throws is logged. Deprecated since 2026-07-28, but
   * supported there.
   */
  readonly onLog?: ((message: LoggingMessageNotificationParams) => void) | undefined
  /**
   * The least severe level of log messages that the server is asked for: `info` by default if there is an `onLog`. A
   * server that does not declare `logging` is not asked. If the server refuses the level, a warning is logged.
   */
  readonly logLevel?: LoggingLevel | undefined
  /**
   * Closes the client when it aborts. While the client connects, `connect` rejects with the reason of the signal, after
   * the transport was closed.
   */
  readonly signal?: AbortSignal | undefined
}

/** A client of one server. Make it with {@link AsyncClient.connect}, and close it. */
export class AsyncClient extends ClientMethods implements AsyncDisposable {
  readonly #runner: PromiseRunner

  private constructor(client: Client.Client, runner: PromiseRunner) {
    super(client, runner)
    this.#runner = runner
  }

  static {
    bindOnRead(this.prototype)
  }

  /**
   * Connects to a server. It rejects with the `ClientError`s of `Client.make`, and for `roots` with `InvalidRoot`. Nothing
   * is left open then.
   *
   * @example
   * const client = await AsyncClient.connect(Http.transport({ url: "https://mcp.example.com/mcp" }))
   */
  static async connect(transport: Transport, options: Options = {}): Promise<AsyncClient> {
    const { logLevel, onLog, signal } = options
    const opening = Effect.tap(
      Client.make(transport, options),
      (client) => onLog === undefined ? Effect.void : receiveLogs(client, onLog, logLevel)
    )
    const { opened, runner } = await openWith("client", options, signal, opening)
    return new AsyncClient(opened, runner)
  }

  /**
   * Closes the client, and ends its server if the transport has started it. Resolves when nothing runs any more: see the
   * module. Further calls return the same promise.
   */
  close(): Promise<void> {
    return this.#runner.close()
  }

  /** Closes the client at the end of a block: `await using client = await AsyncClient.connect(transport)`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/** Passes the log messages of the server to a function until the scope closes. */
const receiveLogs = (
  client: Client.Client,
  onLog: (message: LoggingMessageNotificationParams) => void,
  level: LoggingLevel = "info"
): Effect.Effect<void, never, Scope.Scope> => {
  const receive = Stream.runForEach(client.logs, ({ params }) =>
    Effect.catchDefect(
      Effect.sync(() => onLog(params)),
      (defect) => Effect.logWarning("onLog has thrown an error", defect)
    ))
  const ask = Effect.catch(client.setLoggingLevel(level), ({ message, reason }) =>
    reason._tag === "Unsupported"
      ? Effect.void
      : Effect.logWarning(`The level of the server's log messages could not be set: ${message}`))
  return Effect.andThen(Effect.forkScoped(receive, { startImmediately: true }), ask)
}

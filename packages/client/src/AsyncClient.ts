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
import type * as Http from "./Http.ts"
import type * as Stdio from "./Stdio.ts"
import { ClientMethods } from "./internal/async/clientMethods.ts"
import type { AsyncHandlers } from "./internal/async/options.ts"
import { openWith, type PromiseRunner } from "./internal/async/promiseRunner.ts"
import { bindOnRead } from "./internal/client/client.ts"

export type { AsyncToolkit, ToolkitOptions, ToolkitTool } from "./internal/async/asyncToolkit.ts"
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

/**
 * The server of a client: a URL of HTTP (`http:`, `https:`), a command with its arguments such as `node server.js`, the
 * options of `Http.transport` or `Stdio.transport`, or a transport. No shell interprets a command: spaces separate its
 * arguments, unless quotes are around them. Unless `stderr` is set, the stderr of a command goes to that of this process, and
 * its end is part of the error of a server that ends early. Browsers start no commands. On Node, a URL without a `fetch` is
 * reached by `NodeHttp.transport`.
 */
export type Server = string | URL | Http.Options | Stdio.Options | Transport

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
   * Connects to a server: by its URL, by the command that starts it, by the options of `Http.transport` or
   * `Stdio.transport`, or by any other transport. It rejects with the `ClientError`s of `Client.make`, for `roots` with
   * `InvalidRoot`, and for a value that names no server with a `TypeError`. Nothing is left open then.
   *
   * @example
   * const remote = await AsyncClient.connect("https://mcp.example.com/mcp")
   * const local = await AsyncClient.connect({ command: "node", args: ["server.js"] })
   */
  static async connect(server: Server, options: Options = {}): Promise<AsyncClient> {
    if (Array.isArray(options)) {
      throw new TypeError("A command and its arguments are one text, or { command, args }")
    }
    const { logLevel, onLog, signal } = options
    const transport = await transportTo(server)
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

/**
 * Makes the transport to a server, as `AsyncClient.connect` does: for proxies and pools that are given servers in the same
 * way. Rejects with a `TypeError` for a value that names no server.
 *
 * @example
 * const transport = await transportTo("node server.js")
 */
export const transportTo = async (server: Server): Promise<Transport> => {
  const given: unknown = server
  if (typeof server === "string" && !/^https?:/i.test(server)) {
    const [command, ...args] = Array.from(
      server.matchAll(/"([^"]*)"|'([^']*)'|\S+/g),
      ([all, double, single]) => double ?? single ?? all
    )
    if (command !== undefined) return startedBy({ command, args })
  } else if (typeof server === "string" || server instanceof URL) return reachedBy({ url: server })
  else if (typeof given === "object" && given !== null) {
    if ("connect" in given && Effect.isEffect(given.connect)) return given as Transport
    if ("url" in given) return reachedBy(given as Http.Options)
    if ("command" in given) return startedBy(given as Stdio.Options)
  }
  throw new TypeError(
    `AsyncClient.connect expects a URL, a command, { url }, { command, args } or a transport, and got ${kindOf(given)}`
  )
}

const kindOf = (value: unknown): string =>
  value === null || value === undefined
    ? String(value)
    : typeof value === "object"
    ? "transport" in value && typeof value.transport === "function"
      ? "a server: pass its transport, server.transport()"
      : `an object with ${Object.keys(value).slice(0, 5).join(", ") || "no members"}`
    : `a ${typeof value}`

/** Reaches a URL. Node loads its `fetch` when it is called for the first time, which takes longer than the rest of a client. */
const reachedBy = async (options: Http.Options): Promise<Transport> => {
  const isNode = globalThis.navigator?.userAgent?.startsWith("Node.js/") === true
  const { transport } = await (isNode && options.fetch === undefined ? import("./NodeHttp.ts") : import("./Http.ts"))
  return transport(options)
}

/** Starts a command. Its stderr is captured too, so that an error names the reason why the server has ended. */
const startedBy = async (options: Stdio.Options): Promise<Transport> =>
  (await import("./Stdio.ts")).transport({ stderr: "forward", ...options })

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

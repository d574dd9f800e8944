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
 * A method may be taken out of its client: `const { callTool } = client`. For many servers use `ClientPool`.
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
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { CompleteResult } from "@skein/protocol/Completion"
import type { Implementation } from "@skein/protocol/Implementation"
import type { ListTasksResult } from "@skein/protocol/LegacyTask"
import type { LoggingLevel, LoggingMessageNotificationParams } from "@skein/protocol/Logging"
import type * as Method from "@skein/protocol/Method"
import type { GetPromptResult, ListPromptsResult, Prompt } from "@skein/protocol/Prompt"
import type {
  ListResourcesResult,
  ListResourceTemplatesResult,
  ReadResourceResult,
  Resource,
  ResourceTemplate
} from "@skein/protocol/Resource"
import type * as Revision from "@skein/protocol/Revision"
import type { ListSkillsResult, Skill } from "@skein/protocol/Skill"
import type { ListToolsResult, Tool } from "@skein/protocol/Tool"
import type { Transport } from "@skein/runtime/Connection"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as Stream from "effect/Stream"
import type { Change, Filter, Options as ChangesOptions } from "./Changes.ts"
import * as Client from "./Client.ts"
import type { ClientError } from "./ClientError.ts"
import { fromStarted, fromTask, toCallOptions } from "./internal/async/asyncTask.ts"
import type {
  Abortable,
  AsyncCallOptions,
  AsyncHandlers,
  AsyncRequestOptions,
  AsyncStarted,
  AsyncTask,
  AsyncUrlAnswer,
  HandlerContext
} from "./internal/async/options.ts"
import { PromiseRunner } from "./internal/async/promiseRunner.ts"
import { bindOnRead } from "./internal/client.ts"
import type { Notification } from "./Notification.ts"
import type * as RemoteTask from "./RemoteTask.ts"
import type { ServerProfile } from "./ServerProfile.ts"
import type { Status } from "./Status.ts"

export type {
  Abortable,
  AsyncCallOptions,
  AsyncHandlers,
  AsyncRequestOptions,
  AsyncStarted,
  AsyncTask,
  AsyncUrlAnswer,
  HandlerContext
}

/** The options of a client: those of `Client`, the handlers, and these. */
export interface Options extends Client.Options, AsyncHandlers {
  /** Receives the log messages of the server. An exception that it throws is logged. */
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

/** A schema of the structured content of a tool: of zod, Valibot and others (Standard Schema), or of Effect. */
export type OutputSchema = StandardSchemaV1 | Schema.Decoder<unknown>

/** The type of a schema's values. */
export type OutputOf<S extends OutputSchema> = S extends Schema.Decoder<infer A> ? A
  : S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S>
  : never

/** Calls a tool. */
export interface CallTool {
  /**
   * Returns the `structuredContent`, validated by the schema `output`, or else the first text that is JSON. A result with
   * `isError` rejects with the reason `ToolFailed`, and one that the schema rejects with `InvalidResponse`.
   */
  <const S extends OutputSchema>(
    name: string,
    args: object | undefined,
    options: AsyncCallOptions & { readonly output: S }
  ): Promise<OutputOf<S>>
  /** Returns the result as it is, including a result with `isError`. */
  (name: string, args?: object, options?: AsyncCallOptions & { readonly output?: undefined }): Promise<CallToolResult>
}

/** A client of one server. Make it with {@link AsyncClient.connect}, and close it. */
export class AsyncClient implements AsyncDisposable {
  readonly #client: Client.Client
  readonly #runner: PromiseRunner
  readonly #signal: AbortSignal | undefined

  private constructor(client: Client.Client, runner: PromiseRunner, signal: AbortSignal | undefined) {
    this.#client = client
    this.#runner = runner
    this.#signal = signal
    signal?.addEventListener("abort", this.#abort, { once: true })
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
    const { elicit, elicitUrl, maxFields, onLog, logLevel, roots, sample, sampling, signal, ...settings } = options
    signal?.throwIfAborted()
    const runner = new PromiseRunner()
    const hasHandlers = [elicit, elicitUrl, roots, sample].some((handler) => handler !== undefined)
    const opening = Effect.gen(function*() {
      const made = Client.make(transport, settings)
      if (!hasHandlers) return yield* made
      const { build } = yield* Effect.promise(() => import("./internal/async/handlers.ts"))
      return yield* Effect.provide(made, yield* build({ elicit, elicitUrl, maxFields, roots, sample, sampling }))
    })
    const opened = Effect.tap(
      opening,
      (client) => onLog === undefined ? Effect.void : receiveLogs(client, onLog, logLevel)
    )
    try {
      const client = await runner.run(Scope.provide(opened, runner.scope), signal)
      // The signal may have aborted since the effect has ended.
      signal?.throwIfAborted()
      return new AsyncClient(client, runner, signal)
    } catch (error) {
      await runner.close()
      throw error
    }
  }

  // ---- the server

  /** The negotiated revision. */
  get revision(): Revision.Revision {
    return this.#client.revision
  }

  /** The lifecycle of the negotiated revision: sessions, or stateless requests. */
  get era(): Revision.Era {
    return this.#client.era
  }

  /** Name and version of the server, as it sent them. Do not trust them. */
  get server(): Implementation | undefined {
    return this.#client.server
  }

  /** The capabilities that the server declared. */
  get capabilities(): ServerCapabilities {
    return this.#client.capabilities
  }

  /** Instructions of the server for a language model. */
  get instructions(): string | undefined {
    return this.#client.instructions
  }

  /** The name that the host gives this server, as in the options. */
  get label(): string | undefined {
    return this.#client.label
  }

  /** The result of the negotiation, for the option `serverProfile` of the next client: see `Client.serverProfile`. */
  get serverProfile(): ServerProfile | undefined {
    return this.#client.serverProfile
  }

  // ---- tools

  /** Lists one page of the tools: see `Client.listToolsPage`. */
  listToolsPage(options?: Abortable<Client.PageOptions>): Promise<ListToolsResult> {
    return this.#run(this.#client.listToolsPage(options), options)
  }

  /** Lists all tools, page by page: see `Client.listTools`. */
  listTools(options?: AsyncRequestOptions): Promise<ReadonlyArray<Tool>> {
    return this.#run(this.#client.listTools(options), options)
  }

  /**
   * Calls a tool: see {@link CallTool}. If the server answers with a task, it waits for the result of the task.
   *
   * @example
   * const { content } = await client.callTool("search", { query }, { signal, timeout: "2 minutes", onProgress: show })
   */
  get callTool(): CallTool {
    return this.#callTool as CallTool
  }

  readonly #callTool = (
    name: string,
    args?: object,
    options: AsyncCallOptions & { readonly output?: OutputSchema | undefined } = {}
  ): Promise<unknown> => {
    const { output, ...rest } = options
    const calling = toCallOptions(this.#runner, rest)
    if (output === undefined) return this.#run(this.#client.callTool(name, args, calling), options)
    if (Schema.isSchema(output)) {
      return this.#run(
        this.#client.callTool(name, args, { ...calling, output: output as Schema.Decoder<unknown> }),
        options
      )
    }
    const called = Effect.flatMap(this.#client.callTool(name, args, calling), (result) =>
      Effect.flatMap(
        Effect.promise(() => import("./internal/async/standardOutput.ts")),
        ({ decodeStandard }) => decodeStandard(name, result, output as StandardSchemaV1)
      ))
    return this.#run(called, options)
  }

  /** Calls a tool, and returns the task as soon as the server has created one, or else the result: see `Client.startTask`. */
  startTask(name: string, args?: object, options: AsyncCallOptions = {}): Promise<AsyncStarted> {
    const started = this.#client.startTask(name, args, toCallOptions(this.#runner, options))
    return this.#run(Effect.map(started, (started) => fromStarted(this.#runner, started)), options)
  }

  /** Follows a task that was started before, by this client or another one: see `Client.resumeTask`. */
  resumeTask(handle: RemoteTask.Handle, options?: Abortable<RemoteTask.ResumeOptions>): Promise<AsyncTask> {
    return this.#run(
      Effect.map(this.#client.resumeTask(handle, options), (task) => fromTask(this.#runner, task)),
      options
    )
  }

  /** Lists one page of the tasks of this caller (2025-11-25 only). */
  listTasksPage(options?: Abortable<Client.PageOptions>): Promise<ListTasksResult> {
    return this.#run(this.#client.listTasksPage(options), options)
  }

  // ---- resources and prompts

  /** Lists one page of the resources. */
  listResourcesPage(options?: Abortable<Client.PageOptions>): Promise<ListResourcesResult> {
    return this.#run(this.#client.listResourcesPage(options), options)
  }

  /** Lists all resources. */
  listResources(options?: AsyncRequestOptions): Promise<ReadonlyArray<Resource>> {
    return this.#run(this.#client.listResources(options), options)
  }

  /** Lists one page of the resource templates. */
  listResourceTemplatesPage(options?: Abortable<Client.PageOptions>): Promise<ListResourceTemplatesResult> {
    return this.#run(this.#client.listResourceTemplatesPage(options), options)
  }

  /** Lists all resource templates. */
  listResourceTemplates(options?: AsyncRequestOptions): Promise<ReadonlyArray<ResourceTemplate>> {
    return this.#run(this.#client.listResourceTemplates(options), options)
  }

  /** Reads a resource. */
  readResource(uri: string, options?: AsyncRequestOptions): Promise<ReadResourceResult> {
    return this.#run(this.#client.readResource(uri, options), options)
  }

  /** Lists one page of the prompts. */
  listPromptsPage(options?: Abortable<Client.PageOptions>): Promise<ListPromptsResult> {
    return this.#run(this.#client.listPromptsPage(options), options)
  }

  /** Lists all prompts. */
  listPrompts(options?: AsyncRequestOptions): Promise<ReadonlyArray<Prompt>> {
    return this.#run(this.#client.listPrompts(options), options)
  }

  /** Returns the messages of a prompt, with its arguments filled in. */
  getPrompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: AsyncRequestOptions
  ): Promise<GetPromptResult> {
    return this.#run(this.#client.getPrompt(name, args, options), options)
  }

  /** Lists one page of the skills. */
  listSkillsPage(options?: Abortable<Client.PageOptions>): Promise<ListSkillsResult> {
    return this.#run(this.#client.listSkillsPage(options), options)
  }

  /** Lists the entries of all skills: see `Client.listSkills`. */
  listSkills(options?: AsyncRequestOptions): Promise<ReadonlyArray<Skill>> {
    return this.#run(this.#client.listSkills(options), options)
  }

  /** Returns the entry of a skill by the URI of its `SKILL.md`. */
  getSkill(uri: string, options?: AsyncRequestOptions): Promise<Skill> {
    return this.#run(this.#client.getSkill(uri, options), options)
  }

  /** Returns suggestions for the value of an argument of a prompt or of a resource template. */
  complete({ signal, ...options }: Abortable<Client.CompleteOptions>): Promise<CompleteResult> {
    return this.#run(this.#client.complete(options), { signal })
  }

  // ---- the connection

  /** Resolves if the server answers. */
  ping(options?: Abortable<Client.PingOptions>): Promise<void> {
    return this.#run(this.#client.ping(options), options)
  }

  /** Sets the least severe level of the log messages that the server sends: see `Client.setLoggingLevel` and `onLog`. */
  setLoggingLevel(level: LoggingLevel, options?: AsyncRequestOptions): Promise<void> {
    return this.#run(this.#client.setLoggingLevel(level, options), options)
  }

  /** Sends a request of the method table, or of an extension: see `Client.request`. */
  request<P, R>(method: Method.RequestMethod<P, R>, params: P, options?: AsyncRequestOptions): Promise<R> {
    return this.#run(this.#client.request(method, params, options), options)
  }

  /**
   * The changes on the server: see `Changes`. A loop subscribes when it begins, and leaving it ends the subscription. It
   * throws the errors of `Client.changes`, and ends without one when the client is closed.
   *
   * @example
   * for await (const change of client.changes({ tools: true })) {
   *   if (change._tag === "Subscribed" || change._tag === "ToolListChanged") show(await client.listTools())
   * }
   */
  changes(filter: Filter, options?: Abortable<ChangesOptions>): AsyncIterable<Change> {
    return this.#runner.iterate(this.#client.changes(filter, options), options?.signal)
  }

  /** The notifications of the server: see `Client.notifications`. For log messages alone use `onLog`. */
  notifications(options?: Abortable<{}>): AsyncIterable<Notification> {
    return this.#runner.iterate(this.#client.notifications, options?.signal)
  }

  /** The connection status: the present one first, then each change. */
  status(options?: Abortable<{}>): AsyncIterable<Status> {
    return this.#runner.iterate(this.#client.status, options?.signal)
  }

  /** Resolves when the client has ended, with how its last connection ended. */
  ended(options?: Abortable<{}>): Promise<SessionEnd> {
    return this.#runner.isClosing ? Effect.runPromise(this.#client.ended) : this.#run(this.#client.ended, options)
  }

  /** Clears the cached responses of this server. */
  clearCache(): void {
    Effect.runSync(this.#client.clearCache)
  }

  /**
   * Closes the client, and ends its server if the transport has started it. Resolves when nothing runs any more: see the
   * module. Further calls return the same promise.
   */
  close(): Promise<void> {
    this.#signal?.removeEventListener("abort", this.#abort)
    return this.#runner.close()
  }

  /** Closes the client at the end of a block: `await using client = await AsyncClient.connect(transport)`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  readonly #abort = (): void => void this.close()

  #run<A>(effect: Effect.Effect<A, ClientError>, options: Abortable<object> | undefined): Promise<A> {
    return this.#runner.run(effect, options?.signal)
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

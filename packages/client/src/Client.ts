/**
 * A client of one server, in any of the five revisions.
 *
 * `make` opens the transport, negotiates the revision, and returns a `Client` that is open until the scope closes. Its
 * methods return the same results in all revisions: those of older servers are converted to the newest form.
 *
 * A method that the negotiated revision lacks fails with `Unsupported` and sends nothing. So does a method whose
 * capability the server did not declare ("Both parties MUST only use capabilities that were successfully negotiated",
 * 2025-11-25, lifecycle), unless `enforceCapabilities` is off. Interrupting an effect cancels its request at the
 * server.
 *
 * @example
 * ```ts
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(Stdio.transport({ command: "node", args: ["server.js"] }))
 *   const tools = yield* client.listTools()
 *   const { sum } = yield* client.callTool("add", { a: 1, b: 2 }, { output: Schema.Struct({ sum: Schema.Number }) })
 * }).pipe(Effect.scoped)
 * ```
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { Implementation } from "@skein/protocol/Implementation"
import type { LoggingLevel } from "@skein/protocol/Logging"
import type { CompleteResult } from "@skein/protocol/Completion"
import type { ListTasksResult } from "@skein/protocol/LegacyTask"
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
import type { ListToolsResult, Tool } from "@skein/protocol/Tool"
import type { Transport } from "@skein/runtime/Connection"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Change, Filter, Options as ChangesOptions } from "./Changes.ts"
import type { ClientError } from "./ClientError.ts"
import type { ServerProfile } from "./ServerProfile.ts"
import { ClientImpl } from "./internal/client/client.ts"
import { ClientContextImpl } from "./internal/client/context.ts"
import { Connector } from "./internal/connection/connector.ts"
import { logConnection } from "./internal/connection/connection.ts"
import * as ConnectionSupervisor from "./internal/connection/supervisor.ts"
import type {
  CallToolOptions,
  CompleteOptions,
  PageOptions,
  PingOptions,
  RequestOptions,
  TypedCallOptions
} from "./internal/base/callOptions.ts"
import type { Limits, Options } from "./internal/connection/clientOptions.ts"
import type { LoggingMessage, Notification } from "./Notification.ts"
import type * as RemoteTask from "./RemoteTask.ts"
import type * as Toolkit from "./Toolkit.ts"
import type { Status } from "./Status.ts"

export type { Heartbeat } from "./internal/connection/heartbeat.ts"
export type {
  CallToolOptions,
  CompleteOptions,
  Limits,
  Options,
  PageOptions,
  PingOptions,
  RequestOptions,
  TypedCallOptions
}

/**
 * Calls a tool. The arguments are an object of JSON values, which an `interface` may describe. If the server answers
 * with a task, the call waits for the result of the task, and cancels the task when it is interrupted: see
 * `RemoteTask`.
 */
export interface CallTool {
  /**
   * Returns the `structuredContent`, decoded by the schema `output` from JSON. If the result has none, it decodes the
   * first text that is JSON: 2024-11-05 and 2025-03-26 have no structured content, and values that are not objects need
   * 2026-07-28. A result with `isError` fails with `ToolFailed`, and one that the schema rejects with
   * `InvalidResponse`. Both reasons have the result.
   */
  <A, RD = never>(
    name: string,
    args: object | undefined,
    options: TypedCallOptions<A, RD>
  ): Effect.Effect<A, ClientError, RD>
  /** Returns the result as it is, including a result with `isError`. */
  (name: string, args?: object, options?: CallToolOptions): Effect.Effect<CallToolResult, ClientError>
}

/** Requests all pages of a list. */
export interface RequestAll {
  <R extends { readonly nextCursor?: string | undefined }, A>(
    method: Method.RequestMethod<{ readonly cursor?: string | undefined }, R>,
    items: (page: R) => ReadonlyArray<A>,
    options?: RequestOptions
  ): Effect.Effect<ReadonlyArray<A>, ClientError>
}

/** A client of one server. Make it with {@link make} or {@link layer}. */
export interface Client {
  /** The negotiated revision. */
  readonly revision: Revision.Revision
  /**
   * The result of the negotiation. Store it, and pass it to the next client of this server as the option
   * `serverProfile`.
   *
   * It is `undefined` after a server has left the probe without an answer within `probeTimeout`: such a server may be old,
   * or slow to start. If the answer arrives later, this is its result, which the next connection uses.
   */
  readonly serverProfile: ServerProfile | undefined
  /** The name that the host gives this server, as in the options. */
  readonly label: string | undefined
  /** The lifecycle of the negotiated revision: sessions, or stateless requests. */
  readonly era: Revision.Era
  /** Name and version of the server, as it sent them. Do not trust them. */
  readonly server: Implementation | undefined
  /** The capabilities that the server declared. */
  readonly capabilities: ServerCapabilities
  /** Instructions of the server for a language model. */
  readonly instructions: string | undefined

  /**
   * Lists one page of the tools. In this and the other lists, a malformed item is left out, and so is a malformed
   * optional member of a valid item, with a warning the first time. A page that is malformed beyond its items fails with
   * `InvalidResponse`.
   *
   * @example
   * ```ts
   * const first = yield* client.listToolsPage()
   * const second = yield* client.listToolsPage({ cursor: first.nextCursor })
   * ```
   */
  readonly listToolsPage: (options?: PageOptions) => Effect.Effect<ListToolsResult, ClientError>
  /**
   * Lists all tools, page by page, up to `limits.maxItems`. The options apply to each page:
   * `timeout` is the time of one page. A list whose cursor repeats ends there, with a warning in the log, and so
   * does one with an empty cursor before 2026-07-28.
   *
   * @example
   * ```ts
   * const tools = yield* client.listTools({ timeout: "10 seconds", cache: "refresh" })
   * ```
   */
  readonly listTools: (options?: RequestOptions) => Effect.Effect<ReadonlyArray<Tool>, ClientError>
  readonly callTool: CallTool
  /**
   * Calls a tool, and returns the task as soon as the server has created one, or else the result. In 2025-11-25, a tool
   * that may be called as a task is called as one; the tools are listed first if this one was not listed by the server,
   * or if the server was restarted since. See `RemoteTask`.
   *
   * It waits for the result (`Finished`) only if the server answers with it: since 2026-07-28 the server decides, and in
   * 2025-11-25 it has declared that the tool or all of its tools do not support tasks. If that is unknown, nothing is
   * sent: it fails with `Unsupported` for a tool that the server does not list, with the failure of `tools/list`, or
   * with `Timeout`, and `undelivered` is true.
   *
   * @example
   * ```ts
   * const started = yield* client.startTask("render", { scene })
   * if (started._tag === "RemoteTask") yield* store.save(started.handle)
   * ```
   */
  readonly startTask: (
    name: string,
    args?: object,
    options?: CallToolOptions
  ) => Effect.Effect<RemoteTask.Started, ClientError>
  /**
   * Follows a task that was started before, by this client or another one. It requests the status once, and fails with
   * `TaskNotFound` if the server has no such task. It fails with `Unsupported` if the handle is malformed or names
   * another server.
   *
   * @example
   * ```ts
   * const task = yield* client.resumeTask(JSON.parse(stored))
   * const result = yield* task.result
   * ```
   */
  readonly resumeTask: (
    handle: RemoteTask.Handle,
    options?: RemoteTask.ResumeOptions
  ) => Effect.Effect<RemoteTask.RemoteTask, ClientError>
  /** Lists one page of the tasks of this caller (2025-11-25 only). Each can be resumed by its `taskId`. */
  readonly listTasksPage: (options?: PageOptions) => Effect.Effect<ListTasksResult, ClientError>

  /** Lists one page of the resources. */
  readonly listResourcesPage: (options?: PageOptions) => Effect.Effect<ListResourcesResult, ClientError>
  /** Lists all resources, as `listTools` does. */
  readonly listResources: (options?: RequestOptions) => Effect.Effect<ReadonlyArray<Resource>, ClientError>
  /** Lists one page of the resource templates. */
  readonly listResourceTemplatesPage: (options?: PageOptions) => Effect.Effect<ListResourceTemplatesResult, ClientError>
  /** Lists all resource templates, as `listTools` does. */
  readonly listResourceTemplates: (
    options?: RequestOptions
  ) => Effect.Effect<ReadonlyArray<ResourceTemplate>, ClientError>
  /**
   * Reads a resource. If it does not exist, the failure is a `ProtocolError` whose `error.reason` is
   * `ResourceNotFound`.
   */
  readonly readResource: (uri: string, options?: RequestOptions) => Effect.Effect<ReadResourceResult, ClientError>

  /** Lists one page of the prompts. */
  readonly listPromptsPage: (options?: PageOptions) => Effect.Effect<ListPromptsResult, ClientError>
  /** Lists all prompts, as `listTools` does. */
  readonly listPrompts: (options?: RequestOptions) => Effect.Effect<ReadonlyArray<Prompt>, ClientError>
  /** Returns the messages of a prompt, with its arguments filled in. */
  readonly getPrompt: (
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: RequestOptions
  ) => Effect.Effect<GetPromptResult, ClientError>

  /**
   * Returns suggestions for the value of an argument of a prompt or of a resource template.
   *
   * @example
   * ```ts
   * const { completion } = yield* client.complete({
   *   ref: { type: "ref/prompt", name: "review" },
   *   argument: { name: "framework", value: "ax" },
   *   contextArguments: { language: "rust" }
   * })
   * completion.values // ["axum"]
   * ```
   */
  readonly complete: (options: CompleteOptions) => Effect.Effect<CompleteResult, ClientError>
  /**
   * Succeeds if the server answers. It sends `ping`, or `server/discover` in the stateless revision, which has no
   * `ping`.
   */
  readonly ping: (options?: PingOptions) => Effect.Effect<void, ClientError>
  /**
   * Sets the least severe level of the log messages that the server sends: `logging/setLevel`. In the stateless
   * revision nothing is sent now, and each later request asks for that level (`io.modelcontextprotocol/logLevel`).
   * After a reconnect the level is set again. Deprecated since 2026-07-28, but supported there.
   */
  readonly setLoggingLevel: (level: LoggingLevel, options?: RequestOptions) => Effect.Effect<void, ClientError>

  /**
   * Sends a request of the method table, typed by its entry. An entry of the application, for a method of an extension,
   * works as well.
   *
   * @example
   * ```ts
   * yield* client.request(Method.Subscribe, { uri: "file:///notes" })
   * ```
   */
  readonly request: <P, R>(
    method: Method.RequestMethod<P, R>,
    params: P,
    options?: RequestOptions
  ) => Effect.Effect<R, ClientError>
  /**
   * Requests all pages of a list, as `listTools` does: for a list of an extension. `items` returns the items of a page.
   *
   * @example
   * ```ts
   * const jobs = yield* client.requestAll(ListJobs, ({ jobs }) => jobs, { retry: true })
   * ```
   */
  readonly requestAll: RequestAll
  /**
   * The changes on the server from when the stream is run: see `Changes`. The stream goes on through reconnects, and
   * ends only with an error: `Unsupported` if the server reports none of the changes in the filter, the error with
   * which the server refuses it, or `Closed` when the client was closed or has given up.
   *
   * @example
   * ```ts
   * yield* client.changes({ tools: true, uris: ["file:///notes"] }).pipe(
   *   Stream.runForEach((change) => Effect.logInfo(change._tag)),
   *   Effect.forkScoped
   * )
   * ```
   */
  readonly changes: (filter: Filter, options?: ChangesOptions) => Stream.Stream<Change, ClientError>
  /**
   * The log messages of the server, with a buffer for each run of the stream. See `setLoggingLevel` and `Logging.forward`.
   * Deprecated since 2026-07-28, but supported there.
   */
  readonly logs: Stream.Stream<LoggingMessage>
  /**
   * Clears the cached responses of this server in every partition. Responses that are on their way are not cached
   * either. Change notifications of the server clear the responses that they concern automatically.
   */
  readonly clearCache: Effect.Effect<void>
  /**
   * The notifications of the server, except for progress and cancellation. Each run of the stream has a buffer of
   * `limits.maxBufferedNotifications`, and ends with the session. A notification that arrives while no stream runs is dropped,
   * and so is one that is malformed.
   */
  readonly notifications: Stream.Stream<Notification>
  /**
   * The connection status: the present one first, then each change. A stream that is read slowly loses all but the last
   * 16 statuses. It ends with the client.
   */
  readonly status: Stream.Stream<Status>
  /**
   * Waits until the client has ended and no further connection follows. Returns how the last connection ended.
   */
  readonly ended: Effect.Effect<SessionEnd>
}

/** The service tag of the client, for programs that use one. */
export const Client: Context.Service<Client, Client> = Context.Service<Client>("@skein/client/Client")

/**
 * Opens a client that the scope closes.
 *
 * It fails with
 * - `ConnectionFailed` if the transport could not be opened, or nothing answers at the address;
 * - `Closed` or `Timeout` if the server ended or did not answer during the handshake;
 * - `Unauthorized` or `HttpError` if the server requires authorization, or the address is not that of an MCP server;
 * - `NegotiationFailed` if the two sides share no revision, or the server refused the handshake.
 *
 * The client negotiates the revision with `server/discover`, then with `initialize`, unless the response shows that the
 * server is stateless. Over HTTP, it tries HTTP+SSE with a server that refuses `initialize` with 400, 404 or 405. The
 * option `serverProfile` skips all of that. The result is logged at the level `Debug`.
 *
 * If a server exits while it is probed, the client connects again and sends `initialize` first: some servers exit when
 * they get a request that they do not support.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(Http.transport({ url: "https://mcp.example.com/mcp" }))
 *   return yield* client.callTool("greet", { name: "Ada" })
 * }).pipe(Effect.scoped)
 */
export const make = (transport: Transport, options: Options = {}): Effect.Effect<Client, ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const client = new ClientContextImpl(options, yield* Effect.context<never>(), scope)
    client.supervisor = yield* ConnectionSupervisor.make(
      new Connector(transport, client),
      client,
      ConnectionSupervisor.resolveReconnect(options, transport)
    )
    yield* logConnection(client.supervisor.last, client.answers.capabilities, options.label)
    return new ClientImpl(client)
  })

/**
 * A layer that opens a client and closes it. The errors are those of {@link make}.
 *
 * @example
 * const ClientLive = Client.layer(Http.transport({ url: "https://mcp.example.com/mcp" }))
 * const program = Effect.flatMap(Client.Client, (client) => client.listTools())
 * Effect.runPromise(Effect.provide(program, ClientLive))
 */
export const layer = (transport: Transport, options: Options = {}): Layer.Layer<Client, ClientError> =>
  Layer.effect(Client, make(transport, options))

/**
 * Makes a toolkit for a language model from the tools of a client, of several clients by name, or of a pool. See
 * `Toolkit`. Its module and `effect/ai` are loaded when this effect runs.
 *
 * @example
 * const toolkit = Client.toolkit({ files, search })
 * const answer = yield* LanguageModel.generateText({ prompt: "Which of my notes mention tea?", toolkit })
 */
export const toolkit: Toolkit.Make = <Mode extends "error" | "return" = "return">(
  source: Toolkit.ToolSource,
  options?: Toolkit.Options<Mode>
): Effect.Effect<Toolkit.Toolkit<Mode>> => {
  // Only the toolkit of a single client can fail, for which the type has the failure.
  let making: Effect.Effect<Toolkit.Toolkit<Mode>> | undefined
  return Effect.flatMap(
    Effect.promise(() => import("./Toolkit.ts")),
    ({ make }) => making ??= make(source, options) as Effect.Effect<Toolkit.Toolkit<Mode>>
  )
}

/**
 * A client of one server, whatever revision the server speaks.
 *
 * `make` opens the transport, negotiates the revision, and returns a `Client` that lives as long as the scope. Its
 * methods return the same results in all five revisions: those of older servers are converted to the newest form.
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
import type * as SchemaValidation from "@skein/protocol/SchemaValidation"
import type { ListToolsResult, Tool } from "@skein/protocol/Tool"
import type { Transport } from "@skein/runtime/Connection"
import type * as Limits from "@skein/runtime/Limits"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Change, Filter, Options as ChangesOptions } from "./Changes.ts"
import type { ClientError } from "./ClientError.ts"
import type { ServerProfile } from "./ServerProfile.ts"
import { logConnection } from "./internal/connection/logConnection.ts"
import { ClientImpl } from "./internal/client.ts"
import { ClientContextImpl } from "./internal/context.ts"
import * as ConnectionSupervisor from "./internal/connection/supervisor.ts"
import type { Heartbeat } from "./internal/connection/heartbeat.ts"
import type {
  CallToolOptions,
  CompleteOptions,
  PageOptions,
  PingOptions,
  RequestOptions,
  TypedCallOptions
} from "./internal/calls/options.ts"
import type { Middleware } from "./Middleware.ts"
import type { LoggingMessage, Notification } from "./Notification.ts"
import type * as RemoteTask from "./RemoteTask.ts"
import type * as ResponseCache from "./ResponseCache.ts"
import type * as Toolkit from "./Toolkit.ts"
import type * as Reconnect from "./Reconnect.ts"
import type { Status } from "./Status.ts"
import type * as TaskReceiver from "./TaskReceiver.ts"
import type { Telemetry } from "./Telemetry.ts"

/** How a client is made. Every member is optional; the defaults stand beside it. */
export interface Options {
  /** What this side is called: `{ name: "skein", version: "0.1.0" }` by default. */
  readonly info?: Implementation | undefined
  /**
   * The revisions that may be spoken: all by default. With none of the request era the server is not probed, and with
   * none of the session era `initialize` is never sent.
   */
  readonly revisions?: ReadonlyArray<Revision.Revision> | undefined
  /**
   * How long the answer to `server/discover` is waited for before `initialize` is sent: 3 seconds by default. A server
   * that only starts slowly loses nothing by it. Not used where no session may be opened: then the timeout of any
   * request counts.
   */
  readonly probeTimeout?: Duration.Input | undefined
  /** The bounds of the connection, and the timeouts of its requests. */
  readonly limits?: Limits.Limits | undefined
  /**
   * Whether a method fails with `Unsupported`, and sends nothing, when the server did not declare its capability: true
   * by default. Turn it off for a server that offers more than it declares.
   */
  readonly enforceCapabilities?: boolean | undefined
  /**
   * How many pages `listTools` and its like ask for: 1,000 by default. One that has more fails with `LimitExceeded`.
   */
  readonly maxPages?: number | undefined
  /**
   * How many items `listTools` and its like gather: 10,000 by default. A listing of more fails with `LimitExceeded`.
   */
  readonly maxItems?: number | undefined
  /**
   * How long what they gather may be, in UTF-16 units of JSON: 64 Mi by default, of what comes after the first eight
   * pages, which are not measured. A listing of more fails with `LimitExceeded`.
   */
  readonly maxListingChars?: number | undefined
  /**
   * How many notifications wait for each listener of `notifications`, `logs` or `changes`: 256 by default. When it is
   * full the oldest is dropped; of changes a `Gap` tells.
   */
  readonly maxBufferedNotifications?: number | undefined
  /** Functions around each call, outermost first: see `Middleware`. None by default. */
  readonly middleware?: ReadonlyArray<Middleware> | undefined
  /** Makes a span for each request: `Telemetry.make()`. None by default. */
  readonly telemetry?: Telemetry | undefined
  /**
   * What the host calls this server: handed to what answers its questions, as `asker.label`. None by default; in a pool
   * it is the server's name there.
   */
  readonly label?: string | undefined
  /**
   * How often one request may be answered with questions (`input_required`) before it fails with `LimitExceeded`: 10 by
   * default. What the host answers to them is provided as services: `Elicitation`, `Sampling`, `Roots`.
   */
  readonly maxRounds?: number | undefined
  /**
   * How many questions one answer may hold: 32 by default. A request that is answered with more fails with
   * `LimitExceeded`, and none of them is put to the host. An error that lists more addresses to visit than that
   * (2025-11-25, `-32042`) is left as it is.
   */
  readonly maxInputRequests?: number | undefined
  /**
   * How many questions of one answer are put to the host at the same time: 8 by default. The others wait for one to
   * end. What a server asks with requests of its own, in the session era, is bounded by `limits.maxInFlightRequests`.
   */
  readonly inputRequestConcurrency?: number | undefined
  /**
   * How questions are bounded that a server asks as tasks (2025-11-25); `false` turns it off: it is not declared then,
   * and such questions are answered as any others. See `TaskReceiver`.
   */
  readonly taskReceiver?: TaskReceiver.Options | false | undefined
  /**
   * Whether what a tool answers is checked by its `outputSchema`, where the tool was listed: yes by default ("Clients
   * SHOULD validate structured results against this schema"), within the given bounds or else those of
   * `SchemaValidation`. What does not fit, or would take more steps than that, fails with `InvalidResponse`, the first
   * time after the tools were listed anew to see whether the tool has changed. A schema that cannot be used checks
   * nothing, and the log says so.
   */
  readonly validateOutput?: boolean | SchemaValidation.Options | undefined
  /**
   * Of how many tools it is remembered what they were listed with (their `outputSchema`, the parameters that are
   * mirrored into headers, whether they are repeatable): 10,000 by default. Of more, the one that was listed first is
   * forgotten.
   */
  readonly maxTools?: number | undefined
  /**
   * How long the `outputSchema`s that are remembered may be all together, in UTF-16 units of JSON: 16 Mi by default.
   * What tools beyond that answer is not checked, and the log says so. One that is too long for `validateOutput` is not
   * remembered at all.
   */
  readonly maxOutputSchemaChars?: number | undefined
  /**
   * Whether a connection that is lost is opened anew, and how: by default as the transport does, with the policy's own
   * defaults. HTTP does; a process that dies stays dead, unless this is `true` or a policy. The first connection is
   * opened once.
   */
  readonly reconnect?: Reconnect.Policy | boolean | undefined
  /**
   * How often one request is made again whose answer was lost: 3 times by default, then its failure is told. Only what
   * has not reached the server or may be repeated is (see {@link RequestOptions}), within the timeouts of the request.
   */
  readonly maxRetries?: number | undefined
  /**
   * Asks the server every `interval` whether it is there, with `ping` or `server/discover`. When it does not answer
   * within `timeout` the connection is ended as lost, and `reconnect` decides what follows. Off by default.
   */
  readonly heartbeat?: Heartbeat | undefined
  /**
   * How responses are kept that the server lets be kept: in memory, for this client alone, by default; `false` keeps
   * none. See `ResponseCache`.
   */
  readonly cache?: ResponseCache.Options | false | undefined
  /**
   * How tasks are gone about; `false` has none: the extension is not declared, and no call is augmented with one. See
   * `RemoteTask`.
   */
  readonly tasks?: RemoteTask.Options | boolean | undefined
  /** What was found out about the server before; see {@link Client.serverProfile}. */
  readonly serverProfile?: ServerProfile | undefined
}

export type { CallToolOptions, CompleteOptions, Heartbeat, PageOptions, PingOptions, RequestOptions, TypedCallOptions }

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

/** A client of one server. Make it with {@link make} or {@link layer}. */
export interface Client {
  /** The negotiated revision. */
  readonly revision: Revision.Revision
  /**
   * The result of the negotiation. Store it, and pass it to the next client of this server as the option
   * `serverProfile`.
   */
  readonly serverProfile: ServerProfile
  /** The lifecycle of the negotiated revision: sessions, or self-contained requests. */
  readonly era: Revision.Era
  /** Name and version of the server, as it sent them. Do not trust them. */
  readonly server: Implementation | undefined
  /** The capabilities that the server declared. */
  readonly capabilities: ServerCapabilities
  /** Instructions of the server for a language model. */
  readonly instructions: string | undefined

  /**
   * Lists one page of the tools. In this and the other lists, an item that is malformed is left out with a warning in
   * the log. A page that is malformed beyond its items fails with `InvalidResponse`.
   *
   * @example
   * ```ts
   * const first = yield* client.listToolsPage()
   * const second = yield* client.listToolsPage({ cursor: first.nextCursor })
   * ```
   */
  readonly listToolsPage: (options?: PageOptions) => Effect.Effect<ListToolsResult, ClientError>
  /**
   * Lists all tools, page by page, within `maxPages`, `maxItems` and `maxListingChars`. The options apply to each page:
   * `timeout` is the time of one page. A cursor that repeats fails with `InvalidResponse`.
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
   * that may be called as a task is called as one; the tools are listed first if this one was not listed. See
   * `RemoteTask`.
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
  /** Succeeds if the server answers. It sends `ping`, or `server/discover` in the request era, which has no `ping`. */
  readonly ping: (options?: PingOptions) => Effect.Effect<void, ClientError>
  /**
   * Sets the least severe level of the log messages that the server sends: `logging/setLevel`. In the request era
   * nothing is sent now, and each later request asks for that level (`io.modelcontextprotocol/logLevel`). After a
   * reconnect the level is set again.
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
   * The changes on the server from when the stream is run: see `Changes`. The stream goes on through reconnects, and
   * ends only with an error: `Unsupported` if the server reports nothing of the filter, the error with which the server
   * refuses it, or `Closed` when the client was closed or has given up.
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
   * The log messages of the server, with a buffer for each run of the stream. See `setLoggingLevel` and `Logs.forward`.
   */
  readonly logs: Stream.Stream<LoggingMessage>
  /**
   * Clears the cached responses of this server in every partition. Responses that are on their way are not cached
   * either. Change notifications of the server clear the responses that they concern automatically.
   */
  readonly clearCache: Effect.Effect<void>
  /**
   * The notifications of the server, except for progress and cancellation. Each run of the stream has a buffer of
   * `maxBufferedNotifications`, and ends with the session. A notification that arrives while no stream runs is dropped,
   * and so is one that is malformed.
   */
  readonly notifications: Stream.Stream<Notification>
  /**
   * The connection status: the present one first, then each change. A stream that is read slowly loses all but the last
   * 16. It ends with the client.
   *
   * @example
   * ```ts
   * yield* Stream.runForEach(client.status, ({ _tag }) => Effect.logInfo(_tag)).pipe(Effect.forkScoped)
   * ```
   */
  readonly status: Stream.Stream<Status>
  /**
   * Waits until the client has ended, when no further connection follows, and returns how the last connection ended.
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
 * The revision is negotiated with `server/discover`, then with `initialize`, unless the answer was one that only a
 * server of the request era sends. Over HTTP, a server that refuses `initialize` with 400, 404 or 405 is tried with
 * HTTP+SSE. The option `serverProfile` skips all of that. The log has the result at the level `Debug`.
 *
 * A server that ends while it is probed is connected to again, and is sent `initialize` first: some servers exit when
 * they get a request that they do not support.
 */
export const make = (transport: Transport, options: Options = {}): Effect.Effect<Client, ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const context = new ClientContextImpl(transport, options, yield* Effect.context<never>(), scope)
    context.supervisor = yield* ConnectionSupervisor.make(context)
    yield* logConnection(context.supervisor.last, context.answers.capabilities, options.label)
    return new ClientImpl(context)
  })

/** A layer that opens a client and closes it. The errors are those of {@link make}. */
export const layer = (transport: Transport, options: Options = {}): Layer.Layer<Client, ClientError> =>
  Layer.effect(Client, make(transport, options))

/**
 * Makes a toolkit for a language model from the tools of a client, of several clients by name, or of a pool. See
 * `Toolkit`. Its module and `effect/ai` are loaded when this effect runs.
 */
export const toolkit = <Mode extends "error" | "return" = "return">(
  source: Toolkit.ToolSource,
  options?: Toolkit.Options<Mode>
): Effect.Effect<Toolkit.Toolkit<Mode>, ClientError> =>
  Effect.flatMap(Effect.promise(() => import("./Toolkit.ts")), ({ make }) => make(source, options))

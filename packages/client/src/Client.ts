/**
 * A client of one server, whatever revision the server speaks.
 *
 * `make` opens the transport, finds out which revisions the two sides share, and gives a `Client` that lives as long as the
 * scope. Its methods give the same results in all five revisions: what an older server says is lifted to the newest names.
 *
 * **Gotchas.** A method that the negotiated revision lacks fails with `Unsupported` and sends nothing; so does one whose
 * capability the server did not declare ("Both parties MUST only use capabilities that were successfully negotiated",
 * 2025-11-25, lifecycle), unless `enforceCapabilities` is off. Interrupting an effect cancels its request on the wire.
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(Stdio.transport({ command: "node", args: ["server.js"] }))
 *   const { tools } = yield* client.listTools()
 *   const sum = yield* client.callTool("add", { a: 1, b: 2 }, { output: Schema.Struct({ sum: Schema.Number }) })
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
import * as Keeper from "./internal/connection/supervisor.ts"
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
   * The revisions that may be spoken: all by default. With none of the request era the server is not probed, and with none of
   * the session era `initialize` is never sent.
   */
  readonly revisions?: ReadonlyArray<Revision.Revision> | undefined
  /**
   * How long the answer to `server/discover` is waited for before `initialize` is sent: 3 seconds by default. A server that
   * only starts slowly loses nothing by it. Not used where no session may be opened: then the timeout of any request counts.
   */
  readonly probeTimeout?: Duration.Input | undefined
  /** The bounds of the connection, and the timeouts of its requests. */
  readonly limits?: Limits.Limits | undefined
  /**
   * Whether a method fails with `Unsupported`, and sends nothing, when the server did not declare its capability: true by
   * default. Turn it off for a server that offers more than it declares.
   */
  readonly enforceCapabilities?: boolean | undefined
  /** How many pages `listTools` and its like ask for: 1,000 by default. One that has more fails with `Limit`. */
  readonly maxPages?: number | undefined
  /** How many items `listTools` and its like gather: 10,000 by default. A listing of more fails with `Limit`. */
  readonly maxItems?: number | undefined
  /**
   * How long what they gather may be, in UTF-16 units of JSON: 64 Mi by default, of what comes after the first eight pages, which are
   * not measured. A listing of more fails with `Limit`.
   */
  readonly maxListingChars?: number | undefined
  /**
   * How many notifications wait for each listener of `notifications`, `logs` or `changes`: 256 by default. When it is full the
   * oldest is dropped; of changes a `Gap` tells.
   */
  readonly maxBufferedNotifications?: number | undefined
  /** Functions around each call, outermost first: see `Middleware`. None by default. */
  readonly middleware?: ReadonlyArray<Middleware> | undefined
  /** Makes a span for each request: `Telemetry.make()`. None by default. */
  readonly telemetry?: Telemetry | undefined
  /**
   * What the host calls this server: handed to what answers its questions, as `asker.label`. None by default; in a pool it is the
   * server's name there.
   */
  readonly label?: string | undefined
  /**
   * How often one request may be answered with questions (`input_required`) before it fails with `Limit`: 10 by default. What
   * the host answers to them is provided as services: `Elicitation`, `Sampling`, `Roots`.
   */
  readonly maxRounds?: number | undefined
  /**
   * How many questions one answer may hold: 32 by default. A request that is answered with more fails with `Limit`, and none of
   * them is put to the host. An error that lists more addresses to visit than that (2025-11-25, `-32042`) is left as it is.
   */
  readonly maxInputRequests?: number | undefined
  /**
   * How many questions of one answer are put to the host at the same time: 8 by default. The others wait for one to end. What a
   * server asks with requests of its own, in the session era, is bounded by `limits.maxInFlightRequests`.
   */
  readonly inputRequestConcurrency?: number | undefined
  /**
   * How questions are bounded that a server asks as tasks (2025-11-25); `false` turns it off: it is not declared then, and such
   * questions are answered as any others. See `TaskReceiver`.
   */
  readonly taskReceiver?: TaskReceiver.Options | false | undefined
  /**
   * Whether what a tool answers is checked by its `outputSchema`, where the tool was listed: yes by default ("Clients SHOULD validate
   * structured results against this schema"), within the given bounds or else those of `SchemaValidation`. What does not fit, or
   * would take more steps than that, fails with `InvalidAnswer`, the first time after the tools were listed anew to see whether the
   * tool has changed. A schema that cannot be used checks nothing, and the log says so.
   */
  readonly validateOutput?: boolean | SchemaValidation.Options | undefined
  /**
   * Of how many tools it is remembered what they were listed with (their `outputSchema`, the parameters that are mirrored into
   * headers, whether they are repeatable): 10,000 by default. Of more, the one that was listed first is forgotten.
   */
  readonly maxTools?: number | undefined
  /**
   * How long the `outputSchema`s that are remembered may be all together, in UTF-16 units of JSON: 16 Mi by default. What tools beyond
   * that answer is not checked, and the log says so. One that is too long for `validateOutput` is not remembered at all.
   */
  readonly maxOutputSchemaChars?: number | undefined
  /**
   * Whether a connection that is lost is opened anew, and how: by default as the transport does, with the policy's own defaults. HTTP
   * does; a process that dies stays dead, unless this is `true` or a policy. The first connection is opened once.
   */
  readonly reconnect?: Reconnect.Policy | boolean | undefined
  /**
   * How often one request is made again whose answer was lost: 3 times by default, then its failure is told. Only what has not
   * reached the server or may be repeated is (see {@link RequestOptions}), within the timeouts of the request.
   */
  readonly maxRetries?: number | undefined
  /**
   * Asks the server every `interval` whether it is there, with `ping` or `server/discover`. When it does not answer within `timeout` the
   * connection is ended as lost, and `reconnect` decides what follows. Off by default.
   */
  readonly heartbeat?: Heartbeat | undefined
  /**
   * How responses are kept that the server lets be kept: in memory, for this client alone, by default; `false` keeps none. See
   * `ResponseCache`.
   */
  readonly cache?: ResponseCache.Options | false | undefined
  /**
   * How tasks are gone about; `false` has none: the extension is not declared, and no call is augmented with one. See `RemoteTask`.
   */
  readonly tasks?: RemoteTask.Options | boolean | undefined
  /** What was found out about the server before; see {@link Client.serverProfile}. */
  readonly serverProfile?: ServerProfile | undefined
}

export type { CallToolOptions, CompleteOptions, Heartbeat, PageOptions, PingOptions, RequestOptions, TypedCallOptions }

/**
 * Calls a tool. The arguments are an object of JSON values; an `interface` may describe them. Where the server answers with a task, it
 * is seen through to its result, and cancelled when the call is interrupted: see `RemoteTask`.
 */
export interface CallTool {
  /**
   * Gives `structuredContent` as the schema reads it from JSON; where the result has none (2024-11-05 and 2025-03-26 know none, and a
   * value that is no object needs 2026-07-28), the first text that is JSON. A result with `isError` fails with `Tool`, and one
   * that the schema refuses with `InvalidAnswer`; both errors carry the result.
   */
  <A, RD = never>(
    name: string,
    args: object | undefined,
    options: TypedCallOptions<A, RD>
  ): Effect.Effect<A, ClientError, RD>
  /** Gives the result as it is, also where the tool failed as a tool may (`isError`). */
  (name: string, args?: object, options?: CallToolOptions): Effect.Effect<CallToolResult, ClientError>
}

/** A client of one server. See the module's text. */
export interface Client {
  /** What was negotiated. */
  readonly revision: Revision.Revision
  /** What was found out about the server, to be kept and given to the next client of it (`serverProfile`). */
  readonly serverProfile: ServerProfile
  /** How the negotiated revision converses. */
  readonly era: Revision.Era
  /** Name and version of the server, as it gave them. Not to be trusted. */
  readonly server: Implementation | undefined
  /** What the server declared. */
  readonly capabilities: ServerCapabilities
  /** How to use the server, for a language model. */
  readonly instructions: string | undefined

  /**
   * One page of the tools. Here and in the other listings an item that is malformed is left out, and the log says so; a page
   * that is malformed beyond that fails with `InvalidAnswer`.
   */
  readonly listToolsPage: (options?: PageOptions) => Effect.Effect<ListToolsResult, ClientError>
  /**
   * All tools: walks the pages, within `maxPages`, `maxItems` and `maxListingChars`. Each page is asked for with these options, so that
   * `timeout` is the time of one page. A cursor that repeats fails with `InvalidAnswer`.
   */
  readonly listTools: (options?: RequestOptions) => Effect.Effect<ReadonlyArray<Tool>, ClientError>
  readonly callTool: CallTool
  /**
   * Calls a tool, and gives the task as soon as the server has made one of the call; a result that came at once otherwise. In 2025-11-25 a
   * tool that can be called as a task is, and the tools are listed first where this one was not. See `RemoteTask`.
   */
  readonly startTask: (
    name: string,
    args?: object,
    options?: CallToolOptions
  ) => Effect.Effect<RemoteTask.Started, ClientError>
  /**
   * Takes a task up that was started before, by this client or another one: looks at it once, and fails with `Gone` where the server does
   * not know it. A handle that is malformed, or belongs to a server of another name, is `Unsupported`.
   */
  readonly resumeTask: (
    handle: RemoteTask.Handle,
    options?: RemoteTask.ResumeOptions
  ) => Effect.Effect<RemoteTask.RemoteTask, ClientError>
  /** One page of the tasks that are one's own: in 2025-11-25 alone. Each can be resumed, by its `taskId`. */
  readonly listTasksPage: (options?: PageOptions) => Effect.Effect<ListTasksResult, ClientError>

  /** One page of the resources. */
  readonly listResourcesPage: (options?: PageOptions) => Effect.Effect<ListResourcesResult, ClientError>
  /** All resources; see `listTools`. */
  readonly listResources: (options?: RequestOptions) => Effect.Effect<ReadonlyArray<Resource>, ClientError>
  /** One page of the resource templates. */
  readonly listResourceTemplatesPage: (options?: PageOptions) => Effect.Effect<ListResourceTemplatesResult, ClientError>
  /** All resource templates; see `listTools`. */
  readonly listResourceTemplates: (
    options?: RequestOptions
  ) => Effect.Effect<ReadonlyArray<ResourceTemplate>, ClientError>
  /** The contents of a resource. One that does not exist fails with `Protocol` and the reason `ResourceNotFound`. */
  readonly readResource: (uri: string, options?: RequestOptions) => Effect.Effect<ReadResourceResult, ClientError>

  /** One page of the prompts. */
  readonly listPromptsPage: (options?: PageOptions) => Effect.Effect<ListPromptsResult, ClientError>
  /** All prompts; see `listTools`. */
  readonly listPrompts: (options?: RequestOptions) => Effect.Effect<ReadonlyArray<Prompt>, ClientError>
  /** A prompt, filled in. */
  readonly getPrompt: (
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: RequestOptions
  ) => Effect.Effect<GetPromptResult, ClientError>

  /**
   * Suggestions for the value of an argument of a prompt or of a resource template.
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
  /** Whether the server answers: `ping`, or `server/discover` in the request era, which has no `ping`. */
  readonly ping: (options?: PingOptions) => Effect.Effect<void, ClientError>
  /**
   * The least severe log messages that the server should send: `logging/setLevel`. In the request era nothing is sent now:
   * each request from here on asks for that level (`io.modelcontextprotocol/logLevel`). After a reconnect it is set again.
   */
  readonly setLoggingLevel: (level: LoggingLevel, options?: RequestOptions) => Effect.Effect<void, ClientError>

  /**
   * Sends any request of the method table, typed by its entry: `client.request(Method.Subscribe, { uri })`. An entry of one's
   * own, for a method of an extension, will do too.
   */
  readonly request: <P, R>(
    method: Method.RequestMethod<P, R>,
    params: P,
    options?: RequestOptions
  ) => Effect.Effect<R, ClientError>
  /**
   * What changes on the server, from when the stream is run: see `Changes`. It goes on through reconnects, and ends only with an
   * error: `Unsupported` where nothing of the filter is told, what the server refuses it with, or `Closed` when the client is closed
   * or it was given up.
   */
  readonly changes: (filter: Filter, options?: ChangesOptions) => Stream.Stream<Change, ClientError>
  /** The log messages among the notifications, with buffers of their own; see `setLoggingLevel` and `Logs.forward`. */
  readonly logs: Stream.Stream<LoggingMessage>
  /**
   * Forgets the responses that are kept of this server, of every partition; what is on its way now is not kept either. Notices of
   * the server do so by themselves for what they are about.
   */
  readonly clearCache: Effect.Effect<void>
  /**
   * The notifications of the server, except for progress and cancellation. Each run is a listener of its own with a buffer of
   * `maxBufferedNotifications`, and ends with the session. What comes while nobody listens is dropped, and so is what is malformed.
   */
  readonly notifications: Stream.Stream<Notification>
  /**
   * How the client stands with its server: the present status first, and each one after that. A watcher that does not keep up
   * misses what is older than the last 16. Ends when the client has.
   */
  readonly status: Stream.Stream<Status>
  /** Waits for the end of it all, when no connection follows any more, and says why the last one ended. */
  readonly ended: Effect.Effect<SessionEnd>
}

/** The client, for programs that have one. */
export const Client: Context.Service<Client, Client> = Context.Service<Client>("@skein/client/Client")

/**
 * Opens a client that the scope closes.
 *
 * - `Open`: the transport could not be opened; over HTTP nobody was reached. `Closed`, `TimedOut`: the server ended, or did not
 *   answer, during the handshake.
 * - `Unauthorized`, `Refused`: over HTTP, the server wants to know who asks, or what answers is no server of the protocol.
 * - `Negotiation`: there is no revision that both sides speak, or the server refused the handshake.
 *
 * What the server speaks is found out: with `server/discover`; then with `initialize`, unless the answer was one that only a server
 * of the request era gives; and over HTTP with the stream of HTTP+SSE at last, where `initialize` is refused with 400, 404 or 405.
 * `serverProfile` spares all of that. A line of the log, at the level `Debug`, says what was agreed on and what this client has declared.
 *
 * A server that ends while it is probed is connected to once more, and is sent `initialize` first: there are servers that exit
 * when they get a request that they do not know.
 */
export const make = (transport: Transport, options: Options = {}): Effect.Effect<Client, ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    const desk = new ClientContextImpl(transport, options, yield* Effect.context<never>(), scope)
    desk.supervisor = yield* Keeper.make(desk)
    yield* logConnection(desk.supervisor.last, desk.answers.capabilities, options.label)
    return new ClientImpl(desk)
  })

/** A layer that opens a client, and closes it. See {@link make}. */
export const layer = (transport: Transport, options: Options = {}): Layer.Layer<Client, ClientError> =>
  Layer.effect(Client, make(transport, options))

/**
 * Gives the tools of a client, of several by name, or of a pool to a language model. See `Toolkit`, which is loaded, and `effect/ai`
 * with it, when this runs: who does not ask for it does not pay for it.
 */
export const toolkit = <Mode extends "error" | "return" = "return">(
  source: Toolkit.ToolSource,
  options?: Toolkit.Options<Mode>
): Effect.Effect<Toolkit.Toolkit<Mode>, ClientError> =>
  Effect.flatMap(Effect.promise(() => import("./Toolkit.ts")), ({ make }) => make(source, options))

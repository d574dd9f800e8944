/**
 * The methods of a client.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { Implementation } from "@skein/protocol/Implementation"
import type { LoggingLevel } from "@skein/protocol/Logging"
import { EmptyResult } from "@skein/protocol/Message"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import * as Revision from "@skein/protocol/Revision"
import type { Tool } from "@skein/protocol/Tool"
import type { Peer } from "@skein/runtime/Peer"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type * as Changes from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import type { ServerProfile } from "../../ServerProfile.ts"
import type { LoggingMessage, Notification } from "../../Notification.ts"
import type { Handle, RemoteTask, ResumeOptions, Started } from "../../RemoteTask.ts"
import type { Status } from "../../Status.ts"
import { type ClientContextImpl, setLevel } from "./context.ts"
import { capabilitiesOf } from "../base/serverInfo.ts"
import { type NegotiatedConnection, serverOf, serverProfileOf } from "../connection/connection.ts"
import * as Output from "../calls/output.ts"
import { walk } from "../calls/pages.ts"
import { closedFor, inLifecycle, unsupportedOn } from "../calls/support.ts"
import type {
  CallToolOptions,
  CompleteOptions,
  PageOptions,
  PingOptions,
  RequestOptions,
  TypedCallOptions
} from "../base/callOptions.ts"
import { taskClient } from "../calls/tasks/awaitTask.ts"

type Listing<R> = Method.RequestMethod<{ readonly cursor?: string | undefined }, R>
type All<A> = Effect.Effect<ReadonlyArray<A>, ClientError>

// The content of the response was decoded in the handshake, so that any response will do.
const anyDiscovery = { ...Method.Discover, result: EmptyResult }

/**
 * Makes each method of a class bind itself to the object that it is first read from, so that it works without the object
 * (`const { callTool } = client`). A closure for each method would be most of the memory of an idle client.
 */
export const bindOnRead = (prototype: object): void => {
  for (const [name, { value: method }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof method !== "function" || name === "constructor") continue
    Object.defineProperty(prototype, name, {
      configurable: true,
      get(this: object) {
        const value: unknown = method.bind(this)
        Object.defineProperty(this, name, { value })
        return value
      }
    })
  }
}

/**
 * The client. A host may keep thousands of idle clients, so that a client has no closures: a method is bound when it is
 * first read.
 */
export class ClientImpl {
  readonly #client: ClientContextImpl

  constructor(client: ClientContextImpl) {
    this.#client = client
  }

  static {
    bindOnRead(this.prototype)
  }

  /** The peer of the client's present connection, for tests that inspect or close it. */
  static peerOf(client: object): Peer {
    if (!(#client in client)) throw new TypeError("Not a client of this package")
    return client.#client.supervisor.last.peer
  }

  // ---- the server

  get #last(): NegotiatedConnection {
    return this.#client.supervisor.last
  }

  get revision(): Revision.Revision {
    return this.#last.revision
  }

  get era(): Revision.Era {
    return Revision.era(this.#last.revision)
  }

  get server(): Implementation | undefined {
    return serverOf(this.#last)
  }

  get capabilities(): ServerCapabilities {
    return capabilitiesOf(this.#last.capabilities, this.#last.revision)
  }

  get instructions(): string | undefined {
    return this.#last.agreement.instructions
  }

  get label(): string | undefined {
    return this.#client.options.label
  }

  get serverProfile(): ServerProfile | undefined {
    return serverProfileOf(this.#last)
  }

  // ---- requests

  request<P, R>(
    method: Method.RequestMethod<P, R>,
    params: P,
    options?: RequestOptions
  ): Effect.Effect<R, ClientError> {
    return this.#client.call(method, params, options)
  }

  #page<R>(method: Listing<R>, options: PageOptions = {}): Effect.Effect<R, ClientError> {
    return this.#client.call(method, options.cursor === undefined ? {} : { cursor: options.cursor }, options)
  }

  requestAll<R extends { readonly nextCursor?: string | undefined }, A>(
    method: Listing<R>,
    items: (page: R) => ReadonlyArray<A>,
    options?: RequestOptions
  ): All<A> {
    return walk(method.name, this.#client, (cursor) => this.#page(method, { ...options, cursor }), items)
  }

  listToolsPage(options?: PageOptions) {
    return this.#page(Method.ListTools, options)
  }

  listTools(options?: RequestOptions): All<Tool> {
    return this.requestAll(Method.ListTools, ({ tools }) => tools, options)
  }

  callTool(name: string, args?: object, options?: CallToolOptions): Effect.Effect<CallToolResult, ClientError>
  callTool<A, RD>(
    name: string,
    args: object | undefined,
    options: TypedCallOptions<A, RD>
  ): Effect.Effect<A, ClientError, RD>
  callTool<A, RD>(
    name: string,
    args?: object,
    options: CallToolOptions | TypedCallOptions<A, RD> = {}
  ): Effect.Effect<CallToolResult | A, ClientError, RD> {
    const params = args === undefined ? { name } : { name, arguments: args as JsonObject }
    const called = this.#client.call(Method.CallTool, params, options)
    return "output" in options && options.output !== undefined
      ? Effect.flatMap(called, (result) => Output.decode(name, result, options.output))
      : called
  }

  startTask(name: string, args?: object, options: CallToolOptions = {}): Effect.Effect<Started, ClientError> {
    return Effect.flatMap(taskClient, ({ start }) => start(this.#client, name, args, options))
  }

  resumeTask(handle: Handle, options: ResumeOptions = {}): Effect.Effect<RemoteTask, ClientError> {
    return Effect.flatMap(taskClient, ({ resume }) => resume(this.#client, handle, options))
  }

  listTasksPage(options?: PageOptions) {
    return this.#page(Method.LegacyListTasks, options)
  }

  listResourcesPage(options?: PageOptions) {
    return this.#page(Method.ListResources, options)
  }

  listResources(options?: RequestOptions): All<Resource> {
    return this.requestAll(Method.ListResources, ({ resources }) => resources, options)
  }

  listResourceTemplatesPage(options?: PageOptions) {
    return this.#page(Method.ListResourceTemplates, options)
  }

  listResourceTemplates(options?: RequestOptions): All<ResourceTemplate> {
    return this.requestAll(Method.ListResourceTemplates, ({ resourceTemplates }) => resourceTemplates, options)
  }

  readResource(uri: string, options?: RequestOptions) {
    return this.#client.call(Method.ReadResource, { uri }, options)
  }

  listPromptsPage(options?: PageOptions) {
    return this.#page(Method.ListPrompts, options)
  }

  listPrompts(options?: RequestOptions): All<Prompt> {
    return this.requestAll(Method.ListPrompts, ({ prompts }) => prompts, options)
  }

  getPrompt(name: string, args?: Readonly<Record<string, string>>, options?: RequestOptions) {
    return this.#client.call(Method.GetPrompt, args === undefined ? { name } : { name, arguments: args }, options)
  }

  complete({ argument, contextArguments, ref, ...options }: CompleteOptions) {
    const context = contextArguments === undefined ? undefined : { context: { arguments: contextArguments } }
    return this.#client.call(Method.Complete, { ref, argument, ...context }, options)
  }

  ping(options?: PingOptions): Effect.Effect<void, ClientError> {
    return Effect.asVoid(inLifecycle<unknown>(
      this.#client.supervisor,
      (isStateless) => this.#client.call(isStateless ? anyDiscovery : Method.Ping, {}, { ...options, cache: "bypass" })
    ))
  }

  setLoggingLevel(level: LoggingLevel, options?: RequestOptions): Effect.Effect<void, ClientError> {
    const client = this.#client
    const { supervisor } = client
    return inLifecycle(supervisor, (isStateless) => {
      const { last } = supervisor
      const set = Effect.sync(() => {
        client.loggingLevel = level
      })
      if (!isStateless) return Effect.andThen(client.call(Method.SetLevel, { level }, options), set)
      const refused = closedFor(supervisor, setLevel.name) ?? unsupportedOn(client, last, setLevel)
      if (refused !== undefined) return Effect.fail(refused)
      last.setLogLevel(level)
      return set
    })
  }

  // ---- messages of the server

  changes(filter: Changes.Filter, options?: Changes.Options): Stream.Stream<Changes.Change, ClientError> {
    return this.#client.changes.on(this.#client, filter, options)
  }

  get logs(): Stream.Stream<LoggingMessage> {
    return this.#client.notifications.filter((notification) => notification._tag === "LoggingMessage")
  }

  get notifications(): Stream.Stream<Notification> {
    return this.#client.notifications.stream
  }

  // ---- the client itself

  get clearCache(): Effect.Effect<void> {
    return Effect.sync(() => this.#client.clearCache())
  }

  get status(): Stream.Stream<Status> {
    return this.#client.supervisor.status
  }

  get ended(): Effect.Effect<SessionEnd> {
    return this.#client.supervisor.ended
  }
}

/**
 * The methods of a client with promises, which the clients of `AsyncClient` and of `AsyncClientPool` have in common.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { CompleteResult } from "@skein/protocol/Completion"
import type { Implementation } from "@skein/protocol/Implementation"
import type { ListTasksResult } from "@skein/protocol/LegacyTask"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Method from "@skein/protocol/Method"
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
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { Change, Filter, Options as ChangesOptions } from "../../Changes.ts"
import type * as Client from "../../Client.ts"
import type { ClientError } from "../../ClientError.ts"
import type { Notification } from "../../Notification.ts"
import type * as RemoteTask from "../../RemoteTask.ts"
import type { ServerProfile } from "../../ServerProfile.ts"
import type { Status } from "../../Status.ts"
import { bindOnRead } from "../client/client.ts"
import { fromStarted, fromTask, toCallOptions } from "./asyncTask.ts"
import type { AsyncToolkit, ToolkitOptions } from "./asyncToolkit.ts"
import type { Abortable, AsyncCallOptions, AsyncRequestOptions, AsyncStarted, AsyncTask } from "./options.ts"
import type { PromiseRunner } from "./promiseRunner.ts"

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

/** The methods, their arguments and their results are those of `Client`. A method may be taken out of its client. */
export class ClientMethods {
  readonly #client: Client.Client
  readonly #runner: PromiseRunner
  readonly #warned = { about: "" }

  constructor(client: Client.Client, runner: PromiseRunner) {
    this.#client = client
    this.#runner = runner
  }

  static {
    bindOnRead(this.prototype)
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
        Effect.promise(() => import("./standardOutput.ts")),
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

  /**
   * The present tools for a language model, with their own names. Make a toolkit for each conversation, or after a change.
   * Rejects if the tools cannot be listed. For the tools of many servers use `AsyncClientPool`.
   *
   * @example
   * const { call, tools } = await client.toolkit({ schemas: "openai", maxTools: 128 })
   */
  async toolkit(options?: ToolkitOptions): Promise<AsyncToolkit<undefined>> {
    const { makeToolkit } = await import("./asyncToolkit.ts")
    return makeToolkit(this.#runner, this.#client, options, this.#warned)
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
  request<P, R>(method: Method.RequestMethod<P, R>, params: P, options?: AsyncRequestOptions): Promise<R>
  /**
   * Sends a request by the name of its method. A method that the protocol does not define returns the members of its result
   * as the server sent them.
   *
   * @example
   * const { jobs } = await client.request("com.example/jobs", { state: "running" })
   */
  request(method: string, params?: JsonObject, options?: AsyncRequestOptions): Promise<JsonObject>
  request(
    method: string | Method.RequestMethod<unknown, unknown>,
    params: unknown = {},
    options?: AsyncRequestOptions
  ): Promise<unknown> {
    const entry = typeof method === "string" ? Method.named(method, this.revision) : method
    return this.#run(this.#client.request(entry, params, options), options)
  }

  /** Requests all pages of a list of an extension: see `Client.requestAll`. */
  requestAll<R extends { readonly nextCursor?: string | undefined }, A>(
    method: Method.RequestMethod<{ readonly cursor?: string | undefined }, R>,
    items: (page: R) => ReadonlyArray<A>,
    options?: AsyncRequestOptions
  ): Promise<ReadonlyArray<A>> {
    return this.#run(this.#client.requestAll(method, items, options), options)
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

  #run<A>(effect: Effect.Effect<A, ClientError>, options: Abortable<object> | undefined): Promise<A> {
    return this.#runner.run(effect, options?.signal)
  }
}

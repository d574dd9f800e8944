/**
 * The methods of a client.
 */
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Implementation,
  JsonObject,
  LoggingLevel,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Revision,
  Tool
} from "../base/messages.ts"
import type { InputOf, StandardSchema } from "../base/types.ts"
import type {
  Abortable,
  CallToolOptions,
  CompleteOptions,
  PageOptions,
  PingOptions,
  RemoteTask,
  RequestOptions,
  ResumeOptions,
  Started
} from "./calls.ts"
import type { Change, ChangesFilter, ChangesOptions, Notification, Status } from "./changes.ts"
import type { SessionEnd, TaskHandle } from "./errors.ts"
import type { ServerProfile } from "./options.ts"
import type {
  ListPromptsResult,
  ListResourcesResult,
  ListResourceTemplatesResult,
  ListTasksResult,
  ListToolsResult,
  ServerCapabilities
} from "./results.ts"
import type { AsyncToolkit, ToolkitOptions } from "./toolkit.ts"

/** Calls a tool. */
export interface CallTool {
  /**
   * Returns the `structuredContent`, validated by the schema `output` (of Zod, Valibot, ArkType and others), or else the first
   * text that is JSON. A result with `isError` rejects with the reason `ToolFailed`, and one that the schema rejects with
   * `InvalidResponse`.
   */
  <const S extends StandardSchema>(
    name: string,
    args: object | undefined,
    options: CallToolOptions & { readonly output: S }
  ): Promise<InputOf<S>>
  /** Returns the result as it is, including a result with `isError`. */
  (name: string, args?: object, options?: CallToolOptions & { readonly output?: undefined }): Promise<CallToolResult>
}

/**
 * The methods of a client. They return the same results in all revisions, and reject with `ClientError`. A method that the
 * server did not declare rejects with `Unsupported` and sends nothing. A method may be taken out of its client.
 */
export interface ClientMethods {
  /** The negotiated revision. */
  readonly revision: Revision
  /** The lifecycle of the negotiated revision: sessions, or stateless requests. */
  readonly era: "session" | "stateless"
  /** Name and version of the server, as it sent them. Do not trust them. */
  readonly server: Implementation | undefined
  /** The capabilities that the server declared. */
  readonly capabilities: ServerCapabilities
  /** Instructions of the server for a language model. */
  readonly instructions: string | undefined
  /** The name that the host gives this server, as in the options. */
  readonly label: string | undefined
  /** The result of the negotiation, for the option `serverProfile` of the next client of this server. */
  readonly serverProfile: ServerProfile | undefined

  /**
   * Lists all tools, page by page, up to `limits.maxItems`. The options apply to each page. In all lists, a malformed item is
   * left out, with a warning.
   */
  listTools(options?: RequestOptions): Promise<ReadonlyArray<Tool>>
  /** Lists one page of the tools. */
  listToolsPage(options?: PageOptions): Promise<ListToolsResult>
  /**
   * Calls a tool. If the server answers with a task, it waits for the result of the task.
   *
   * @example
   * const { content } = await client.callTool("search", { query }, { signal, timeout: "2 minutes", onProgress: show })
   * const { sum } = await client.callTool("add", { a, b }, { output: z.object({ sum: z.number() }) })
   */
  readonly callTool: CallTool
  /**
   * Calls a tool, and returns the task as soon as the server has created one, or else the result.
   *
   * @example
   * const started = await client.startTask("render", { scene })
   * if (started._tag === "RemoteTask") await store.save(started.handle)
   */
  startTask(name: string, args?: object, options?: CallToolOptions): Promise<Started>
  /** Follows a task that was started before, by this client or another one. Rejects with `TaskNotFound` without it. */
  resumeTask(handle: TaskHandle, options?: ResumeOptions): Promise<RemoteTask>
  /** Lists one page of the tasks of this caller (2025-11-25 only). */
  listTasksPage(options?: PageOptions): Promise<ListTasksResult>
  /**
   * The present tools for a language model, with their own names. Make a toolkit for each conversation, or after a change. For
   * the tools of many servers use `AsyncClientPool`.
   *
   * @example
   * const { call, tools } = await client.toolkit({ schemas: "openai", maxTools: 128 })
   */
  toolkit(options?: ToolkitOptions): Promise<AsyncToolkit<undefined>>

  /** Lists all resources. */
  listResources(options?: RequestOptions): Promise<ReadonlyArray<Resource>>
  /** Lists one page of the resources. */
  listResourcesPage(options?: PageOptions): Promise<ListResourcesResult>
  /** Lists all resource templates. `uriTemplate` makes URIs of them. */
  listResourceTemplates(options?: RequestOptions): Promise<ReadonlyArray<ResourceTemplate>>
  /** Lists one page of the resource templates. */
  listResourceTemplatesPage(options?: PageOptions): Promise<ListResourceTemplatesResult>
  /** Reads a resource. Without it, it rejects with a `ProtocolError` whose `error.reason` is `ResourceNotFound`. */
  readResource(uri: string, options?: RequestOptions): Promise<ReadResourceResult>
  /** Lists all prompts. */
  listPrompts(options?: RequestOptions): Promise<ReadonlyArray<Prompt>>
  /** Lists one page of the prompts. */
  listPromptsPage(options?: PageOptions): Promise<ListPromptsResult>
  /** Returns the messages of a prompt, with its arguments filled in. */
  getPrompt(
    name: string,
    args?: { readonly [argument: string]: string },
    options?: RequestOptions
  ): Promise<GetPromptResult>
  /**
   * Returns suggestions for the value of an argument of a prompt or of a resource template.
   *
   * @example
   * const { completion } = await client.complete({
   *   ref: { type: "ref/prompt", name: "review" },
   *   argument: { name: "framework", value: "ax" }
   * })
   */
  complete(options: CompleteOptions): Promise<CompleteResult>

  /** Resolves if the server answers. */
  ping(options?: PingOptions): Promise<void>
  /** Sets the least severe level of the log messages that the server sends to `onLog`. */
  setLoggingLevel(level: LoggingLevel, options?: RequestOptions): Promise<void>
  /**
   * Sends a request by the name of its method: one of the protocol, or of an extension.
   *
   * @example
   * const { jobs } = await client.request("com.example/jobs", { state: "running" })
   */
  request(method: string, params?: JsonObject, options?: RequestOptions): Promise<JsonObject>
  /**
   * The changes on the server. A loop subscribes when it begins, and leaving it ends the subscription. It goes on through
   * reconnects, throws a `ClientError` if the server reports none of the changes, and ends when the client is closed.
   *
   * @example
   * for await (const change of client.changes({ tools: true })) {
   *   if (change._tag === "Subscribed" || change._tag === "ToolListChanged") show(await client.listTools())
   * }
   */
  changes(filter: ChangesFilter, options?: ChangesOptions): AsyncIterable<Change>
  /** The notifications of the server. For log messages alone use `onLog`. */
  notifications(options?: Abortable): AsyncIterable<Notification>
  /** The connection status: the present one first, then each change. A slow reader loses all but the last 16. */
  status(options?: Abortable): AsyncIterable<Status>
  /** Resolves when the client has ended, with how its last connection ended. */
  ended(options?: Abortable): Promise<SessionEnd>
  /** Clears the cached responses of this server. */
  clearCache(): void
}

/**
 * The class `AsyncServer`.
 */
import * as Core from "@skein/server/AsyncServer"
import { refuseStdout } from "../base/logger.ts"
import { observed, type ObservedServer, processLogs, recorded } from "../base/observed.ts"
import { type Definition, isService, layerOf, type Service, type Transport } from "../base/definition.ts"
import type { Principal } from "../base/http.ts"
import type { JsonObject } from "../base/messages.ts"
import { endpointOptions, mainOptions, type RouteHandler, RouteTable } from "./coreHttp.ts"
import type { CompletionOptions, Completions } from "./completion.ts"
import type { Handler, HandlerContext } from "./handlerContext.ts"
import type { HttpMainOptions, HttpOptions } from "./httpOptions.ts"
import { middleware } from "./middleware.ts"
import type { ServerOptions, StdioOptions } from "./options.ts"
import { type CheckedArguments, prompt, type PromptAnswer, type PromptOptions } from "./prompt.ts"
import type { McpRequest } from "./request.ts"
import {
  type CheckedVariables,
  resource,
  type ResourceAnswer,
  type ResourceOptions,
  template,
  type TemplateOptions,
  type TemplateVariables
} from "./resource.ts"
import type { AnySchema, ReadBy } from "./schema.ts"
import { exposeParts } from "./serverParts.ts"
import { type CheckedSchemas, tool, type ToolHandler, type ToolOptions } from "./tool.ts"

/** A server that listens on HTTP. */
export interface Listening {
  readonly host: string
  readonly port: number
  /** The URL of the endpoint. */
  readonly url: string
  /** Refuses new requests, lets those in progress finish within `shutdownTimeout`, and stops. */
  readonly close: () => Promise<void>
}

/** Returns the server of `@skein/server` that an `AsyncServer` is. */
export let coreOf: (server: AsyncServer) => Core.AsyncServer

/**
 * A server of the Model Context Protocol. Its definitions are added one after the other; `runStdio`, `runHttp` or `listen`
 * starts it.
 *
 * @example
 * new AsyncServer({ name: "shop", version: "1.0.0" })
 *   .tool("price", { input: z.object({ tea: z.string() }) }, async ({ tea }, { signal }) => priceOf(tea, signal))
 *   .resource("shop://menu", { mimeType: "text/markdown" }, () => readFile("menu.md", "utf8"))
 *   .runStdio()
 */
export class AsyncServer {
  readonly #core: Core.AsyncServer
  readonly #observed: ObservedServer
  readonly #routes = new RouteTable()

  static {
    coreOf = (server) => server.#core
  }

  /** The name and version of the server, its instructions, and further options. */
  constructor({ level, logger, telemetry, ...options }: ServerOptions) {
    this.#observed = { level, logger, telemetry }
    this.#core = new Core.AsyncServer(options as never)
      .provide(observed(this.#observed))
      .use(...recorded(this.#observed))
    exposeParts(this, () => this.#core.toLayer())
  }

  /**
   * Adds a tool. Arguments that do not match the input schema never reach the handler: the model receives the message of the
   * validation.
   *
   * @example
   * server.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
   */
  tool<Input extends AnySchema = {}, Output extends AnySchema = never, A = never>(
    name: string,
    options: ToolOptions<Input, Output> & CheckedSchemas<Input, Output>,
    handler: ToolHandler<Input, Output, A>
  ): this
  /** One object is the form of another library. */
  tool(definition: "A tool needs a name, options and a handler: tool(\"name\", { input }, async ({ … }) => …)"): this
  /** @deprecated Pass the options, too. */
  tool(name: string, options: "A tool needs options before its handler: tool(\"name\", {}, async () => …)"): this
  tool(...given: ReadonlyArray<unknown>): this {
    return this.use((tool as (...given: ReadonlyArray<unknown>) => Definition)(...given))
  }

  /**
   * Adds a resource.
   *
   * @example
   * server.resource("shop://menu", { mimeType: "text/markdown" }, () => readFile("menu.md", "utf8"))
   */
  resource(
    uri: string,
    options: ResourceOptions,
    read: (context: HandlerContext) => ResourceAnswer | Promise<ResourceAnswer>
  ): this {
    return this.use(resource(uri, options, read))
  }

  /**
   * Adds a template of resources (RFC 6570). `completion` has the suggestions for variables: lists, or functions that return
   * lists or promises.
   *
   * @example
   * server.template("notes://{id}", { name: "note" }, async ({ id }) => notes.read(id), {
   *   complete: { id: async (typed) => notes.search(typed) }
   * })
   */
  template<
    const T extends string,
    V extends AnySchema = never,
    C extends Completions<keyof TemplateVariables<T, V> & string> = {}
  >(
    uriTemplate: T,
    options: TemplateOptions<V> & CheckedVariables<T, V>,
    read: (
      variables: TemplateVariables<T, V>,
      uri: string,
      context: HandlerContext
    ) => ResourceAnswer | Promise<ResourceAnswer>,
    completion?: CompletionOptions<keyof TemplateVariables<T, V> & string, C>
  ): this {
    return this.use(template<T, V, C>(uriTemplate, options, read, completion))
  }

  /**
   * Adds a prompt. `completion` has the suggestions for arguments: lists, or functions that return lists or promises.
   *
   * @example
   * server.prompt("greet", { arguments: z.object({ name: z.string() }) }, ({ name }) => `Greet ${name}`)
   */
  prompt<A extends AnySchema = {}, C extends Completions<keyof ReadBy<A> & string> = {}>(
    name: string,
    options: PromptOptions<A> & CheckedArguments<A>,
    handler: Handler<ReadBy<A>, PromptAnswer>,
    completion?: CompletionOptions<keyof ReadBy<A> & string, C>
  ): this {
    return this.use(prompt<A, C>(name, options, handler, completion))
  }

  /**
   * Adds definitions: those of `tool`, `resource`, `template` and `prompt`, middleware and other parts, and the services of the
   * whole server, such as stores. Middleware that is added first is the outermost. Throws after the start of the server: `add`
   * adds definitions then.
   *
   * @example
   * server.use(rateLimit({ limit: 10, interval: "1 minute" }), price)
   */
  use(...parts: ReadonlyArray<Definition | Service>): this {
    for (const part of parts) {
      const layer = layerOf(part)
      if (isService(part)) this.#core.provide(layer as never)
      else this.#core.use(layer as never)
    }
    return this
  }

  /**
   * Answers the requests for a path beside the endpoint, of a server that `runHttp` or `listen` starts: such as `/metrics` or
   * `/webhooks`. `method` is `*` for all methods. A path may have parameters (`/users/:id`) and end with `*`. Throws after the
   * start.
   *
   * `Host` and `Origin` are checked as those of the endpoint, and its `protection` does not apply. A function that throws is
   * logged, and the response is 500. The signal of the request aborts when its client disconnects. `maxMessageBytes` bounds the
   * body.
   *
   * @example
   * server.route("GET", "/version", () => Response.json({ version: "1.0.0" }))
   */
  route(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" | "*",
    path: `/${string}`,
    handler: RouteHandler
  ): this {
    this.#routes.add(method, path, handler)
    return this
  }

  /**
   * Answers GET of a path with metrics in the text format of Prometheus: those that `read` returns in this process, or with
   * `workers` those of all. Counters and histograms are added, and gauges get the label `worker`. A worker that does not answer
   * within 1 second is counted as it was at the last scrape. The checks are those of `route`. Throws after the start.
   *
   * @example
   * // prom-client, or the serializer of OpenTelemetry's exporter
   * server.metrics("/metrics", () => register.metrics())
   */
  metrics(path: `/${string}`, read: () => string | Promise<string>): this {
    this.#routes.addMetrics(path, read)
    return this
  }

  /**
   * Adds an async function around every request: `use(middleware(…))`.
   *
   * @example
   * server.middleware(async (request, next, { log }) => {
   *   log.info(request.method)
   *   return next()
   * })
   */
  middleware(
    handle: (
      request: McpRequest,
      next: (request?: McpRequest) => Promise<JsonObject>,
      context: HandlerContext
    ) => JsonObject | Promise<JsonObject>
  ): this {
    return this.use(middleware(handle))
  }

  /**
   * Adds definitions while the server runs. Clients are notified of the changed lists, of a kind that the server had at its start
   * or that `declareListChanged` names. The promise has a function that removes the definitions. It rejects for a name that
   * exists, for example, and before the start.
   *
   * @example
   * const remove = await server.add(tool("refund", {}, async () => refund()))
   */
  add(...definitions: ReadonlyArray<Definition>): Promise<() => Promise<void>> {
    return this.#core.add(...definitions.map((definition) => layerOf(definition) as never))
  }

  /**
   * Notifies the clients that subscribed to a resource of a change, from anywhere in the program. It does not wait for them.
   * Nothing happens while the server does not run. `parent` is a subscribed resource that the changed one belongs to.
   *
   * @example
   * watch("menu.md", () => void server.updated("shop://menu"))
   */
  updated(uri: string, options?: { readonly parent?: string | undefined }): Promise<void> {
    return this.#core.updated(uri, options)
  }

  /**
   * Enables or disables a definition while the server runs: a disabled one does not exist for clients. Requests in progress
   * continue. `name` is the URI of a resource, or the text of a template. Rejects if no definition has the name.
   *
   * @example
   * await server.setEnabled("tool", "order", false)
   */
  async setEnabled(
    kind: "tool" | "resource" | "resource template" | "prompt",
    name: string,
    enabled: boolean
  ): Promise<void> {
    const { setEnabled } = await import("@skein/server/Catalog")
    await this.#core.run(setEnabled(kind, name, enabled))
  }

  /**
   * Removes results from the `resultCache` of the server: those of one tool or resource, or all.
   *
   * @example
   * await server.clearCache("stock")
   */
  async clearCache(target?: string): Promise<void> {
    const { clear } = await import("@skein/server/ResultCache")
    await this.#core.run(clear(target))
  }

  /**
   * A transport for clients in this process, such as those of tests. The server starts with the first connection of the
   * transport, and closes after its last one. `principal` is the caller that the server sees: none by default.
   *
   * @example
   * const client = await AsyncClient.connect(server.transport())
   */
  transport(options?: { readonly principal?: Principal | undefined }): Transport {
    return this.#core.transport(options) as unknown as Transport
  }

  /**
   * Runs the process as a server on stdio.
   *
   * - When stdin ends, requests in progress may finish within `shutdownTimeout` (5 seconds). The exit code is 0.
   * - After SIGTERM or SIGINT, requests in progress are interrupted. The exit code is 143 or 130. A second signal exits
   *   immediately.
   * - If the server cannot be built or loses its connection, the cause is written to stderr, and the exit code is 1.
   */
  runStdio(options?: StdioOptions): void {
    const { logger } = this.#observed
    if (logger !== undefined && options?.output === undefined) refuseStdout(logger)
    this.#core.runStdio({ ...options, ...processLogs(this.#observed) } as never)
  }

  /**
   * Runs the process as a server on HTTP. It logs the URL to stderr.
   *
   * - After SIGTERM or SIGINT and the `drainDelay` (0), requests in progress may finish within `shutdownTimeout` (5 seconds). The
   *   exit code is 143 or 130. A second signal exits immediately.
   * - If the server cannot be built or cannot listen, the cause is written to stderr, and the exit code is 1.
   */
  runHttp(options: HttpMainOptions = {}): void {
    this.#core.runHttp({ ...mainOptions(options), ...this.#routes.options(), ...processLogs(this.#observed) })
  }

  /**
   * Listens on HTTP, in a process that does other work too, such as a test. Rejects if the server cannot be built or cannot
   * listen.
   *
   * @example
   * const { close, url } = await server.listen({ port: 0 })
   */
  listen(options: HttpOptions = {}): Promise<Listening> {
    return this.#core.listen({ ...endpointOptions(options), ...this.#routes.options() } as never)
  }
}

/**
 * A server as a class, for programs that do not use Effect: definitions with async functions, and a process, a listening
 * server or a layer at the end.
 *
 * `tool`, `resource`, `template` and `prompt` are `Tool.async`, `Resource.async`, `ResourceTemplate.async` and
 * `Prompt.async`; `HandlerContext` describes what a handler receives, and which errors a client sees. `use` adds
 * everything that is a layer: `Tasks.layer()`, middleware, and definitions with effects.
 *
 * @example
 * new AsyncServer({ name: "shop", version: "1.0.0" })
 *   .tool("price", { input: z.object({ tea: z.string() }) }, async ({ tea }, { signal }) => priceOf(tea, signal))
 *   .resource("shop://menu", { mimeType: "text/markdown" }, () => readFile("menu.md", "utf8"))
 *   .runStdio()
 */
import type { Transport } from "@skein/runtime/Connection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Scope from "effect/Scope"
import * as AsyncDefinition from "./AsyncDefinition.ts"
import { Catalog, requestServices, updated } from "./Catalog.ts"
import type * as Completion from "./Completion.ts"
import type { AsyncHandler, HandlerContext } from "./HandlerContext.ts"
import * as InMemoryTransport from "./InMemoryTransport.ts"
import { ForeignMethods } from "./internal/composition/foreignMethods.ts"
import {
  areOptions,
  type DefinitionMistake,
  optionsMistake,
  problemOfLayer
} from "./internal/composition/serverMistake.ts"
import type { AsyncMistake } from "./internal/handlers/handlerMistake.ts"
import type { AnySchema } from "./internal/schema/inputSchema.ts"
import * as McpServer from "./McpServer.ts"
import type * as NodeHttp from "./NodeHttp.ts"
import type * as Prompt from "./Prompt.ts"
import type * as Resource from "./Resource.ts"
import type * as ResourceTemplate from "./ResourceTemplate.ts"
import type * as Stdio from "./Stdio.ts"
import type * as Tool from "./Tool.ts"

/** A server that listens on HTTP. */
export interface Listening extends Pick<NodeHttp.Server["Service"], "host" | "port" | "url"> {
  /** Refuses new requests, lets those in progress finish within `shutdownTimeout`, and stops. */
  readonly close: () => Promise<void>
}

/** Throws for a value that is not a layer: untyped programs pass the types. */
const checkLayers = (values: ReadonlyArray<unknown>): void => {
  const problem = values.map(problemOfLayer).find((problem) => problem !== undefined)
  if (problem !== undefined) throw new TypeError(problem)
}

/** A server whose definitions are added one after the other. Its methods return the server. */
export class AsyncServer extends ForeignMethods {
  readonly #options: McpServer.Options
  readonly #definitions: Array<McpServer.Definitions> = []
  #services: Layer.Layer<never, unknown> = Layer.empty
  /** The catalogs of the servers that run now: of one, unless its layer is built several times. */
  readonly #catalogs = new Set<Catalog["Service"]>()
  #hasStarted = false

  /** The name and version of the server, its instructions, and further options: see `McpServer.layer`. */
  constructor(options: McpServer.Options | Capitalize<typeof optionsMistake>) {
    super()
    if (!areOptions(options)) throw new TypeError(optionsMistake)
    this.#options = options
  }

  /**
   * Adds a tool: see `Tool.make` and `Tool.async`.
   *
   * @example
   * server.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
   */
  tool<Input extends AnySchema = {}, Output extends AnySchema = never, A = never>(
    name: string,
    options: Tool.Options<Input, Output> & Tool.CheckedSchemas<Input, Output>,
    // Not an alias: the compiler would show its name in the place of the mistake.
    handler: (
      input: Tool.InputOf<Input>,
      context: HandlerContext
    ) =>
      | AsyncDefinition.ToolAnswer<Output>
      | Promise<AsyncDefinition.ToolAnswer<Output>>
      | (AsyncMistake<A, AsyncDefinition.OutputOf<Output>> & A)
  ): this
  /** One object is the form of another library. */
  tool(definition: "A tool needs a name, options and a handler: tool(\"name\", { input }, async ({ … }) => …)"): this
  /** @deprecated Pass the options, too. */
  tool(name: string, options: "A tool needs options before its handler: tool(\"name\", {}, async () => …)"): this
  tool(...given: ReadonlyArray<unknown>): this {
    const [name, options, handler] = given as [
      string,
      Tool.Options<{}, never>,
      AsyncHandler<{}, Tool.Answer<never>, never>
    ]
    return this.use(AsyncDefinition.tool(name, options, handler))
  }

  /** Adds a resource: see `Resource.make` and `Resource.async`. */
  resource(
    uri: string,
    options: Resource.Options,
    read: (context: HandlerContext) => Resource.Answer | Promise<Resource.Answer>
  ): this {
    return this.use(AsyncDefinition.resource(uri, options, read))
  }

  /**
   * Adds a resource template: see `ResourceTemplate.make` and `ResourceTemplate.async`. `completion` has the
   * suggestions for variables: lists, or functions that return lists or promises.
   *
   * @example
   * server.template("notes://{id}", { name: "note" }, async ({ id }) => notes.read(id), {
   *   complete: { id: async (typed) => notes.search(typed) }
   * })
   */
  template<
    const T extends string,
    V extends ResourceTemplate.Variables = never,
    C extends Completion.Sources<keyof AsyncDefinition.TemplateVariables<T, V> & string> = {}
  >(
    uriTemplate: T,
    options: ResourceTemplate.Options<V> & ResourceTemplate.CheckedVariables<T, V>,
    read: (
      variables: AsyncDefinition.TemplateVariables<T, V>,
      uri: string,
      context: HandlerContext
    ) => ResourceTemplate.Answer | Promise<ResourceTemplate.Answer>,
    completion?: Completion.Options<keyof AsyncDefinition.TemplateVariables<T, V> & string, C>
  ): this {
    return this.use(AsyncDefinition.template<T, V, C>(uriTemplate, options, read, completion))
  }

  /**
   * Adds a prompt: see `Prompt.make` and `Prompt.async`. `completion` has the suggestions for arguments: lists, or
   * functions that return lists or promises.
   *
   * @example
   * server.prompt("greet", { arguments: z.object({ name: z.string() }) }, ({ name }) => `Greet ${name}`)
   */
  prompt<A extends Prompt.Arguments = {}, C extends Completion.Sources<keyof Prompt.ArgumentsOf<A> & string> = {}>(
    name: string,
    options: Prompt.Options<A> & Prompt.CheckedArguments<A>,
    handler: AsyncHandler<Prompt.ArgumentsOf<A>, Prompt.Answer, never>,
    completion?: Completion.Options<keyof Prompt.ArgumentsOf<A> & string, C>
  ): this {
    return this.use(AsyncDefinition.prompt<A, C>(name, options, handler, completion))
  }

  /**
   * Adds layers: definitions with effects, middleware, extensions. A layer that requires services must be provided with
   * them. Throws after the start of the server: `add` adds definitions then.
   *
   * @example
   * server.use(RateLimit.layer({ limit: 10, interval: "1 minute" }))
   */
  use<const L extends ReadonlyArray<unknown>>(
    ...definitions:
      & L
      & ReadonlyArray<
        Layer.Layer<never, unknown, Catalog> | (DefinitionMistake<L[number], Catalog> & L[number])
      >
  ): this {
    if (this.#hasStarted) throw new Error(`the server ${this.#options.name} has started: add definitions before`)
    checkLayers(definitions)
    this.#definitions.push(...definitions as ReadonlyArray<unknown> as ReadonlyArray<McpServer.Definitions>)
    return this
  }

  /**
   * Provides layers to the whole server: stores of states, loggers, the keys of `RequestState`. A later one may need an
   * earlier one. Throws after the start of the server.
   *
   * @example
   * server.provide(StateStore.layerMemory({ maxEntries: 1_000 }))
   */
  provide(...services: ReadonlyArray<Layer.Layer<never, unknown>>): this {
    if (this.#hasStarted) throw new Error(`the server ${this.#options.name} has started: provide services before`)
    checkLayers(services)
    for (const service of services) this.#services = Layer.provideMerge(service, this.#services)
    return this
  }

  /**
   * Adds definitions while the server runs: `Tool.async`, `Resource.async` and so on. Clients are notified of the changed
   * lists, of a kind that the server had at its start or that `declareListChanged` names. The promise has a function that
   * removes the definitions. It rejects with `DefinitionError`, for a name that exists for example, and before the start.
   *
   * @example
   * const remove = await server.add(Tool.async(Tool.make("refund"), async () => refund()))
   */
  async add(...definitions: ReadonlyArray<Layer.Layer<never, unknown, Catalog>>): Promise<() => Promise<void>> {
    if (this.#catalogs.size === 0) throw new Error(`the server ${this.#options.name} does not run: use \`use\``)
    checkLayers(definitions)
    const scope = Scope.makeUnsafe()
    const remove = () => Effect.runPromise(Scope.close(scope, Exit.void))
    try {
      for (const catalog of this.#catalogs) {
        for (const definition of definitions) {
          const layer = Layer.provide(definition, Layer.succeedContext(Context.make(Catalog, catalog)))
          await Effect.runPromise(Layer.buildWithMemoMap(layer, Layer.makeMemoMapUnsafe(), scope))
        }
      }
      return remove
    } catch (error) {
      await remove()
      throw error
    }
  }

  /**
   * Notifies the clients that subscribed to a resource of a change, from anywhere in the program: see `Catalog.updated`. It
   * does not wait for them. Nothing happens while the server does not run.
   *
   * @example
   * watch("menu.md", () => void server.updated("shop://menu"))
   */
  updated(uri: string, options?: { readonly parent?: string | undefined }): Promise<void> {
    return this.run(updated(uri, options))
  }

  /**
   * Runs an effect with the catalog of the server, from anywhere in the program, such as `Catalog.setEnabled` or
   * `ResultCache.clear`. Rejects with its failure. Nothing happens while the server does not run.
   *
   * @example
   * await server.run(Catalog.setEnabled("tool", "order", false))
   */
  async run<A, E>(effect: Effect.Effect<A, E, Catalog>): Promise<void> {
    // With the services of the server, so that its loggers receive the logs.
    for (const catalog of this.#catalogs) {
      const services = Context.add(requestServices(catalog), Catalog, catalog)
      await Effect.runPromise(Effect.provideContext(effect, services))
    }
  }

  /** The server as a layer, for everything that takes one: tests with `InMemoryTransport`, other adapters. */
  toLayer(): Layer.Layer<McpServer.McpServer | Catalog, unknown> {
    this.#hasStarted = true
    const running = Layer.effectDiscard(Effect.flatMap(Catalog, (catalog) =>
      Effect.acquireRelease(
        Effect.sync(() => void this.#catalogs.add(catalog)),
        () => Effect.sync(() => void this.#catalogs.delete(catalog))
      )))
    const server = McpServer.layer(this.#options, ...this.#definitions, running) as Layer.Layer<
      McpServer.McpServer | Catalog,
      unknown
    >
    return Layer.provide(server, this.#services)
  }

  /**
   * A transport for clients in this process, such as those of tests. The server starts with the first connection of the
   * transport, and closes after its last one: see `InMemoryTransport.fromLayer`.
   *
   * @example
   * const client = await AsyncClient.connect(server.transport())
   */
  transport(options?: InMemoryTransport.Options): Transport {
    return InMemoryTransport.fromLayer(this.toLayer(), options)
  }

  /** Runs the process as a server on stdio: see `Stdio.runMain`. */
  runStdio(options?: Stdio.MainOptions): void {
    const server = this.toLayer()
    void import("./Stdio.ts").then(({ runMain }) => runMain(server, options))
  }

  /** Runs the process as a server on HTTP: see `NodeHttp.runMain`. */
  runHttp(options?: NodeHttp.MainOptions): void {
    const server = this.toLayer()
    void import("./NodeHttp.ts").then(({ runMain }) => runMain(server, options))
  }

  /**
   * Listens on HTTP, in a process that does other work too, such as a test. Rejects if the server cannot be built or
   * cannot listen.
   *
   * @example
   * const { close, url } = await server.listen({ port: 0 })
   */
  async listen(options?: NodeHttp.Options): Promise<Listening> {
    const { Server, layer } = await import("./NodeHttp.ts")
    const runtime = ManagedRuntime.make(Layer.provide(layer(options), this.toLayer()))
    try {
      const { host, port, url } = await runtime.runPromise(Effect.map(Server, (server) => server))
      return { host, port, url, close: () => runtime.dispose() }
    } catch (error) {
      await runtime.dispose()
      throw error
    }
  }
}

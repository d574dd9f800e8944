/**
 * Middleware: functions around the requests of a server, in all revisions. There are two levels.
 *
 * `callTool`, `readResource`, `getPrompt`, `listTools`, `listResources`, `listResourceTemplates` and `listPrompts` wrap
 * one operation. They see the definition, the decoded params, and the result before it is encoded for the revision of
 * the caller, and they may change the arguments and the result. Use them for rules about some tools.
 *
 * `layer` wraps the dispatcher: every request of every method. It receives the `RequestContext`: the method, the raw
 * params, the caller (`request.caller.principal`, `request.caller.revision`), and the headers of an HTTP request
 * (`request.origin?.header?.("user-agent")`). It receives `initialize` and methods that do not exist too. It does not
 * receive notifications, nor requests that are refused before dispatch (an invalid `_meta`, an id that is in use).
 *
 * - `next` of `layer` returns the encoded result, as an object or as JSON text (`JsonRpc.Encoded`), or fails with a
 *   JSON-RPC error. A middleware may change either, or answer without calling `next`, in the form of the caller's
 *   revision. In the stateless revision `resultType` and the description of the server are added if they are absent.
 * - A middleware changes the params with `next(request.with({ params }))`. Everything inside of it sees the new
 *   params: further middleware, the validation of arguments, the handler, and its `McpRequest`. Middleware outside of it
 *   (an audit log that is listed first) sees the params that the client sent. So do the checks that run before any
 *   middleware: the identity of the caller and the headers that repeat params (`x-mcp-header`). The method of a request
 *   cannot change. A changed name or URI is looked up for the caller: visibility and guards apply to it.
 * - Progress, input requests, cancellation and the `requestState` of 2026-07-28 belong to the request that the client
 *   sent. The client repeats it with its responses, and middleware runs again in each round, so it must make the same
 *   change again. Wrap a change that depends on the time or on chance in `once`.
 * - The order matters: middleware that is listed first is the outermost. All middleware of `layer` is outside of all
 *   middleware of operations, which is outside of extensions. It is added and removed with the scope of its layer, also
 *   while the server runs. Requests in progress continue with the middleware that they started with.
 * - The services of a middleware are captured when its layer is built. Handlers inside of it do not see them, but they
 *   do see the services that the middleware provides to `next(request)`.
 * - In the stateless revision a handler that sends input requests is interrupted. It runs again with the responses as
 *   a separate request.
 *
 * @example
 * const timed = Middleware.layer((next) => (request) =>
 *   Effect.tap(Effect.timed(next(request)), ([duration]) => Effect.logInfo(`${request.method} took ${duration}`)).pipe(
 *     Effect.map(([, answer]) => answer)
 *   ))
 * const limited = Middleware.callTool((call, next) => next({ ...call.arguments, limit: 10 }), { tools: ["search"] })
 * const server = McpServer.layer({ name: "timed", version: "1.0.0" }, timed, limited, Tool.layer(search, find))
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as WirePrompt from "@skein/protocol/Prompt"
import type * as WireResource from "@skein/protocol/Resource"
import type * as WireTool from "@skein/protocol/Tool"
import { networkOf } from "@skein/runtime/ClientKey"
import type { Answer, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Catalog, Handled, HandlerServices } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { HandlerContext } from "./HandlerContext.ts"
import type { HandlerError } from "./HandlerError.ts"
import { type CallOperation, internals } from "./internal/catalog/catalogState.ts"
import { toEffect } from "./internal/handlers/asyncHandler.ts"
import { failWithMcpError } from "./internal/handlers/handlerError.ts"
import { recover } from "./internal/handlers/toolCall.ts"
import { type Operation, withArguments } from "./internal/catalog/hookList.ts"
import { registerLayer } from "./internal/handlers/captureServices.ts"
import { methodOf } from "./internal/middleware/target.ts"

/** Handles a request: the server, or a middleware with everything inside of it. `R` are the services that it needs. */
export type Handler<R = never> = Dispatcher<McpRequest | R>

/** Wraps a handler. It is called once per change of the server's middleware, not once per request. */
export type Middleware<R = never> = (next: Handler) => Handler<R>

/**
 * Adds a middleware to a server. Middleware that is listed first is the outermost.
 *
 * @example
 * const refuse = Middleware.layer((next) => (request) =>
 *   request.method === "tools/call" && closed()
 *     ? Effect.fail(McpError.other(503, "Closed until 8:00"))
 *     : next(request))
 */
export const layer = <R = never>(
  middleware: Middleware<R>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  registerLayer<R>((catalog, provide, restore) =>
    catalog[internals].middleware.add((next) => {
      const handler = middleware((request) => restore(next(request)))
      return (request) => provide(handler(request) as Effect.Effect<Answer, McpError.McpError, R>)
    })
  )

/**
 * Adds a middleware whose handler is an async function. `next` handles the request, or another one, and returns a promise
 * of the result: it rejects with the `McpError` that the client would receive. The last argument is the context of an async
 * handler. Errors reach the client by the rules of `HandlerContext`: the message of a visible error becomes that of a
 * JSON-RPC error.
 *
 * @example
 * const timed = Middleware.async(async (request, next, { log }) => {
 *   const start = performance.now()
 *   const result = await next()
 *   log.info(request.method, performance.now() - start)
 *   return result
 * })
 */
export { asyncLayer as async }

const asyncLayer = <R = never>(
  handle: (
    request: RequestContext,
    next: (request?: RequestContext) => Promise<Answer>,
    context: HandlerContext<R>
  ) => Answer | Promise<Answer>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  layer<R>((next) => {
    const run = toEffect((request: RequestContext, context: HandlerContext<R>) =>
      handle(request, (changed = request) => context.run(next(changed)), context)
    )
    return (request) => Effect.catch(run(request), failWithMcpError)
  })

/** A tool, for the choice of the tools that a middleware applies to. */
export interface ToolInfo {
  readonly name: string
  /** The tool as `tools/list` returns it. */
  readonly definition: WireTool.Tool
  /** The option `metadata` of the tool. */
  readonly metadata: Context.Context<never> | undefined
}

/**
 * The tools that a middleware applies to: their names, or a predicate, which runs once for each tool.
 *
 * @example
 * const readOnly: Middleware.Tools = ({ definition }) => definition.annotations?.readOnlyHint === true
 */
export type Tools = ReadonlyArray<string> | ((tool: ToolInfo) => boolean)

/** A call of a tool. */
export interface ToolCall extends ToolInfo, Operation {
  /** The arguments as JSON. They are validated after all middleware. */
  readonly arguments: JsonObject
}

/** A read of a resource. */
export interface ResourceRead extends Operation {
  readonly uri: string
  /** The resource as `resources/list` returns it, or the template that the URI matches. */
  readonly definition: WireResource.Resource | WireResource.ResourceTemplate
}

/** A request for a prompt. */
export interface PromptGet extends Operation {
  readonly name: string
  /** The prompt as `prompts/list` returns it. */
  readonly definition: WirePrompt.Prompt
  /** The arguments as JSON. They are validated after all middleware. */
  readonly arguments: JsonObject
}

/** A request for a list. */
export interface Listing extends Operation {}

const infoOf = ({ definition, metadata }: CallOperation["entry"]): ToolInfo => ({
  name: definition.name,
  definition,
  metadata
})

/** @internal Turns a choice of tools into a predicate for their entries. */
export const choosing = (
  tools: Tools | undefined
): (entry: CallOperation["entry"]) => boolean => {
  if (tools === undefined) return () => true
  if (typeof tools === "function") {
    // A predicate runs once for each entry.
    const known = new WeakMap<CallOperation["entry"], boolean>()
    return (entry) => {
      const value = known.get(entry) ?? tools(infoOf(entry))
      known.set(entry, value)
      return value
    }
  }
  const names = new Set(tools)
  return ({ definition: { name } }) => names.has(name)
}

/**
 * Wraps the calls of tools. `next()` runs the call, and `next(args)` runs it with other arguments. The result may be
 * changed, or made without `next`.
 *
 * - It runs for tools that exist and that the caller may see and call. It sees neither unknown names nor refusals.
 * - A tool that fails returns a result with `isError`; `failureOf` returns the failure behind it. A defect of the handler
 *   is a defect of `next()`.
 * - A failure of the middleware becomes a result with `isError`, as that of a handler does. An `McpError` becomes a
 *   JSON-RPC error.
 * - With `@skein/tasks`, the result may be the handle of a task (`task`, or the `resultType` `task`). The later run of the
 *   task has the arguments that the middleware passed on, and does not pass the middleware again.
 * - A result with another `structuredContent` is not validated by the output schema of the tool.
 *
 * @example
 * const masked = Middleware.callTool(
 *   (call, next) => Effect.map(next({ ...call.arguments, tenant: call.caller.principal?.["tenant"] }), mask),
 *   { tools: ["search", "report"] }
 * )
 */
export const callTool = <E extends HandlerError = never, R = never>(
  middleware: (
    call: ToolCall,
    next: (args?: JsonObject) => Handled<CallToolResult>
  ) => Effect.Effect<CallToolResult, E | McpError.McpError, R>,
  options: { readonly tools?: Tools | undefined } = {}
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  registerLayer<R>((catalog, provide, restore) => {
    const isChosen = choosing(options.tools)
    return catalog[internals].operations.calls.add((next) => (operation) => {
      const { arguments: args, caller, entry, request } = operation
      if (!isChosen(entry)) return next(operation)
      const call: ToolCall = { ...infoOf(entry), arguments: args, caller, request }
      const run = (changed = args) => restore(next(withArguments(operation, changed))) as Handled<CallToolResult>
      return Effect.catch(provide(middleware(call, run)), recover)
    })
  })

/**
 * Wraps the reads of resources, of templates too. `next()` runs the read. A failure of the middleware is answered as
 * that of a reader.
 *
 * @example
 * const logged = Middleware.readResource((read, next) => Effect.tap(next(), () => Effect.logInfo(`read ${read.uri}`)))
 */
export const readResource = <E extends HandlerError = never, R = never>(
  middleware: (
    read: ResourceRead,
    next: () => Handled<WireResource.ReadResourceResult>
  ) => Effect.Effect<WireResource.ReadResourceResult, E | McpError.McpError, R>,
  options: {
    /** The URIs, or a predicate that runs for each read. All by default. */
    readonly resources?: ReadonlyArray<string> | ((read: ResourceRead) => boolean) | undefined
  } = {}
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  registerLayer<R>((catalog, provide, restore) => {
    const { resources } = options
    const uris = typeof resources === "function" ? undefined : resources && new Set(resources)
    return catalog[internals].operations.reads.add((next) => (operation) => {
      const { caller, entry: { definition }, request, uri } = operation
      const read: ResourceRead = { uri, definition, caller, request }
      if (typeof resources === "function" ? !resources(read) : uris?.has(uri) === false) return next(operation)
      return Effect.catch(provide(middleware(read, () => restore(next(operation)))), failWithMcpError)
    })
  })

/**
 * Wraps the requests for prompts. `next()` fills in the prompt, and `next(args)` does so with other arguments. A failure
 * of the middleware is answered as that of a prompt's handler.
 *
 * @example
 * const german = Middleware.getPrompt((prompt, next) => next({ ...prompt.arguments, language: "de" }))
 */
export const getPrompt = <E extends HandlerError = never, R = never>(
  middleware: (
    prompt: PromptGet,
    next: (args?: JsonObject) => Handled<WirePrompt.GetPromptResult>
  ) => Effect.Effect<WirePrompt.GetPromptResult, E | McpError.McpError, R>,
  options: {
    /** The names of the prompts. All by default. */
    readonly prompts?: ReadonlyArray<string> | undefined
  } = {}
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  registerLayer<R>((catalog, provide, restore) => {
    const names = options.prompts && new Set(options.prompts)
    return catalog[internals].operations.prompts.add((next) => (operation) => {
      const { arguments: args, caller, entry: { definition }, request } = operation
      const { name } = definition
      if (names?.has(name) === false) return next(operation)
      const run = (changed = args) => restore(next(withArguments(operation, changed)))
      const prompt: PromptGet = { name, definition, arguments: args, caller, request }
      return Effect.catch(provide(middleware(prompt, run)), failWithMcpError)
    })
  })

/** A middleware of a list. `next` returns all entries that the caller may see, of all pages. */
type ListMiddleware<Definition, E, R> = (
  list: Listing,
  next: () => Handled<ReadonlyArray<Definition>>
) => Effect.Effect<ReadonlyArray<Definition>, E | McpError.McpError, R>

const listing = <Definition>(method: string) =>
<E extends HandlerError = never, R = never>(
  middleware: ListMiddleware<Definition, E, R>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  registerLayer<R>((catalog, provide, restore) =>
    catalog[internals].operations.lists[method]!.add((next) => (operation) =>
      Effect.catch(
        provide(middleware(operation, () => restore(next(operation)) as Handled<ReadonlyArray<Definition>>)),
        failWithMcpError
      )
    )
  )

/**
 * Wraps `tools/list`. `next()` returns all tools that the caller may see, before they are divided into pages. In the
 * result the tools of the server are in its order again, and others follow. It is not encoded once for all callers, as a list without middleware is, and it is always
 * private (`cacheScope`), so a change that is the same for all callers belongs in the definitions.
 *
 * A tool that is missing from the list can still be called by its name. `Catalog.visibleTo` hides it for both.
 *
 * @example
 * const short = Middleware.listTools((list, next) =>
 *   Effect.map(next(), (tools) => tools.map((tool) => ({ ...tool, description: Text.clip(tool.description ?? "", 200) }))))
 */
export const listTools = /* @__PURE__ */ listing<WireTool.Tool>("tools/list")

/** Wraps `resources/list`, as `listTools` wraps the list of tools. */
export const listResources = /* @__PURE__ */ listing<WireResource.Resource>("resources/list")

/** Wraps `resources/templates/list`, as `listTools` wraps the list of tools. */
export const listResourceTemplates = /* @__PURE__ */ listing<WireResource.ResourceTemplate>("resources/templates/list")

/** Wraps `prompts/list`, as `listTools` wraps the list of tools. */
export const listPrompts = /* @__PURE__ */ listing<WirePrompt.Prompt>("prompts/list")

/**
 * Returns the failure of a handler that a result with `isError`, or a JSON-RPC error, stands for. Returns `undefined` for
 * a result that a handler made itself, for invalid arguments, and for an `McpError` of the handler, which is its own
 * failure.
 *
 * @example
 * const watched = Middleware.callTool((call, next) =>
 *   Effect.tap(next(), (result) => Effect.logDebug(call.name, Middleware.failureOf(result))))
 */
export { failureOf } from "./internal/handlers/handlerError.ts"

/** The methods that a middleware applies to: a list, or `all` methods but `subscriptions/listen`, which has no end. */
export type Methods = ReadonlyArray<string> | "all"

/** Turns the methods into a predicate. */
export const includes = (methods: Methods): (method: string) => boolean => {
  if (methods === "all") return (method) => method !== "subscriptions/listen"
  const set = new Set(methods)
  return (method) => set.has(method)
}

/**
 * Makes the key of a request. Requests with the same key share a limit. `target` is the tool, prompt or resource that
 * the request names, if it exists and the caller may see it. Unknown names get no key of their own, so that a client
 * cannot fill the table of keys.
 */
export type Key = (request: RequestContext, target: string | undefined) => string

// The length of each part precedes it, so that different lists of parts make different keys.
const join = (...parts: ReadonlyArray<string>): string => parts.map((part) => `${part.length}:${part}`).join("")

/** One key for all requests. */
export const perServer: Key = () => ""

// No list of parts has a space here, so this differs from all other keys.
const addressOf = ({ origin }: RequestContext): string =>
  origin?.address === undefined ? "" : ` ${networkOf(origin.address)}`

/**
 * One key for each principal, and one for each network address of anonymous callers (for the first 64 bits of an IPv6
 * address). Anonymous callers without an address share one key, because nothing that they claim can be trusted. Behind a
 * proxy, set `trustedProxies` of the endpoint, or write a key that reads a header of the proxy.
 *
 * @example
 * const perAddress: Middleware.Key = ({ origin }) => origin?.header?.("x-real-ip") ?? ""
 */
export const perPrincipal: Key = (request) => {
  const { principal } = request.caller
  return principal === undefined ? addressOf(request) : join(principal.id)
}

/** One key for each tool, prompt and resource, and one for all other requests of a method. */
export const perTarget: Key = (request, target) =>
  target === undefined ? join(methodOf(request)) : join(methodOf(request), target)

/** One key for each principal, or address of an anonymous caller, and each tool, prompt and resource. */
export const perPrincipalAndTarget: Key = (request, target) => {
  const { principal } = request.caller
  return principal === undefined
    ? perTarget(request, target) + addressOf(request)
    : join(methodOf(request), target === undefined ? "" : `=${target}`, principal.id)
}

/**
 * Middleware: async functions around the requests of a server, in all revisions.
 */
import { Encoded } from "@skein/protocol/JsonRpc"
import { failureBehind } from "@skein/server/AsyncDefinition"
import { toEffect } from "@skein/server/AsyncHandler"
import type { HandlerContext as CoreContext } from "@skein/server/HandlerContext"
import type * as Core from "@skein/server/Middleware"
import type { McpRequest as CoreRequest } from "@skein/server/McpRequest"
import type * as Effect from "effect/Effect"
import { defineLazily, type Definition } from "../base/definition.ts"
import type {
  CallToolResult,
  GetPromptResult,
  JsonObject,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Tool
} from "../base/messages.ts"
import type { HandlerContext } from "./handlerContext.ts"
import type { Caller, McpRequest } from "./request.ts"

const load = () => import("@skein/server/Middleware")

/**
 * Adds an async function around every request of every method, `initialize` included; it receives no notifications, and no
 * requests that are refused before. `next` handles the request, or the one of `request.with({ params })`, and returns its
 * result. It rejects with the `McpError` that the client would receive.
 *
 * The function may change the result, or return one without `next`, in the form of the caller's revision. The message of a
 * `VisibleError` or an `McpError` that it throws becomes that of a JSON-RPC error. In 2026-07-28 a request with input requests
 * is sent again with the answers, and passes the middleware again: wrap what must not repeat in `once`.
 *
 * @example
 * server.use(middleware(async (request, next, { log }) => {
 *   const start = performance.now()
 *   const result = await next()
 *   log.info(request.method, performance.now() - start)
 *   return result
 * }))
 */
export const middleware = (
  handle: (
    request: McpRequest,
    next: (request?: McpRequest) => Promise<JsonObject>,
    context: HandlerContext
  ) => JsonObject | Promise<JsonObject>
): Definition =>
  defineLazily(load, ({ async }) =>
    async(async (request, next, context) => {
      /** A list is written as JSON once for all callers. */
      let encoded: Encoded | undefined
      let read: JsonObject | undefined
      const result = await handle(request as unknown as McpRequest, async (changed) => {
        const answer = await next(changed as unknown as typeof request | undefined)
        if (!(answer instanceof Encoded)) return answer
        encoded = answer
        return read = JSON.parse(answer.text) as JsonObject
      }, context as unknown as HandlerContext)
      return encoded !== undefined && result === read ? encoded : result
    }))

/** A tool, for the choice of the tools that a middleware applies to. */
export interface ToolInfo {
  readonly name: string
  /** The tool as `tools/list` returns it. */
  readonly definition: Tool
}

/**
 * The tools that a middleware applies to: their names, or a predicate, which runs once for each tool.
 *
 * @example
 * const readOnly: ToolChoice = ({ definition }) => definition.annotations?.readOnlyHint === true
 */
export type ToolChoice = ReadonlyArray<string> | ((tool: ToolInfo) => boolean)

/** The members that the request of each operation has. */
interface Operation {
  readonly caller: Caller
  readonly request: McpRequest
}

/** A call of a tool. */
export interface ToolCall extends ToolInfo, Operation {
  /** The arguments as JSON. They are validated after all middleware. */
  readonly arguments: JsonObject
}

/** A read of a resource. */
export interface ResourceRead extends Operation {
  readonly uri: string
  /** The resource as `resources/list` returns it, or the template that the URI matches. */
  readonly definition: Resource | ResourceTemplate
}

/** A request for a prompt. */
export interface PromptGet extends Operation {
  readonly name: string
  /** The prompt as `prompts/list` returns it. */
  readonly definition: Prompt
  /** The arguments as JSON. They are validated after all middleware. */
  readonly arguments: JsonObject
}

/** A request for a list. */
export interface Listing extends Operation {}

/** A function around an operation. `next` continues, with changed arguments where it takes any. */
export type Around<Operation, Args extends ReadonlyArray<unknown>, A> = (
  operation: Operation,
  next: (...changed: Args) => Promise<A>,
  context: HandlerContext
) => A | Promise<A>

/** Turns an async function around an operation into the function of effects that the core takes. */
const around = <Operation, Args extends ReadonlyArray<unknown>, A>(handle: Around<Operation, Args, A>) =>
  ((operation: Operation, next: (...changed: Args) => Effect.Effect<A, unknown, CoreRequest>) =>
    toEffect<void, A, never>((_, context: CoreContext) =>
      handle(operation, (...changed) => context.run(next(...changed)), context as unknown as HandlerContext)
    )()) as never

/**
 * Adds an async function around the calls of tools. `next()` runs the call, and `next(args)` runs it with other arguments. The
 * result may be changed, or made without `next`; another `structuredContent` is not validated.
 *
 * It runs for tools that exist and that the caller may see. A tool that fails returns a result with `isError`. A visible error
 * of the function becomes one too, and an `McpError` a JSON-RPC error.
 *
 * @example
 * server.use(callToolMiddleware(async (call, next) => mask(await next({ ...call.arguments, limit: 10 })), { tools: ["search"] }))
 */
export const callToolMiddleware = (
  handle: Around<ToolCall, [args?: JsonObject], CallToolResult>,
  options: { readonly tools?: ToolChoice | undefined } = {}
): Definition => defineLazily(load, ({ callTool }) => callTool(around(handle), options as { tools?: Core.Tools }))

/**
 * Adds an async function around the reads of resources, of templates too. `next()` runs the read.
 *
 * @example
 * server.use(readResourceMiddleware((read, next, { log }) => (log.info(read.uri), next())))
 */
export const readResourceMiddleware = (
  handle: Around<ResourceRead, [], ReadResourceResult>,
  options: {
    /** The URIs, or a predicate that runs for each read. All by default. */
    readonly resources?: ReadonlyArray<string> | ((read: ResourceRead) => boolean) | undefined
  } = {}
): Definition => defineLazily(load, ({ readResource }) => readResource(around(handle), options as never))

/**
 * Adds an async function around the requests for prompts. `next()` fills in the prompt, and `next(args)` does so with other
 * arguments.
 *
 * @example
 * server.use(getPromptMiddleware((prompt, next) => next({ ...prompt.arguments, language: "de" })))
 */
export const getPromptMiddleware = (
  handle: Around<PromptGet, [args?: JsonObject], GetPromptResult>,
  options: {
    /** The names of the prompts. All by default. */
    readonly prompts?: ReadonlyArray<string> | undefined
  } = {}
): Definition => defineLazily(load, ({ getPrompt }) => getPrompt(around(handle), options))

/**
 * Adds an async function around `tools/list`. `next()` returns all tools that the caller may see, before they are divided into
 * pages. The result is private for its caller. A tool that it leaves out can still be called: `visibleTo` hides it for both.
 *
 * @example
 * server.use(listToolsMiddleware(async (_, next) => (await next()).filter((tool) => tool.name !== "secret")))
 */
export const listToolsMiddleware = (handle: Around<Listing, [], ReadonlyArray<Tool>>): Definition =>
  defineLazily(load, ({ listTools }) => listTools(around(handle)))

/** Adds an async function around `resources/list`, as `listToolsMiddleware` around the list of tools. */
export const listResourcesMiddleware = (handle: Around<Listing, [], ReadonlyArray<Resource>>): Definition =>
  defineLazily(load, ({ listResources }) => listResources(around(handle)))

/** Adds an async function around `resources/templates/list`, as `listToolsMiddleware` around the list of tools. */
export const listResourceTemplatesMiddleware = (
  handle: Around<Listing, [], ReadonlyArray<ResourceTemplate>>
): Definition => defineLazily(load, ({ listResourceTemplates }) => listResourceTemplates(around(handle)))

/** Adds an async function around `prompts/list`, as `listToolsMiddleware` around the list of tools. */
export const listPromptsMiddleware = (handle: Around<Listing, [], ReadonlyArray<Prompt>>): Definition =>
  defineLazily(load, ({ listPrompts }) => listPrompts(around(handle)))

/**
 * Returns the error of a handler behind a result with `isError`. `undefined` for a result that a handler made itself, and for
 * invalid arguments.
 *
 * @example
 * server.use(callToolMiddleware(async (call, next) => {
 *   const result = await next()
 *   return failureOf(result) instanceof SoldOut ? alternativeTo(call) : result
 * }))
 */
export const failureOf: (result: CallToolResult) => unknown = failureBehind

/**
 * Dispatches a request to its handler: one table of handlers for all revisions, with the server's middleware around it.
 */
import type { Meta } from "@skein/protocol/Message"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import { compose } from "@skein/runtime/Compose"
import { type Answer, type Dispatcher, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type { RequestHandler } from "@skein/runtime/RequestRunner"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { MinimumLogLevel } from "effect/References"
import { hasRedirects, redirect, redirecting, type Tools } from "./redirect.ts"
import type { Catalog } from "../../Catalog.ts"
import { RequestState } from "../../RequestState.ts"
import { type InnerCalls, internals, type MiddlewareStack } from "../catalog/catalogState.ts"
import { makeRoundTrips } from "./roundTrips.ts"
import { MethodTable, type ServerDescription } from "./methodTable.ts"
import * as serverMethods from "./serverMethods.ts"
import { defectResult } from "../base/defectResult.ts"
import { type LogForwarder, lowerMinimum } from "../base/logs.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"
import * as extensions from "./extensions.ts"

/** A dispatcher, and the part of it that handles the calls that tools make. */
export interface ServerDispatcher extends RequestHandler {
  readonly inner: InnerCalls["Service"]
  /** Whether the server implements the method of a request. */
  readonly hasMethod: (request: RequestContext) => boolean
}

/** Makes the dispatcher of a server; `logs` forwards log messages to clients. */
export const make = (
  description: ServerDescription,
  catalog: Catalog["Service"],
  registry: SubscriptionRegistry,
  logs?: LogForwarder
): ServerDispatcher => {
  const methods = new MethodTable(description, catalog, registry)
  serverMethods.install(methods)
  const { tools } = catalog
  const { handlers } = methods
  const extensionHandler = extensions.handlers(methods)
  const { base, extensions: added, middleware } = catalog[internals]

  const handlerOf = (request: RequestContext) => {
    const method = Method.request(request.method, request.caller.revision)
    return (added.methods.size === 0 ? undefined : extensionHandler(request)) ?? (method && handlers.get(method.name))
  }

  const handle: Dispatcher<McpRequest> = (request) => {
    const handler = handlerOf(request)
    return handler === undefined ? Effect.fail(McpError.methodNotFound(request.method)) : handler(request)
  }

  // The dispatcher as the present definitions make it: with the middleware, and also with the redirects of tools.
  let inside = handle
  let redirected = handle
  let version = -1
  let toolsVersion = -1
  const refresh = (): void => {
    version = middleware.version
    toolsVersion = tools.version
    inside = middleware.isEmpty ? handle : withMiddleware(methods, middleware, handle)
    redirected = hasRedirects(tools) ? redirecting(tools, middleware.isEmpty ? withService(handle) : inside) : inside
  }

  const runInRounds = makeRoundTrips(methods, Context.get(base, RequestState))
  const lowers = logs !== undefined && !base.mapUnsafe.has(MinimumLogLevel.key)
  catalog[internals].inner.dispatch = (request) => neverThrowing(withParts(middleware, withService(handle)))(request)

  const dispatch: Dispatcher<McpRequest> = (request) => {
    if (version !== middleware.version || toolsVersion !== tools.version) refresh()
    const effect = runInRounds(request, redirected)
    // A client that requested debug messages receives them, unless the author of the server has set a minimum level.
    return lowers && request.caller.logLevel === "debug" ? Effect.updateContext(effect, lowerMinimum) : effect
  }

  const call = neverThrowing((inner) => {
    if (version !== middleware.version || toolsVersion !== tools.version) refresh()
    const present = redirect(tools, inner.original, true)
    if (McpError.isMcpError(present)) return Effect.fail(present)
    const request = redirect(tools, renamed(tools, present, inner), true)
    return McpError.isMcpError(request)
      ? Effect.fail(request)
      : Effect.provideService(inside(request), McpRequest, request)
  })

  // Middleware has seen the defect. A prompt or a resource has no result that reports a failure.
  const answerDefect: ServerDispatcher["answerDefect"] = (request, reference, cause) => {
    const { caller, method, target } = request
    if (method !== Method.CallTool.name || target === undefined) return undefined
    const result = defectResult(target, tools.seen(target, caller)?.definition, { base, cause, reference })
    return methods.encodeResult(Method.CallTool, result, request)
  }

  return { dispatch, answerDefect, inner: { call }, hasMethod: (request) => handlerOf(request) !== undefined }
}

/** An inner call with the name that its tool has in the server. Its author names it as the present tool does. */
const renamed = (tools: Tools, present: RequestContext, inner: RequestContext): RequestContext => {
  const tool = present.target === undefined ? undefined : tools.seen(present.target, present.caller)
  return tool?.nameOf === undefined
    ? inner
    : inner.with({ params: { ...inner.params, name: tool.nameOf(inner.target!) } })
}

/** The dispatcher with its middleware, the first one outermost. */
const withMiddleware = (
  methods: MethodTable,
  stack: MiddlewareStack,
  handle: Dispatcher<McpRequest>
): Dispatcher<McpRequest> => {
  const outermost = around(stack, withService(handle))
  // A middleware may return a result of its own. A stateless revision requires a `resultType` and `serverInfo` in it.
  const complete = (answer: Answer): Answer => isIncomplete(answer) ? methods.completeResult(answer) : answer
  return (request) =>
    Revision.era(request.caller.revision) === "session"
      ? outermost(request)
      : Effect.map(outermost(request), complete)
}

/** Provides a request whose params a middleware has changed to its handler. */
const withService = (handle: Dispatcher<McpRequest>): Dispatcher<McpRequest> => (request) =>
  request.original === request ? handle(request) : Effect.provideService(handle(request), McpRequest, request)

const around = (stack: MiddlewareStack, next: Dispatcher<McpRequest>): Dispatcher<McpRequest> =>
  compose(
    stack.all.map((wrap) => (next) => neverThrowing(wrap(next))),
    neverThrowing(withParts(stack, next))
  )

/** A part runs its middleware around the requests for its own entries, with the names that it uses. */
const withParts = (stack: MiddlewareStack, next: Dispatcher<McpRequest>): Dispatcher<McpRequest> =>
  compose(
    stack.parts.filter((part) => !part.stack.isEmpty).map((part) => (next) => {
      const inside = around(part.stack, (request) => next(part.leave(request)))
      return (request) => {
        const own = part.enter(request)
        return own === undefined ? next(request) : part.provide(inside(own))
      }
    }),
    next
  )

/** Whether an object lacks a `resultType` or `serverInfo`. The runner reports an answer that is not an object. */
const isIncomplete = (answer: Answer): answer is JsonRpc.JsonObject =>
  JsonRpc.isObject(answer) && !(answer instanceof JsonRpc.Encoded) && answer["toJSON"] === undefined &&
  (answer["resultType"] === undefined || (answer["_meta"] as Meta | undefined)?.[RequestMeta.serverInfo] === undefined)

/** Handlers may throw before they return an effect: the middleware around them sees a defect instead. */
const neverThrowing = (dispatch: Dispatcher<McpRequest>): Dispatcher<McpRequest> => (request) => {
  try {
    return dispatch(request)
  } catch (defect) {
    return Effect.die(defect)
  }
}

/**
 * From a request to its result: one table of handlers for all revisions, with the server's middleware around it.
 */
import type { Meta } from "@skein/protocol/Common"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Answer, Dispatcher, McpRequest } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as capabilities from "./capabilities.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"
import * as extensions from "./extensions.ts"
import { MethodTable, type ServerDescription } from "../methods/methodTable.ts"
import * as completion from "../methods/completion.ts"
import * as lifecycle from "../methods/lifecycle.ts"
import * as subscriptions from "../methods/subscriptions.ts"
import { RoundTrips } from "../input/roundTrips.ts"
import type { Catalog } from "../../Catalog.ts"
import { internals, type MiddlewareStack } from "../catalogState.ts"
import { RequestState } from "../../RequestState.ts"
import { installLogging, installPrompts, installResources, installTools } from "../methods/features.ts"

/** The dispatcher of a server. */
export const make = (
  about: ServerDescription,
  catalog: Catalog["Service"],
  hub: SubscriptionRegistry
): Dispatcher<McpRequest> => {
  const methods = new MethodTable(about, catalog, hub)
  lifecycle.install(methods)
  installTools(methods)
  installResources(methods)
  installPrompts(methods)
  completion.install(methods)
  subscriptions.install(methods)
  installLogging(methods)
  const { handlers } = methods
  const extended = extensions.handlers(methods)

  const handle: Dispatcher<McpRequest> = (exchange) => {
    const further = extended(exchange)
    if (further !== undefined) return further(exchange)
    const method = Method.request(exchange.method, exchange.caller.revision)
    const handler = method === undefined || !capabilities.offered(catalog, method)
      ? undefined
      : handlers.get(method.name)
    return handler === undefined ? Effect.fail(McpError.methodNotFound(exchange.method)) : handler(exchange)
  }

  const { base, middleware } = catalog[internals]
  let around = handle
  let version = 0
  const rounds = new RoundTrips(methods, Context.get(base, RequestState))
  return rounds.around((exchange) => {
    if (version !== middleware.version) {
      around = middleware.all.length === 0 ? handle : wrapped(methods, middleware.all, handle)
      version = middleware.version
    }
    return around(exchange)
  })
}

/** The middleware around what handles requests, the first one outermost. */
const wrapped = (
  methods: MethodTable,
  all: MiddlewareStack["all"],
  handle: Dispatcher<McpRequest>
): Dispatcher<McpRequest> => {
  const outermost = all.reduceRight((next, wrap) => total(wrap(next)), total(handle))
  // What a middleware answers by itself is completed in the request era, as every other result is.
  const complete = (answer: Answer): Answer => isOpen(answer) ? methods.withResultType(answer) : answer
  return (exchange) =>
    Revision.era(exchange.caller.revision) === "session"
      ? outermost(exchange)
      : Effect.map(outermost(exchange), complete)
}

/** Whether an answer is an object that does not say what it is, or whose. What is no object is found out by the exchange. */
const isOpen = (answer: Answer): answer is JsonRpc.JsonObject =>
  JsonRpc.isObject(answer) && !(answer instanceof JsonRpc.Encoded) && answer["toJSON"] === undefined &&
  (answer["resultType"] === undefined || (answer["_meta"] as Meta | undefined)?.[RequestMeta.serverInfo] === undefined)

/** Handlers are written by others, and may throw before there is an effect: what stands around them sees a defect instead. */
const total = (dispatch: Dispatcher<McpRequest>): Dispatcher<McpRequest> => (exchange) => {
  try {
    return dispatch(exchange)
  } catch (defect) {
    return Effect.die(defect)
  }
}

/**
 * From a request to its result: one table of handlers for all revisions, with the server's middleware around it.
 */
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Dispatcher, McpRequest } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import * as capabilities from "./capabilities.ts"
import type { Hub } from "./hub.ts"
import { type About, Methods } from "./methods.ts"
import * as completion from "./methods/completion.ts"
import * as lifecycle from "./methods/lifecycle.ts"
import * as logging from "./methods/logging.ts"
import * as prompts from "./methods/prompts.ts"
import * as resources from "./methods/resources.ts"
import * as subscriptions from "./methods/subscriptions.ts"
import * as tools from "./methods/tools.ts"
import type { Catalog } from "../Catalog.ts"

/** The dispatcher of a server. */
export const make = (about: About, catalog: Catalog["Service"], hub: Hub): Dispatcher<McpRequest> => {
  const methods = new Methods(about, catalog, hub)
  for (const part of [lifecycle, tools, resources, prompts, completion, subscriptions, logging]) part.install(methods)
  const { handlers } = methods

  const handle: Dispatcher<McpRequest> = (exchange) => {
    const method = Method.request(exchange.method, exchange.caller.revision)
    const handler = method === undefined || !capabilities.offered(catalog, method)
      ? undefined
      : handlers.get(method.name)
    return handler === undefined ? Effect.fail(McpError.methodNotFound(exchange.method)) : handler(exchange)
  }

  const { middleware } = catalog
  let around = handle
  let version = 0
  return (exchange) => {
    if (version !== middleware.version) {
      version = middleware.version
      around = middleware.all.reduceRight((next, wrap) => wrap(next), handle)
    }
    return around(exchange)
  }
}

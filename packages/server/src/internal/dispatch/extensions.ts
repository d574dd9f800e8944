/** What the extensions of a server add to its own methods. */
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import type { Caller, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Catalog } from "../../Catalog.ts"
import { type Extension, internals, type Subscription, type ToolCall, type ToolCallResult } from "../catalogState.ts"
import type { Handler, MethodTable } from "../methods/methodTable.ts"

/** What handles a request of an extension's, if it is one. */
export const handlers = (methods: MethodTable): (exchange: RequestContext) => Handler | undefined => {
  const { extensions } = methods.catalog[internals]
  // Made when a method is asked for the first time: extensions may come while the server runs.
  const made = new WeakMap<object, Handler>()
  return ({ caller: { revision }, method: name }) => {
    for (const extension of extensions.all) {
      for (const entry of extension.methods ?? []) {
        const { method, run } = entry
        if (method.name !== name || !Revision.within(revision, method.since, method.until)) continue
        const handler = made.get(entry) ?? methods.handler(method, run)
        made.set(entry, handler)
        return handler
      }
    }
    return undefined
  }
}

/** What is declared to a caller, with what the extensions declare. */
export const declared = (
  { [internals]: { extensions } }: Catalog["Service"],
  caller: Caller,
  own: ServerCapabilities
): ServerCapabilities => {
  const said = extensions.all.map(({ capabilities }) => capabilities?.(caller)).filter((each) => each !== undefined)
  if (said.length === 0) return own
  const all = [own as JsonObject, ...said]
  const merged = Object.assign({}, ...all.map((each) => each["extensions"]))
  return Object.assign({}, ...all, Object.keys(merged).length === 0 ? undefined : { extensions: merged })
}

/** Calls a tool, past the extensions that have a say in it. */
export const call = (
  { [internals]: { extensions: { all } } }: Catalog["Service"],
  toolCall: ToolCall
): ToolCallResult => all.length === 0 ? direct(toolCall) : past(all, 0, toolCall)

const direct = ({ params, request, tool }: ToolCall): ToolCallResult => tool.call(params.arguments ?? {}, request)

const past = (all: ReadonlyArray<Extension>, index: number, toolCall: ToolCall): ToolCallResult => {
  const extension = all[index]
  if (extension === undefined) return direct(toolCall)
  return extension.call === undefined
    ? past(all, index + 1, toolCall)
    : extension.call(toolCall, (toolCall) => past(all, index + 1, toolCall))
}

/** What the extensions tell a `subscriptions/listen`. */
export const listening = (
  { [internals]: { extensions: { all } } }: Catalog["Service"],
  notifications: object,
  exchange: RequestContext
): Effect.Effect<ReadonlyArray<Subscription>, McpError.McpError, McpRequest> =>
  all.every(({ listen }) => listen === undefined)
    ? none
    : Effect.map(
      Effect.forEach(all, ({ listen }) => listen?.(notifications as JsonObject, exchange) ?? Effect.undefined),
      (parts) => parts.filter((part) => part !== undefined)
    )

const none = Effect.succeed<ReadonlyArray<Subscription>>([])

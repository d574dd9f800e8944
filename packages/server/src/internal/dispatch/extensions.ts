/** The methods, capabilities, tool calls and subscriptions that extensions add to a server. */
import type { ServerCapabilities } from "@skein/protocol/Capabilities"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import type { Caller, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Catalog } from "../../Catalog.ts"
import { internals, type Subscription } from "../catalog/catalogState.ts"
import type { Handler, MethodTable } from "./methodTable.ts"

/** Finds the handler of a request to a method of an extension. */
export const handlers = (methods: MethodTable): (request: RequestContext) => Handler | undefined => {
  const { extensions } = methods.catalog[internals]
  // Made at the first request to a method: extensions may be added while the server runs.
  const made = new WeakMap<object, Handler>()
  return ({ caller: { revision }, method: name }) => {
    const entry = extensions.methods.get(name)?.find(({ method: { since, until } }) =>
      Revision.within(revision, since, until)
    )
    if (entry === undefined) return undefined
    const handler = made.get(entry) ??
      methods.encoding(entry.method, (params, request) => entry.run(params, request, methods.description))
    made.set(entry, handler)
    return handler
  }
}

/** The capabilities that are declared to a caller, with those of the extensions. */
export const declared = (
  { [internals]: { extensions } }: Catalog["Service"],
  caller: Caller,
  own: ServerCapabilities
): ServerCapabilities => {
  const added = extensions.all.map(({ capabilities }) => capabilities?.(caller)).filter((each) => each !== undefined)
  if (added.length === 0) return own
  const all = [own as JsonObject, ...added]
  const merged = Object.assign({}, ...all.map((each) => each["extensions"]))
  return Object.assign({}, ...all, Object.keys(merged).length === 0 ? undefined : { extensions: merged })
}

/** The parts of a `subscriptions/listen` that extensions serve. */
export const listening = (
  { [internals]: { extensions: { all } } }: Catalog["Service"],
  notifications: object,
  request: RequestContext
): Effect.Effect<ReadonlyArray<Subscription>, McpError.McpError, McpRequest> =>
  all.every(({ listen }) => listen === undefined)
    ? none
    : Effect.map(
      Effect.forEach(all, ({ listen }) => listen?.(notifications as JsonObject, request) ?? Effect.undefined),
      (parts) => parts.filter((part) => part !== undefined)
    )

const none = Effect.succeed<ReadonlyArray<Subscription>>([])

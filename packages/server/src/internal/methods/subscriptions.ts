/** `resources/subscribe`, `resources/unsubscribe` and `subscriptions/listen`. */
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { SubscriptionFilter } from "@skein/protocol/Subscription"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { ListKind } from "../../EventBus.ts"
import * as capabilities from "../dispatch/capabilities.ts"
import * as extensions from "../dispatch/extensions.ts"
import type { MethodTable } from "./methodTable.ts"
import { sessionOf } from "../dispatch/session.ts"

const wanted: ReadonlyArray<readonly [ListKind, "toolsListChanged" | "resourcesListChanged" | "promptsListChanged"]> = [
  ["tools", "toolsListChanged"],
  ["resources", "resourcesListChanged"],
  ["prompts", "promptsListChanged"]
]

export const install = (methods: MethodTable): void => {
  const { catalog, hub } = methods

  // What nobody reads, or this caller may not see, is not there to be subscribed to: the answer is that of a read.
  methods.on(Method.Subscribe, ({ uri }, { caller, method }) => {
    const session = sessionOf(caller)
    // Whoever can be told nothing later has nothing to subscribe to.
    if (session === undefined || hub.alone.has(session.peer)) return Effect.fail(McpError.methodNotFound(method))
    return hub.sees(caller, uri)
      ? Effect.as(hub.subscribe(session, uri), {})
      : Effect.fail(McpError.resourceNotFound(uri))
  })

  // One that was removed meanwhile can be unsubscribed from all the same.
  methods.on(Method.Unsubscribe, ({ uri }, { caller, method }) =>
    Effect.suspend(() => {
      const session = sessionOf(caller)
      if (session === undefined || hub.alone.has(session.peer)) return Effect.fail(McpError.methodNotFound(method))
      hub.unsubscribe(session, uri)
      return Effect.succeed({})
    }))

  /** The resources of a filter that the caller may subscribe to, each once, up to the bound. */
  const watched = (asked: ReadonlyArray<string>, { caller }: RequestContext): ReadonlySet<string> => {
    const uris = new Set<string>()
    for (const uri of asked) {
      if (uris.size >= hub.maxResources) break
      if (hub.sees(caller, uri)) uris.add(uri)
    }
    return uris
  }

  methods.on(
    Method.SubscriptionsListen,
    ({ notifications }: { readonly notifications: SubscriptionFilter }, exchange) =>
      Effect.flatMap(extensions.listening(catalog, notifications, exchange), (further) => {
        const lists = capabilities.lists(catalog)
        const agreed = wanted.filter(([kind, member]) => notifications[member] === true && lists.includes(kind))
        const asked = lists.includes("resources") ? notifications.resourceSubscriptions : undefined
        const uris = watched(asked ?? [], exchange)
        // "The subset the server agreed to honor. Notification types the server does not support are omitted."
        const acknowledged = {
          ...Object.fromEntries(agreed.map(([, member]) => [member, true])),
          ...(asked === undefined ? undefined : { resourceSubscriptions: [...uris] }),
          ...Object.assign({}, ...further.map(({ agreed }) => agreed))
        }
        const listening = hub.listen(exchange, agreed.map(([kind]) => kind), uris, acknowledged, further)
        return Effect.map(listening, ({ meta }) => ({ _meta: meta }))
      })
  )
}

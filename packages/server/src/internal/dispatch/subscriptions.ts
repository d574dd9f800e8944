/** `resources/subscribe`, `resources/unsubscribe` and `subscriptions/listen`. */
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { SubscriptionFilter } from "@skein/protocol/Subscription"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as capabilities from "../subscriptions/capabilities.ts"
import type { Subscription } from "../catalog/catalogState.ts"
import * as extensions from "./extensions.ts"
import type { ListenSubscription } from "../subscriptions/subscriptionRegistry.ts"
import type { MethodTable } from "./methodTable.ts"

export const install = (methods: MethodTable): void => {
  const { catalog, subscriptions } = methods

  // A URI without a reader, or one that the caller may not see, is answered as `resources/read` answers it.
  methods.add(Method.Subscribe, ({ uri }, { caller, method }) => {
    const session = subscriptions.lastingSession(caller)
    // A peer of a single request can receive no notification: the method does not exist for it.
    if (session === undefined) return Effect.fail(McpError.methodNotFound(method))
    const problem = subscriptions.readProblem(caller, uri)
    return problem === undefined ? Effect.as(subscriptions.subscribe(session, uri), {}) : Effect.fail(problem)
  })

  // A client may unsubscribe from a resource that was removed meanwhile.
  methods.add(Method.Unsubscribe, ({ uri }, { caller, method }) =>
    Effect.suspend(() => {
      const session = subscriptions.lastingSession(caller)
      if (session === undefined) return Effect.fail(McpError.methodNotFound(method))
      subscriptions.unsubscribe(session, uri)
      return Effect.succeed({})
    }))

  /** The resources of a filter that the caller may subscribe to, each once, up to the bound. */
  const granted = (requested: ReadonlyArray<string>, { caller }: RequestContext): ReadonlySet<string> => {
    const uris = new Set<string>()
    for (const uri of requested) {
      if (uris.size >= subscriptions.maxResources) break
      if (subscriptions.canRead(caller, uri)) uris.add(uri)
    }
    return uris
  }

  /** The part of a filter that the server agrees to. */
  const agree = (
    filter: SubscriptionFilter,
    further: ReadonlyArray<Subscription>,
    request: RequestContext
  ) => {
    const lists = capabilities.lists(catalog)
    const kinds = lists.filter((kind) => filter[`${kind}ListChanged`] === true)
    const requested = lists.includes("resources") ? filter.resourceSubscriptions : undefined
    // "The subset the server agreed to honor. Notification types the server does not support are omitted."
    const acknowledged = (uris: ReadonlySet<string>) => ({
      ...Object.fromEntries(kinds.map((kind) => [`${kind}ListChanged`, true])),
      ...(requested === undefined ? undefined : { resourceSubscriptions: [...uris] }),
      ...Object.assign({}, ...further.map(({ agreed }) => agreed))
    })
    return { kinds, uris: granted(requested ?? [], request), acknowledged }
  }

  methods.add(
    Method.SubscriptionsListen,
    ({ notifications }: { readonly notifications: SubscriptionFilter }, request) => {
      // The effects of an open request stay in memory, and so do the variables of their functions: the filter may be
      // large.
      let filter: SubscriptionFilter | undefined = notifications
      return Effect.flatMap(Effect.suspend(() => extensions.listening(catalog, filter!, request)), (further) => {
        const { acknowledged, kinds, uris } = agree(filter!, further, request)
        filter = undefined
        return subscriptions.watching(
          uris,
          (confirmed) =>
            Effect.map(subscriptions.listen(request, kinds, confirmed, acknowledged(confirmed), further), metaOf)
        )
      })
    }
  )
}

const metaOf = ({ meta }: ListenSubscription) => ({ _meta: meta })

import type { Id, JsonObject } from "@skein/protocol/JsonRpc"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import type * as Effect from "effect/Effect"
import type { ListKind } from "../../EventBus.ts"
import { clientOf } from "../base/client.ts"
import type { NotificationTarget, OutgoingNotification } from "../base/pendingNotifications.ts"

/** An open `subscriptions/listen`, with the notifications that the server agreed to send. */
export class ListenSubscription implements NotificationTarget {
  readonly request: RequestContext
  readonly client: string
  readonly kinds: ReadonlyArray<ListKind>
  readonly uris: ReadonlySet<string>

  constructor(request: RequestContext, kinds: ReadonlyArray<ListKind>, uris: ReadonlySet<string>) {
    this.request = request
    this.client = clientOf(request.origin)
    this.kinds = kinds
    this.uris = uris
  }

  get caller(): Caller {
    return this.request.caller
  }

  /** "The value is the JSON-RPC ID of the `subscriptions/listen` request", with its type. */
  get meta(): { readonly [RequestMeta.subscriptionId]: Id } {
    return { [RequestMeta.subscriptionId]: this.request.id }
  }

  send({ method, params }: OutgoingNotification): Effect.Effect<void> {
    const tagged: JsonObject = { _meta: this.meta, ...params }
    return this.request.notify(method, tagged)
  }
}

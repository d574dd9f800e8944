import type { Id, JsonObject } from "@skein/protocol/JsonRpc"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import type * as Effect from "effect/Effect"
import type { ListKind } from "../../EventBus.ts"
import type { Notice, Target } from "./pendingNotifications.ts"

/** A `subscriptions/listen` that is being answered: who asked, and what the server has agreed to tell. */
export class Listen implements Target {
  readonly exchange: RequestContext
  readonly kinds: ReadonlyArray<ListKind>
  readonly uris: ReadonlySet<string>

  constructor(exchange: RequestContext, kinds: ReadonlyArray<ListKind>, uris: ReadonlySet<string>) {
    this.exchange = exchange
    this.kinds = kinds
    this.uris = uris
  }

  get caller(): Caller {
    return this.exchange.caller
  }

  hears(kind: ListKind): boolean {
    return this.kinds.includes(kind)
  }

  /** "The value is the JSON-RPC ID of the `subscriptions/listen` request", with its type. */
  get meta(): { readonly [RequestMeta.subscriptionId]: Id } {
    return { [RequestMeta.subscriptionId]: this.exchange.id }
  }

  say({ method, params }: Notice): Effect.Effect<void> {
    const tagged: JsonObject = { _meta: this.meta, ...params }
    return this.exchange.notify(method, tagged)
  }
}

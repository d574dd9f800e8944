/**
 * The principal of a request: the authenticated identity that the transport has established, by a token, a certificate
 * or a cookie.
 *
 * The application around the server provides the principal with each message: over HTTP with the `principal` argument
 * or option of the handler, or with `HttpRoutes.CurrentPrincipal`, and for other transports with `Origin.principal`. A
 * session belongs to the principal that opened it. Nothing in a client's message can set the principal.
 * `Catalog.visibleTo` limits definitions to some principals.
 *
 * @example
 * const whoami = Tool.layer(Tool.make("whoami"), () =>
 *   Effect.map(Principal.current, Option.match({ onNone: () => "anonymous", onSome: ({ id }) => id })))
 */
import type { Principal } from "@skein/runtime/Connection"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

export type { Principal }

/**
 * Whether a value is a principal: an object with a non-empty string `id`. The HTTP adapters refuse others with 500.
 *
 * @example
 * if (!Principal.isPrincipal(user)) throw new Http.Refusal({ status: 401, message: "Unauthorized" })
 */
export const isPrincipal = (value: unknown): value is Principal => {
  if (typeof value !== "object" || value === null) return false
  const { id } = value as { readonly id?: unknown }
  return typeof id === "string" && id !== ""
}

/**
 * The principal of the current request. `None` for an anonymous caller.
 *
 * @example
 * const whoami = Tool.layer(Tool.make("whoami"), () =>
 *   Effect.map(Principal.current, Option.match({ onNone: () => "anonymous", onSome: ({ id }) => id })))
 */
export const current: Effect.Effect<Option.Option<Principal>, never, McpRequest> = /* @__PURE__ */ Effect.map(
  McpRequest,
  ({ caller }) => Option.fromUndefinedOr(caller.principal)
)

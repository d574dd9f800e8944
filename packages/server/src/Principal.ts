/**
 * Who makes a request, as the host of the transport has found out: by a token, a certificate, a cookie.
 *
 * The host gives it with each message: over HTTP its own middleware says it, as `principal` of what it hands to the door, or as
 * `HttpRoutes.CurrentPrincipal`; any other transport as `Origin.principal`. A session belongs to the one that opened it. Nothing that
 * the client writes into a message can set it. Entries may be shown to some principals only: `Catalog.visibleTo`.
 */
import type { Principal } from "@skein/runtime/Connection"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

export type { Principal }

/** Who makes the request that is being handled; none where the host has not found out. */
export const current: Effect.Effect<Option.Option<Principal>, never, McpRequest> = /* @__PURE__ */ Effect.map(
  McpRequest,
  ({ caller }) => Option.fromUndefinedOr(caller.principal)
)

/**
 * The method `initialize` of the session-based revisions. It needs no schema, so that a server on stdio can answer it
 * before it has loaded the code of its other methods.
 */
import * as Introduction from "@skein/protocol/Introduction"
import * as Revision from "@skein/protocol/Revision"
import type { Caller, SessionPeer } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Catalog } from "../../Catalog.ts"
import { ServerSession } from "../base/session.ts"
import * as capabilities from "../subscriptions/capabilities.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"
import * as extensions from "./extensions.ts"
import { alreadyInitialized } from "./identity.ts"
import type { Handler, ServerDescription } from "./methodTable.ts"

/** Makes the handler of `initialize`, which opens the session. */
export const initialize = (
  { instructions, serverInfo }: ServerDescription,
  catalog: Catalog["Service"],
  subscriptions: SubscriptionRegistry
): Handler => {
  const openSession = (peer: SessionPeer, { capabilities, info, principal, revision }: Caller): ServerSession =>
    subscriptions.openSession(new ServerSession(peer, revision, info, capabilities, principal))

  // The params were read when the caller was identified.
  return (request) =>
    Effect.suspend(() => {
      const { peer } = request
      // A second `initialize` may have been received while a middleware delayed the first one.
      if (peer?.session !== undefined && peer.hasSessionId) return Effect.fail(alreadyInitialized())
      const caller = peer === undefined ? request.caller : openSession(peer, request.caller)
      const isSingleRequest = peer !== undefined && subscriptions.singleRequestPeers.has(peer)
      // A client that names its version in another way than this library accepts only that name.
      const requested = request.params?.["protocolVersion"]
      return Effect.succeed(Introduction.write({
        protocolVersion: Revision.read(requested) === caller.revision ? requested as string : caller.revision,
        capabilities: extensions.declared(
          catalog,
          caller,
          isSingleRequest ? capabilities.alone(catalog) : capabilities.of(catalog)
        ),
        serverInfo,
        ...(instructions === undefined ? undefined : { instructions })
      }, caller.revision))
    })
}

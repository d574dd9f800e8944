/** `initialize`, `server/discover` and `ping`. */
import * as Method from "@skein/protocol/Method"
import type { Caller, SessionPeer } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as capabilities from "../dispatch/capabilities.ts"
import * as extensions from "../dispatch/extensions.ts"
import { alreadyInitialized } from "../dispatch/identity.ts"
import { ServerSession } from "../dispatch/session.ts"
import type { MethodTable } from "./methodTable.ts"

export const install = (methods: MethodTable): void => {
  const { catalog, description, subscriptions } = methods
  const instructions = description.instructions === undefined ? undefined : { instructions: description.instructions }

  const openSession = (peer: SessionPeer, { capabilities, info, principal, revision }: Caller): ServerSession => {
    const session = new ServerSession(peer, revision, info, capabilities, principal)
    peer.session = session
    subscriptions.sessionOpened(session)
    return session
  }

  methods.on(Method.Ping, () => Effect.succeed({}))
  // The params were read when the caller was identified.
  methods.handlers.set(Method.Initialize.name, (request) =>
    Effect.suspend(() => {
      const { peer } = request
      // A second `initialize` may have been received while a middleware delayed the first one.
      if (peer?.session !== undefined) return Effect.fail(alreadyInitialized())
      const caller = peer === undefined ? request.caller : openSession(peer, request.caller)
      const isSingleRequest = peer !== undefined && subscriptions.singleRequestPeers.has(peer)
      return Effect.succeed(methods.finish(Method.Initialize, {
        protocolVersion: caller.revision,
        capabilities: extensions.declared(
          catalog,
          caller,
          isSingleRequest ? capabilities.alone(catalog) : capabilities.of(catalog)
        ),
        serverInfo: description.serverInfo,
        ...instructions
      }, request))
    }))
  methods.on(Method.Discover, (_params, { caller }) =>
    Effect.sync(() => ({
      supportedVersions: description.revisions,
      capabilities: extensions.declared(catalog, caller, capabilities.of(catalog)),
      ...instructions
    })))
}

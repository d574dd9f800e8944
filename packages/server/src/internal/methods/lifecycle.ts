/** `initialize`, `server/discover` and `ping`. */
import * as Method from "@skein/protocol/Method"
import type { Caller, SessionPeer } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as capabilities from "../dispatch/capabilities.ts"
import * as extensions from "../dispatch/extensions.ts"
import { alreadyInitialized } from "../dispatch/identity.ts"
import { ServerSession } from "../dispatch/session.ts"
import type { Methods } from "./handlers.ts"

export const install = (methods: Methods): void => {
  const { about, catalog, hub } = methods
  const instructions = about.instructions === undefined ? undefined : { instructions: about.instructions }

  const openSession = (peer: SessionPeer, { capabilities, info, principal, revision }: Caller): ServerSession => {
    const session = new ServerSession(peer, revision, info, capabilities, principal)
    peer.session = session
    hub.opened(session)
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
      const alone = peer !== undefined && hub.alone.has(peer)
      return Effect.succeed(methods.finish(Method.Initialize, {
        protocolVersion: caller.revision,
        capabilities: extensions.declared(
          catalog,
          caller,
          alone ? capabilities.alone(catalog) : capabilities.of(catalog)
        ),
        serverInfo: about.serverInfo,
        ...instructions
      }, request))
    }))
  methods.on(Method.Discover, (_params, { caller }) =>
    Effect.sync(() => ({
      supportedVersions: about.revisions,
      capabilities: extensions.declared(catalog, caller, capabilities.of(catalog)),
      ...instructions
    })))
}

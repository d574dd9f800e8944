/** The methods of a connection: `initialize`, `server/discover`, `ping` and `logging/setLevel`. */
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import type { Caller, SessionPeer } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as capabilities from "../subscriptions/capabilities.ts"
import * as extensions from "./extensions.ts"
import { alreadyInitialized } from "./identity.ts"
import { ServerSession } from "../base/session.ts"
import type { MethodTable } from "./methodTable.ts"

export const install = (methods: MethodTable): void => {
  const { catalog, description, subscriptions } = methods
  const instructions = description.instructions === undefined ? undefined : { instructions: description.instructions }

  const openSession = (peer: SessionPeer, { capabilities, info, principal, revision }: Caller): ServerSession =>
    subscriptions.openSession(new ServerSession(peer, revision, info, capabilities, principal))

  // Session-based revisions only. `MethodTable.encodeResult` encodes the result.
  methods.add(Method.Ping, () => Effect.succeed({}))
  // The params were read when the caller was identified.
  methods.set(Method.Initialize, (request) =>
    Effect.suspend(() => {
      const { peer } = request
      // A second `initialize` may have been received while a middleware delayed the first one.
      if (peer?.session !== undefined && peer.hasSessionId) return Effect.fail(alreadyInitialized())
      const caller = peer === undefined ? request.caller : openSession(peer, request.caller)
      const isSingleRequest = peer !== undefined && subscriptions.singleRequestPeers.has(peer)
      // A client that names its version in another way than this library accepts only that name.
      const requested = request.params?.["protocolVersion"]
      return Effect.succeed(methods.encodeResult(Method.Initialize, {
        protocolVersion: Revision.read(requested) === caller.revision ? requested as string : caller.revision,
        capabilities: extensions.declared(
          catalog,
          caller,
          isSingleRequest ? capabilities.alone(catalog) : capabilities.of(catalog)
        ),
        serverInfo: description.serverInfo,
        ...instructions
      }, request))
    }))
  methods.add(Method.Discover, (_params, { caller }) =>
    Effect.sync(() => ({
      supportedVersions: description.revisions,
      capabilities: extensions.declared(catalog, caller, capabilities.of(catalog)),
      ...instructions
    })))
  // "The server should send all logs at this level and higher". The level applies to requests in progress too.
  methods.add(Method.SetLevel, ({ level }, { caller, method }) =>
    Effect.suspend(() => {
      const session = subscriptions.lastingSession(caller)
      // The level would be lost with the answer to a peer of a single request, so the method does not exist for it.
      if (session === undefined) return Effect.fail(McpError.methodNotFound(method))
      session.logLevel = level
      return Effect.succeed({})
    }))
}

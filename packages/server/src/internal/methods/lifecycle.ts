/** `initialize`, `server/discover` and `ping`. */
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as capabilities from "../dispatch/capabilities.ts"
import * as extensions from "../dispatch/extensions.ts"
import type { MethodTable } from "./methodTable.ts"
import { ServerSession } from "../dispatch/session.ts"

export const install = (methods: MethodTable): void => {
  const { catalog, description, subscriptions } = methods
  const instructions = description.instructions === undefined ? undefined : { instructions: description.instructions }

  methods.on(Method.Ping, () => Effect.succeed({}))
  // The params were decoded when the session was opened.
  methods.handlers.set(Method.Initialize.name, (request) =>
    Effect.sync(() => {
      const { caller } = request
      if (caller instanceof ServerSession) subscriptions.sessionOpened(caller)
      const isSingleRequest = caller instanceof ServerSession && subscriptions.singleRequestPeers.has(caller.peer)
      return methods.finish(Method.Initialize, {
        protocolVersion: caller.revision,
        capabilities: extensions.declared(
          catalog,
          caller,
          isSingleRequest ? capabilities.alone(catalog) : capabilities.of(catalog)
        ),
        serverInfo: description.serverInfo,
        ...instructions
      }, request)
    }))
  methods.on(Method.Discover, (_params, { caller }) =>
    Effect.sync(() => ({
      supportedVersions: description.revisions,
      capabilities: extensions.declared(catalog, caller, capabilities.of(catalog)),
      ...instructions
    })))
}

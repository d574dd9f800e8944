/** `initialize`, `server/discover` and `ping`. */
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as capabilities from "../dispatch/capabilities.ts"
import * as extensions from "../dispatch/extensions.ts"
import type { MethodTable } from "./methodTable.ts"
import { ServerSession } from "../dispatch/session.ts"

export const install = (methods: MethodTable): void => {
  const { about, catalog, hub } = methods
  const instructions = about.instructions === undefined ? undefined : { instructions: about.instructions }

  methods.on(Method.Ping, () => Effect.succeed({}))
  // Its params were read when the session was opened.
  methods.handlers.set(Method.Initialize.name, (exchange) =>
    Effect.sync(() => {
      const { caller } = exchange
      if (caller instanceof ServerSession) hub.opened(caller)
      const alone = caller instanceof ServerSession && hub.alone.has(caller.peer)
      return methods.finish(Method.Initialize, {
        protocolVersion: caller.revision,
        capabilities: extensions.declared(
          catalog,
          caller,
          alone ? capabilities.alone(catalog) : capabilities.of(catalog)
        ),
        serverInfo: about.serverInfo,
        ...instructions
      }, exchange)
    }))
  methods.on(Method.Discover, (_params, { caller }) =>
    Effect.sync(() => ({
      supportedVersions: about.revisions,
      capabilities: extensions.declared(catalog, caller, capabilities.of(catalog)),
      ...instructions
    })))
}

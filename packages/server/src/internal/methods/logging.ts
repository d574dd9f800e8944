/** `logging/setLevel`. */
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import type { Methods } from "./handlers.ts"
import { sessionOf } from "../dispatch/session.ts"

/** "The server should send all logs at this level and higher"; from the next message on, of what is in flight too. */
export const install = (methods: Methods): void => {
  const { hub } = methods
  methods.on(Method.SetLevel, ({ level }, { caller, method }) =>
    Effect.suspend(() => {
      const session = sessionOf(caller)
      // What would be forgotten at once is not offered.
      if (session === undefined || hub.alone.has(session.peer)) return Effect.fail(McpError.methodNotFound(method))
      session.logLevel = level
      return Effect.succeed({})
    }))
}

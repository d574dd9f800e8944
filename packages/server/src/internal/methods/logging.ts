/** `logging/setLevel`. */
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import type { Methods } from "../methods.ts"
import { sessionOf } from "../session.ts"

/** "The server should send all logs at this level and higher"; from the next message on, of what is in flight too. */
export const install = (methods: Methods): void => {
  methods.on(Method.SetLevel, ({ level }, { caller }) =>
    Effect.sync(() => {
      const session = sessionOf(caller)
      if (session !== undefined) session.logLevel = level
      return {}
    }))
}

// #region first
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Effect from "effect/Effect"

export const greet = (url: string) =>
  Effect.gen(function*() {
    const client = yield* Client.make(Http.transport({ url }))
    const { content } = yield* client.callTool("greet", { name: "Ada" })
    return content
  }).pipe(Effect.scoped)
// #endregion

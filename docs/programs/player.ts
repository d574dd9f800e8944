// #region player
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"

const play = Effect.gen(function*() {
  const server = Stdio.transport({ command: "npm", args: ["run", "-s", "try", "--", "scratchpad/dice.ts"] })
  const client = yield* Client.make(server)
  console.log(yield* client.listTools())
  console.log(yield* client.callTool("roll", { sides: 6 }))
})
Effect.runPromise(Effect.scoped(play))
// #endregion

import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"

const hello = Effect.gen(function*() {
  const client = yield* Client.make(Stdio.transport({ command: "npm", args: ["run", "-s", "hello"] }))
  console.log(yield* client.callTool("greet", { name: "Ada" }))
})
Effect.runPromise(Effect.scoped(hello))

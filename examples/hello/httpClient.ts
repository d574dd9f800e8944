import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Effect from "effect/Effect"

const connect = Client.make(Http.transport({ url: "http://127.0.0.1:3000/mcp" }))
const hello = Effect.flatMap(connect, (client) => client.callTool("greet", { name: "Ada" }))
Effect.runPromise(Effect.scoped(hello)).then(console.log)

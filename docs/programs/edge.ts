import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Effect from "effect/Effect"

interface Env {
  /** A binding to the worker with the server. */
  readonly SERVER: { readonly fetch: typeof fetch }
}

export default {
  fetch: (request: Request, { SERVER }: Env): Promise<Response> => {
    const transport = Http.transport({
      url: "http://localhost/mcp",
      fetch: (input, init) => SERVER.fetch(input, init)
    })
    const called = Effect.flatMap(
      Client.make(transport),
      (client) => client.callTool("greet", { name: new URL(request.url).searchParams.get("name") })
    )
    return Effect.runPromise(Effect.map(Effect.scoped(called), (result) => Response.json(result)))
  }
}

import type * as Client from "@skein/client/Client"
import * as Logs from "@skein/client/Logs"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

// #region changes
export const follow = (client: Client.Client, uri: string, show: (text: string) => Effect.Effect<void>) => {
  const read = Effect.flatMap(client.readResource(uri), ({ contents }) => show(JSON.stringify(contents)))
  return client.changes({ tools: true, uris: [uri] }).pipe(
    Stream.runForEach((change) => {
      switch (change._tag) {
        case "Subscribed": // From here on nothing is missed. What was before, read now.
          return read
        case "ResourceUpdated":
          return read
        case "ToolListChanged":
          return Effect.flatMap(client.allTools, (tools) => show(`${tools.length} tools`))
        case "Gap": // `Overflow` alone is not followed by `Subscribed`.
          return change.reason === "Overflow" ? read : Effect.void
        default:
          return Effect.void
      }
    })
  )
}
// #endregion

// #region logs
export const listen = (client: Client.Client) =>
  Effect.gen(function*() {
    yield* Effect.forkScoped(Logs.forward(client), { startImmediately: true })
    yield* client.setLoggingLevel("notice")
  })
// #endregion

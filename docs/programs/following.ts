import type * as Client from "@skein/client/Client"
import * as Logging from "@skein/client/Logging"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

// #region changes
export const follow = (client: Client.Client, uri: string, show: (text: string) => Effect.Effect<void>) => {
  const read = Effect.flatMap(client.readResource(uri), ({ contents }) => show(JSON.stringify(contents)))
  const list = Effect.flatMap(client.listTools(), (tools) => show(`${tools.length} tools`))
  return client.changes({ tools: true, uris: [uri] }).pipe(
    Stream.runForEach((change) => {
      switch (change._tag) {
        case "Subscribed": // Later changes are reported. Read the current state now.
          return Effect.andThen(list, read)
        case "Gap": // `Subscribed` follows, except after `Overflow`: this loop was too slow.
          return change.reason === "Overflow" ? Effect.andThen(list, read) : Effect.void
        case "ToolListChanged":
          return list
        case "ResourceUpdated":
          return read
        default:
          return Effect.void
      }
    })
  )
}
// #endregion

export const listen = (client: Client.Client) =>
  Effect.forkScoped(Logging.forward(client, { level: "notice" }), { startImmediately: true })

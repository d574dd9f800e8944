/**
 * Subscribes to resources at the remote server, for as long as the server has subscribers to them.
 */
import type { ClientError } from "@skein/client/ClientError"
import * as McpError from "@skein/protocol/McpError"
import * as Catalog from "@skein/server/Catalog"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { RemoteConnection } from "./connections.ts"
import type { Remote } from "./remote.ts"
import { toMcpError } from "./remoteError.ts"

/** Makes the function that watches a resource at the remote server. */
export const watcher = (remote: Remote, catalog: Catalog.Catalog["Service"]): Catalog.Watch => (uri) =>
  Effect.gen(function*() {
    const confirmed = Deferred.makeUnsafe<void, McpError.McpError>()
    const first = yield* remote.connection
    yield* Effect.forkScoped(follow(first, remote, uri, catalog, confirmed), { startImmediately: true })
    yield* Deferred.await(confirmed)
  })

const follow = (
  first: RemoteConnection,
  remote: Remote,
  uri: string,
  catalog: Catalog.Catalog["Service"],
  confirmed: Deferred.Deferred<void, McpError.McpError>
): Effect.Effect<void> => {
  const updated = (changed: string) =>
    Effect.provideService(
      Catalog.updated(changed, changed === uri ? {} : { parent: uri }),
      Catalog.Catalog,
      catalog
    )
  let isConfirmed = false
  const subscribe = ({ client }: RemoteConnection): Effect.Effect<void, ClientError> =>
    Stream.runForEach(client.changes({ uris: [uri] }), (change) => {
      switch (change._tag) {
        case "Subscribed": {
          if (!change.honoured.uris.includes(uri)) {
            return Effect.asVoid(Deferred.fail(confirmed, McpError.resourceNotFound(uri)))
          }
          // Changes since the last subscription may have been missed.
          if (isConfirmed) return updated(uri)
          isConfirmed = true
          return Effect.asVoid(Deferred.succeed(confirmed, undefined))
        }
        case "ResourceUpdated":
          return updated(change.uri)
        default:
          return Effect.void
      }
    })
  return Effect.gen(function*() {
    let connection = first
    while (true) {
      const failure = yield* Effect.result(subscribe(connection))
      if (failure._tag === "Failure") {
        const { reason } = failure.failure
        const error = reason._tag === "Unsupported"
          ? McpError.methodNotFound("resources/subscribe")
          : toMcpError(failure.failure, remote.name)
        if (yield* Deferred.fail(confirmed, error)) return
        if (reason._tag !== "Closed") {
          yield* Effect.logDebug("A subscription to a resource of a remote server has ended", failure.failure)
        }
      }
      connection = yield* remote.nextAfter(connection)
    }
  })
}

import * as Client from "@skein/client/Client"
import * as Credentials from "@skein/client/Credentials"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import type { Transport } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import type * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"

// #region transports
export const transports = (args: ReadonlyArray<string>, url: string, server: McpServer.McpServer["Service"]) => ({
  // The server is a child process, which ends with the client.
  process: Stdio.transport({ command: process.execPath, args }),
  // For every platform with `fetch`: browsers, workers, Node.
  fetch: Http.transport({ url }),
  // For Node: cheaper per request, and without a timeout of its own for slow responses.
  node: NodeHttp.transport({ url }),
  // The server is in this process, without a network.
  memory: InMemoryTransport.transport(server.serve)
})
// #endregion

export const look = (transport: Transport) =>
  Effect.gen(function*() {
    const client = yield* Client.make(transport, { info: { name: "my-host", version: "2.1.0" } })
    const tools = yield* client.listTools()
    return { revision: client.revision, server: client.server?.name, tools: tools.map(({ name }) => name) }
  }).pipe(Effect.scoped)

const greet = Effect.gen(function*() {
  const client = yield* Client.Client
  return yield* client.callTool("greet", { name: "Ada" })
})

export const greeted = (transport: Transport) => Effect.provide(greet, Client.layer(transport))

export const withProfile = (transport: Transport, profiles: Map<string, string>, entry: string) =>
  Effect.gen(function*() {
    const stored = profiles.get(entry)
    const client = yield* Client.make(transport, {
      serverProfile: stored === undefined ? undefined : JSON.parse(stored)
    })
    // In the stateless revision nothing was sent so far. The first response shows whether the profile is still correct.
    yield* client.ping()
    if (client.serverProfile !== undefined) profiles.set(entry, JSON.stringify(client.serverProfile))
    return client
  })

// #region bearer
export const asAda = (url: string, token: Redacted.Redacted) =>
  NodeHttp.transport({ url, headers: { "x-tenant": "tea" }, credentials: Credentials.bearer(token) })
// #endregion

// #region renewing
export const renewing = (url: string, token: Ref.Ref<string>, renew: Effect.Effect<string>) =>
  NodeHttp.transport({
    url,
    credentials: {
      headers: () => Effect.map(Ref.get(token), (token) => ({ authorization: `Bearer ${token}` })),
      refused: ({ status }) =>
        status === 401 ? Effect.as(Effect.flatMap(renew, (next) => Ref.set(token, next)), true) : Effect.succeed(false)
    }
  })
// #endregion

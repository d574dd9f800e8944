/** A server with tools, over an in-memory connection or over one that carries headers, as HTTP does. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Connection, Headers, Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Client from "../../src/Client.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

export const hints = { resultType: "complete", ttlMs: 0, cacheScope: "private" }

/** A page of tools in the form of a revision. */
export const page = (revision: Revision.Revision, ...tools: ReadonlyArray<JsonRpc.JsonObject>): ScriptedServer.Reply =>
  ScriptedServer.success({ ...(revision === "2026-07-28" ? hints : {}), tools })

export const tool = (name: string, rest: JsonRpc.JsonObject = {}): JsonRpc.JsonObject => ({
  name,
  inputSchema: { type: "object" },
  ...rest
})

export const opened = (revision: Revision.Revision, script: ScriptedServer.Script, options?: Client.Options) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(ScriptedServer.handshake(revision, script))
    return { server, client: yield* Client.make(server.transport, options) }
  })

/** The arguments and headers of a call. */
export interface Call {
  readonly args: unknown
  readonly headers: Headers | undefined
}

/** A server that receives headers. */
export const mirroring = (
  script: (request: JsonRpc.Request, headers: Headers | undefined) => ScriptedServer.Reply,
  options?: Client.Options,
  revision: Revision.Revision = "2026-07-28"
) =>
  Effect.gen(function*() {
    const sent = new Map<JsonRpc.Id, Headers | undefined>()
    const calls: Array<Call> = []
    const server = ScriptedServer.make(ScriptedServer.handshake(revision, (request) => {
      const headers = sent.get(request.id)
      if (request.method === "tools/call") calls.push({ args: request.params?.["arguments"], headers })
      return script(request, headers)
    }))
    const carries = (connection: Connection): Connection => ({
      open: (receiver) => connection.open(receiver),
      send: (message, about, headers) => {
        if (message._tag === "Request") sent.set(message.id, headers)
        return connection.send(message, about)
      },
      sendsHeaders: true,
      drained: connection.drained,
      close: connection.close
    })
    const transport: Transport = { connect: Effect.map(server.transport.connect, carries) }
    return { server, calls, client: yield* Client.make(transport, options) }
  })

/** Collects the warnings of a program. */
export const warnings = () => {
  const logged: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) =>
    void (logLevel === "Warn" && logged.push([message].flat().join(" ")))
  )
  return { logged, layer: Logger.layer([logger]) }
}

/** A stateless server that counts its responses and adds cache hints to them. */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Client from "../../src/Client.ts"
import * as Cache from "../../src/internal/calls/cache/cache.ts"
import type { Options } from "../../src/ResponseCache.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

export interface Hints {
  readonly ttlMs?: unknown
  readonly cacheScope?: unknown
}

/** A cache without a client. */
export const cacheWith = (options?: Options) =>
  Effect.map(
    Effect.context<Scope.Scope>(),
    (context) => Cache.make(options, context, Context.get(context, Scope.Scope))
  )

/** The content of each method's result, without the hints. */
const contents: Readonly<Record<string, JsonObject>> = {
  "server/discover": { supportedVersions: ["2026-07-28"], capabilities: { tools: {}, resources: {}, prompts: {} } },
  "tools/list": { tools: [{ name: "t", inputSchema: { type: "object" } }] },
  "prompts/list": { prompts: [{ name: "p" }] },
  "resources/list": { resources: [{ name: "r", uri: "r:1" }] },
  "resources/templates/list": { resourceTemplates: [{ name: "x", uriTemplate: "r:{x}" }] },
  "resources/read": { contents: [{ uri: "r:1", text: "one" }] }
}

/** Responses with the number of responses of their method so far. */
export const counted = (hints: Hints): ScriptedServer.Script => {
  const counts = new Map<string, number>()
  return ({ method }) => {
    const count = (counts.get(method) ?? 0) + 1
    counts.set(method, count)
    return ScriptedServer.success({
      resultType: "complete",
      ...contents[method],
      ...hints,
      _meta: { "test/count": count }
    })
  }
}

export const countOf = (result: unknown): unknown => (result as { readonly _meta: JsonObject })._meta["test/count"]

const modern = { resultType: "complete", ttlMs: 0, cacheScope: "private" }

/** A 2026-07-28 response that must not be cached. */
export const now = (result: JsonObject): ScriptedServer.Reply => ScriptedServer.success({ ...modern, ...result })

export const minute = { ttlMs: 60_000, cacheScope: "public" }

/** A client of a server that responds with `script`, after the discovery. */
export const client = (script: ScriptedServer.Script, cache?: Options | false, options?: Client.Options) =>
  Effect.gen(function*() {
    let discovered = false
    const handshake = ScriptedServer.handshake("2026-07-28", script)
    const server = ScriptedServer.make((request, server) => {
      if (request.method !== "server/discover") return handshake(request, server)
      const reply = discovered ? script(request, server) : handshake(request, server)
      discovered = true
      return reply
    })
    const client = yield* Client.make(server.transport, { ...options, cache })
    return { server, client }
  })

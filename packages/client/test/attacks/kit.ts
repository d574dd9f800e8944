/** Texts that a hostile server sends, and a stopwatch. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Effect from "effect/Effect"

export type Json = any

/** The text of a response whose result is given as text. */
export const result = (id: JsonRpc.Id, text: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`

/**
 * A handshake whose capabilities are given as text: they may be nested deeper than `JSON.stringify` can write, and name
 * a member twice.
 */
export const handshakeOf =
  (revision: Revision.Revision, script: ScriptedServer.Script, capabilities: string): ScriptedServer.Script =>
  (request, server) => {
    const { id, method } = request
    const declared = `"capabilities":${capabilities}`
    if (method === "initialize") {
      const serverInfo = `"serverInfo":{"name":"hostile","version":"1"}`
      return server.sendText(result(id, `{"protocolVersion":"${revision}",${declared},${serverInfo}}`))
    }
    if (method !== "server/discover" || revision !== "2026-07-28") {
      return ScriptedServer.handshake(revision, script)(request, server)
    }
    const caching = `"ttlMs":0,"cacheScope":"private"`
    server.sendText(result(id, `{"resultType":"complete","supportedVersions":["${revision}"],${declared},${caching}}`))
  }

/** Nested deeper than the stack. */
const depth = 15_000
export const deep = {
  arrays: "[".repeat(depth) + "]".repeat(depth),
  objects: `${"{\"a\":".repeat(depth)}1${"}".repeat(depth)}`,
  schemas: `${"{\"type\":\"object\",\"properties\":{\"a\":".repeat(depth)}{}${"}}".repeat(depth)}`
}

/** Runs an effect and returns its value with its duration in milliseconds. */
export const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<readonly [A, number], E, R> =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    return Effect.map(effect, (value) => [value, performance.now() - startedAt] as const)
  })

/** Results of `tools/call`, without their braces, that are hostile or not valid. */
export const toolResults: ReadonlyArray<string> = [
  `"content":[],"structuredContent":${deep.arrays}`,
  `"content":[],"structuredContent":${deep.objects},"isError":true`,
  `"content":[{"type":"text","text":"x","_meta":{"x":${deep.arrays}}}]`,
  "\"content\":[{\"type\":\"image\",\"data\":\"!!!\",\"mimeType\":\"\"}]",
  "\"content\":[{\"type\":\"audio\",\"data\":\"\",\"mimeType\":\"\\u0000\"}],\"isError\":true",
  "\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"blob\":\"!!!\",\"mimeType\":\"x\"}}]",
  "\"content\":[{\"type\":\"resource_link\",\"uri\":\"a:b\",\"name\":\"__proto__\"}]",
  "\"content\":[{\"type\":\"evil\"}]",
  "\"content\":[{\"type\":\"__proto__\"}]",
  "\"content\":[],\"structuredContent\":null",
  "\"content\":[],\"structuredContent\":{\"__proto__\":{\"polluted\":1}}"
]

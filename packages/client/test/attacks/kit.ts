/** Texts that a hostile server sends. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

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

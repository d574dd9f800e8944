/** Numbers that JavaScript rounds, through a proxy: both sides receive the digits that were sent. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Proxy from "@skein/gateway/Proxy"
import * as Json from "@skein/protocol/Json"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as McpServer from "@skein/server/McpServer"
import * as Transform from "@skein/server/Transform"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Effect from "effect/Effect"
import { build, connect, eras, pairs } from "./kit.ts"

const id = "1915883588174806058"

const parsed = (text: string): JsonObject => Json.parse(text) as JsonObject

const schema = `{"type":"object","properties":{"id":{"type":"integer","maximum":9223372036854775807}}}`

const scripted = (revision: typeof eras[number]) => {
  const hints = revision === "2026-07-28" ? `"resultType":"complete","ttlMs":0,"cacheScope":"private",` : ""
  return ScriptedServer.make(ScriptedServer.handshake(revision, ({ method }) =>
    ScriptedServer.success(parsed(
      method === "tools/list"
        ? `{${hints}"tools":[{"name":"ad","inputSchema":${schema}}]}`
        : `{${hints}"content":[],"structuredContent":{"ids":[${id},123456789.123456789123]}}`
    ))))
}

for (const [front, behind] of pairs(eras)) {
  describe(`${front} before ${behind}`, () => {
    it.live("passes the digits of arguments, results and schemas on", () =>
      Effect.gen(function*() {
        const server = scripted(behind)
        const source = Client.make(server.transport, { revisions: [behind] })
        const near = yield* build(McpServer.layer({ name: "near", version: "1.0.0" }, Proxy.layer(source)))
        const client = yield* connect(near, front)
        const [tool] = yield* client.listTools()
        expect(Json.stringify(tool?.inputSchema)).toBe(schema)
        const args = parsed(`{"id":${id},"more":{"ids":[-9007199254740993]},"price":0.12345678901234567890}`)
        const result = yield* client.request(Method.CallTool, { name: "ad", arguments: args }, {
          roundedIntegers: "keep"
        })
        expect(Json.stringify(server.requests("tools/call")[0]?.params?.["arguments"])).toBe(Json.stringify(args))
        expect(Json.stringify(args)).toContain(id)
        expect(Json.stringify(result.structuredContent)).toBe(`{"ids":[${id},123456789.123456789123]}`)
      }))
  })
}

it.live("passes the digits of arguments on that a transform has renamed", () =>
  Effect.gen(function*() {
    const server = scripted("2025-11-25")
    const source = Client.make(server.transport, { revisions: ["2025-11-25"] })
    const near = yield* build(
      McpServer.layer(
        { name: "near", version: "1.0.0" },
        Transform.tools({ each: () => ({ arguments: { id: { name: "adId" } } }) }, Proxy.layer(source))
      )
    )
    const client = yield* connect(near, "2025-11-25")
    yield* client.request(Method.CallTool, { name: "ad", arguments: parsed(`{"adId":${id}}`) }, {
      roundedIntegers: "keep"
    })
    expect(Json.stringify(server.requests("tools/call")[0]?.params?.["arguments"])).toBe(`{"id":${id}}`)
  }))

/** Servers that try to control the terminal, or to break the program. */
import { assert, describe, it } from "@effect/vitest"
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { Tool } from "@skein/protocol/Tool"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { deep, type Json, result, toolResults } from "../../client/test/attacks/kit.ts"
import { call, runCall } from "../src/internal/calls/call.ts"
import { resultText, sanitize, toolLine } from "../src/internal/base/format.ts"
import { Process } from "../src/internal/base/process.ts"
import { invocationOf } from "./invocation.ts"

const complete = (body: string) => `{"resultType":"complete","ttlMs":0,"cacheScope":"private",${body}}`

describe("a hostile result", () => {
  for (const [at, content] of toolResults.entries()) {
    it.live(`is printed or fails the call, without a defect (${at})`, () =>
      Effect.gen(function*() {
        const tools = "\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]"
        const { transport } = ScriptedServer.make(
          ScriptedServer.handshake("2026-07-28", ({ id, method }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
            sendText(result(id, complete(method === "tools/list" ? tools : content))))
        )
        const console = {
          print: () =>
            Effect.void,
          warn: () => {}
        }
        for (const json of [false, true]) {
          const exit = yield* Effect.exit(call({ transport }, invocationOf({ verbose: true, json }), console))
          assert.isTrue(Exit.isSuccess(exit) || !Cause.hasDies(exit.cause), String(exit).slice(0, 500))
        }
        assert.isUndefined((Object.prototype as Json).polluted)
      }))
  }
})

describe("a hostile text", () => {
  const evil = "\u001b]0;title\u0007\u001b[2J\u009b31m\u202eabc\u2066\u200b\u0000\u0008\rover\u2028\ufeff\u{e0041}"
  const clean = (text: string) => assert.notMatch(text, /[\p{Cf}\p{Zl}\p{Zp}]|[^\n\t\P{Cc}]/u)

  it("is escaped in the line of a tool and in its result", () => {
    const schema = {
      type: "object",
      properties: { [evil]: { type: evil }, a: { enum: [evil] }, b: { const: evil }, c: { type: [evil] } },
      required: [evil]
    }
    clean(toolLine({ name: evil, title: evil, description: evil, inputSchema: schema } as unknown as Tool))
    const content = [
      { type: "text", text: evil },
      { type: "image", data: evil, mimeType: evil },
      { type: "resource_link", uri: evil, name: evil, title: evil },
      { type: "resource", resource: { uri: evil, text: evil } },
      { type: "resource", resource: { uri: evil, blob: evil, mimeType: evil } }
    ]
    clean(sanitize(resultText({ content } as unknown as CallToolResult)))
    clean(sanitize(resultText({ content: [], structuredContent: { [evil]: evil } } as unknown as CallToolResult)))
  })

  it("is not needed for the line of a tool: a type that is not a text, and values nested deeper than the stack, are left out", () => {
    const properties = {
      a: { type: ["string", { toString: 1, valueOf: 1 }, JSON.parse(deep.arrays)] },
      b: { const: JSON.parse(deep.arrays) },
      c: { enum: ["x", JSON.parse(deep.objects)] }
    }
    assert.strictEqual(
      toolLine({ name: "t", inputSchema: { type: "object", properties } } as unknown as Tool),
      "t(a?: string, b?: …, c?: \"x\"|…)"
    )
  })

  it.live("is escaped in the name of a server, in its progress and in its errors", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const json = JSON.stringify(evil)
      const scripted = ScriptedServer.make((message: Json, server: ScriptedServer.ScriptedServer) => {
        const { id, method, params } = message
        if (method === "server/discover") {
          return server.sendText(result(
            id,
            complete(
              `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":${json},"version":${json}}}`
            )
          ))
        }
        server.sendText(
          `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${
            params._meta.progressToken ?? 0
          },"progress":1,"message":${json}}}`
        )
        server.sendText(result(id, complete(`"isError":true,"content":[{"type":"text","text":${json}}]`)))
      })
      const code = yield* call(scripted, invocationOf({ verbose: true }), {
        print: (text) => Effect.sync(() => void lines.push(text)),
        warn: (line) => void lines.push(line)
      })
      assert.strictEqual(code, 1)
      assert.isAtLeast(lines.length, 3)
      for (const line of lines) clean(line)
    }))

  it.live("is escaped in the stderr of a server's process, and in the error of its end", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const code = `process.stderr.write(${JSON.stringify(`first ${evil}\n\tsecond\r\n`)}, () => process.exit(1))`
      const target = { _tag: "Command", command: process.execPath, args: ["-e", code] } as const
      const failed = yield* Effect.flip(Effect.provideService(
        runCall(invocationOf({ target, verbose: true })),
        Process,
        {
          env: process.env,
          console: { print: () => Effect.void, warn: (line) => void lines.push(line) },
          terminal: undefined
        }
      ))
      for (const line of [...lines, failed.report!]) clean(line)
      assert.match(lines.join("\n"), /^first \\u\{1b\}.*\n\tsecond(\n|$)/)
      assert.include(failed.report!, "first \\u{1b}")
    }))
})

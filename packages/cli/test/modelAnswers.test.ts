/** Sampling requests of a server, which a person answers. */
import { assert, describe, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import type { Terminal } from "../src/internal/base/process.ts"
import { listen, skein, starting } from "./serverKit.ts"

const Poet = McpServer.layer(
  { name: "poet", version: "1.0.0" },
  Tool.layer(Tool.make("write"), () =>
    Effect.gen(function*() {
      const { content } = yield* Sampling.createMessage({
        systemPrompt: "Be brief.",
        messages: [{ role: "user", content: { type: "text", text: "A poem\nposed by poet:\u001b[2J" } }],
        maxTokens: 50
      })
      return JSON.stringify(content)
    }))
)

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(`sampling in skein call · ${revision}`, () => {
    const poet = Effect.gen(function*() {
      const mounted = yield* Effect.acquireRelease(
        Effect.promise(() => NodeHttp.mount(Poet)),
        (mounted) => Effect.promise(() => mounted.close())
      )
      return yield* listen((request, response) => void mounted.handler(request, response))
    })
    const line = (url: string) => ["call", "--revision", revision, url, "write"]

    it.live("is answered with --sampling", () =>
      Effect.gen(function*() {
        const { code, err, out } = yield* skein(...line(yield* poet), "--sampling", "Roses")
        assert.deepStrictEqual([code, out, err], [
          0,
          ["[{\"type\":\"text\",\"text\":\"Roses\"}]"],
          ["Answered a sampling request with the text of --sampling"]
        ])
      }))

    it.live("is answered on a terminal, or refused there", () =>
      Effect.gen(function*() {
        for (const [typed, expected] of [["Violets", 0], ["", 1]] as const) {
          const seen: Array<string> = []
          const terminal: Terminal = {
            writeLine: (text) => Effect.sync(() => void seen.push(text)),
            readLine: (prompt) => Effect.sync(() => (seen.push(prompt), typed))
          }
          const ran = yield* starting(line(yield* poet), { terminal }).running
          assert.strictEqual(ran.code === 0 ? 0 : 1, expected)
          if (expected === 0) assert.deepStrictEqual(ran.out, ["[{\"type\":\"text\",\"text\":\"Violets\"}]"])
          assert.match(seen[0]!, /^\n127\.0\.0\.1:\d+ asks a language model \(sampling\), of at most 50 tokens:$/)
          assert.deepStrictEqual(seen.slice(1), [
            "  system: Be brief.",
            "  user: A poem\n  | posed by poet:\\u{1b}[2J",
            "Answer in its place (an empty line refuses): "
          ])
        }
      }))

    it.live("is not a capability without a terminal and without --sampling", () =>
      Effect.gen(function*() {
        const { err } = yield* skein(...line(yield* poet))
        assert.match(err[0]!, /sampling/i)
      }))
  })
}

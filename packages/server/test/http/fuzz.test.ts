import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { logged } from "../kit.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

/** Numbers from 0 to below 1, the same ones in every run. */
const random = (seed: number) => (): number => {
  seed = (seed * 1_103_515_245 + 12_345) % 0x80000000
  return seed / 0x80000000
}

const requests = [
  kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } }),
  kit.modern("tools/list"),
  kit.modern("server/discover"),
  {
    headers: { ...kit.posting, "mcp-session-id": "none", "mcp-protocol-version": "2025-11-25" },
    body: { jsonrpc: "2.0", id: 1, method: "tools/list" }
  }
]

const bytesOf = ({ body, headers }: kit.Request): string => {
  const text = JSON.stringify(body)
  const head = Object.entries(headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
  return `POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}content-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`
}

const pieces = [
  "\r\n",
  ":",
  "\"",
  "{",
  "}",
  "[",
  "]",
  ",",
  "\\u0000",
  "\u00e9",
  "\0",
  " ",
  "null",
  "-1",
  "1e999",
  "__proto__",
  "=?base64?",
  ";q=0"
]

const mutate = (text: string, next: () => number): string => {
  let mutated = text
  for (let count = 1 + Math.floor(next() * 4); count > 0; count--) {
    const at = Math.floor(next() * mutated.length)
    const length = Math.floor(next() * next() * 20)
    const piece = next() < 0.3
      ? ""
      : next() < 0.5
      ? mutated.slice(at, at + length)
      : pieces[Math.floor(next() * pieces.length)]!
    mutated = mutated.slice(0, at) + piece + mutated.slice(at + (next() < 0.5 ? length : piece.length))
  }
  return mutated
}

describe("hostile bytes", () => {
  it.live("answers or disconnects without an internal error, and serves the next request", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* kit.serve(fixtures.server(fixtures.echo))
        const next = random(20_260_728)
        const seen = new Map<string, number>()
        for (let round = 0; round < 400; round++) {
          const bytes = mutate(bytesOf(requests[round % requests.length]!), next)
          const { text } = yield* Effect.scoped(Effect.flatMap(kit.raw(at), (raw) => {
            raw.write(bytes)
            raw.end()
            return raw.closed
          }))
          for (const [, status] of text.matchAll(/^HTTP\/1\.1 (\d+)/gm)) {
            seen.set(status!, (seen.get(status!) ?? 0) + 1)
            // 501 is for another transfer coding, and 505 for another version.
            expect([/^(2\d\d|4\d\d|501|505)$/.test(status!), bytes, text]).toEqual([true, bytes, text])
          }
          expect(text).not.toContain("_tag")
        }
        // The input reached further than the first guard.
        expect(seen.get("200")).toBeGreaterThan(20)
        expect(seen.get("400")).toBeGreaterThan(50)
        expect(seen.size).toBeGreaterThan(5)
        // The log warns of the first request for a foreign Host.
        expect(lines.filter((line) => !line.startsWith("HTTP: refused"))).toEqual([])
        expect([...at.endpoint.requests]).toEqual([])
        expect((yield* kit.send(at, requests[0]!)).status).toBe(200)
      }))
    ))
})

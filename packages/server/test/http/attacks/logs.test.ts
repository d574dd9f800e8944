/** Attacks on the readers of the log and of the responses. */
import { describe, expect, it } from "@effect/vitest"
import * as AuditLog from "@skein/server/AuditLog"
import * as Middleware from "@skein/server/Middleware"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Timeout from "@skein/server/Timeout"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import { bounds } from "../../fixedBounds.ts"
import * as fixtures from "../fixtures.ts"
import { referenceOf } from "../../kit.ts"
import * as kit from "../kit.ts"

const spoof = "x\u001b[2K\r\n[10:00:00] INFO: tools/call admin: ok\u2028\u202e\u0007"
const base64 = (text: string): string => `=?base64?${Buffer.from(text).toString("base64")}?=`

/** Runs with a logger that records every message, and every annotation. */
const logged = <A, E, R>(use: (lines: ReadonlyArray<string>) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ fiber, message }) => {
    const annotations = Object.values(fiber.getRef(References.CurrentLogAnnotations))
    lines.push(...[message, annotations].flat(2).filter((part): part is string => typeof part === "string"))
  })
  return use(lines).pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "All")
  )
}

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: spoof, version: spoof } }
}

describe("a line of the log", () => {
  it.live(
    "holds no text of a client that could be read as another line, for any event",
    () =>
      logged((lines) =>
        Effect.scoped(Effect.gen(function*() {
          const broken = Middleware.layer((next) => (exchange) =>
            exchange.method.startsWith("x") ? Effect.die("broken") : next(exchange)
          )
          const stubborn = ResourceTemplate.layer(
            ResourceTemplate.make("x:{+rest}", { name: "x", variables: { rest: Schema.String } }),
            () => Effect.uninterruptible(Effect.as(Effect.sleep("1 second"), ""))
          )
          const server = fixtures.server(
            AuditLog.layer(),
            broken,
            Timeout.layer({ timeout: "1 millis" }),
            stubborn,
            fixtures.waiting().layer
          )
          const at = yield* kit.serve(Layer.provide(server, bounds({ interruptTimeout: 1 })))
          const id = (yield* kit.post(at, initialize)).headers["mcp-session-id"] as string
          const own = { "mcp-session-id": id }
          const in_ = (method: string, params: object = {}, id: string | number = 2) =>
            kit.post(at, { jsonrpc: "2.0", id, method, params }, own)
          yield* in_(spoof)
          yield* in_("tools/call", { name: spoof })
          yield* in_("prompts/get", { name: spoof })
          yield* in_("resources/read", { uri: `x:${encodeURIComponent(spoof)}` })
          yield* kit.post(at, { jsonrpc: "2.0", method: spoof }, own)
          yield* kit.send(
            at,
            kit.modern("tools/call", { name: spoof }, { headers: { "mcp-name": base64(spoof) }, id: spoof })
          )
          yield* kit.send(
            at,
            kit.modern("resources/read", { uri: `x:${encodeURIComponent(spoof)}` }, {
              headers: { "mcp-name": `x:${encodeURIComponent(spoof)}` }
            })
          )
          const method = { ...kit.modern("x"), body: JSON.stringify(kit.modern(spoof).body) }
          yield* kit.send(at, method)
          yield* kit.post(at, {
            jsonrpc: "2.0",
            method: "notifications/cancelled",
            params: { requestId: 2, reason: spoof }
          }, own)
          expect(lines.length).toBeGreaterThan(7)
          expect(lines.some((line) => line.includes("did not stop within"))).toBe(true)
          expect(lines.some((line) => line.includes("failed, reference"))).toBe(true)
          for (const line of lines) {
            expect([line, [...line].filter((sign) => sign < " " || /[\x7f\u2028\u202e]/.test(sign))]).toEqual([
              line,
              []
            ])
          }
        }))
      ),
    120_000
  )
})

describe("a response", () => {
  it.live("responds without a cause, a path or a tag, for any kind of failure", () =>
    logged(() =>
      Effect.scoped(Effect.gen(function*() {
        const secret = "the secret of /etc/passwd"
        const breaking: ReadonlyArray<readonly [string, () => Effect.Effect<unknown>]> = [
          ["throws", () => {
            throw new Error(secret)
          }],
          ["dies", () => Effect.die(new Error(secret))],
          ["rejects", () => Effect.promise(() => Promise.reject(new Error(secret)))],
          ["bigint", () => Effect.succeed({ count: 1n })],
          ["tojson", () =>
            Effect.succeed({
              toJSON: () => {
                throw new Error(secret)
              }
            })],
          ["cycle", () =>
            Effect.sync(() => {
              const cycle: Record<string, unknown> = {}
              return cycle["cycle"] = cycle
            })],
          ["getter", () =>
            Effect.succeed({
              get content(): never {
                throw new Error(secret)
              }
            })],
          ["interrupts", () => Effect.interrupt]
        ]
        // The model is told that the value cannot be sent, and not why.
        const withoutJson = new Set(["bigint", "tojson", "cycle"])
        const tools = breaking.map(([name, handler]) =>
          Tool.layer(Tool.make(name), handler as () => Effect.Effect<string>)
        )
        const at = yield* kit.serve(fixtures.server(fixtures.echo, ...tools))
        const id = (yield* kit.post(at, {
          ...initialize,
          params: { ...initialize.params, clientInfo: { name: "x", version: "1" } }
        }))
          .headers["mcp-session-id"] as string
        for (const [name] of breaking) {
          const params = { name, arguments: {} }
          const replies = [
            yield* kit.send(at, kit.modern("tools/call", params)),
            yield* kit.post(at, { jsonrpc: "2.0", id: name, method: "tools/call", params }, { "mcp-session-id": id })
          ]
          for (const { json, text } of replies) {
            if (withoutJson.has(name)) {
              expect([name, json.result.isError]).toEqual([name, true])
              expect(json.result.content[0].text).toContain("a value that has no JSON")
            } else if (name !== "interrupts") {
              referenceOf(json.result, name)
            } else {
              expect([name, Object.keys(json.error)]).toEqual([name, ["code", "message", "data"]])
              expect([name, json.error.message, Object.keys(json.error.data)]).toEqual([name, "Internal error", [
                "reference"
              ]])
            }
            expect(text).not.toMatch(/secret|_tag|stack|\.ts|node_modules/)
          }
        }
        const fine = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
        expect((yield* kit.send(at, fine)).status).toBe(200)
      }))
    ))
})

/** The programs of `middleware.md`. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import type { Principal } from "@skein/runtime/Connection"
import type * as Catalog from "@skein/server/Catalog"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { Careful, entries } from "../programs/middleware.ts"
import { Shop } from "../programs/operations.ts"
import { answers, Rates } from "../programs/steady.ts"

/** A client of a server in memory. Its requests have the given principal. */
const connect = <E>(
  server: Layer.Layer<McpServer.McpServer | Catalog.Catalog, E>,
  { principal, ...options }: Client.Options & { readonly principal?: Principal } = {}
): Effect.Effect<Client.Client, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return yield* Client.make(InMemoryTransport.transport(serve, { principal }), options)
  }).pipe(Effect.orDie)

const textOf = ({ content }: { readonly content: ReadonlyArray<object> }): string =>
  content.map((block) => "text" in block ? block.text : "").join("")

const call = (client: Client.Client, name: string, args?: object) => Effect.map(client.callTool(name, args), textOf)

describe("programs/middleware.ts", () => {
  it.effect("limits rate, time and size, and writes the audit log", () =>
    Effect.gen(function*() {
      const client = yield* connect(Careful, { principal: { id: "ada" } })
      for (let n = 0; n < 10; n++) expect(yield* call(client, "ping")).toBe("pong")
      expect((yield* Effect.flip(client.callTool("ping"))).reason).toMatchObject({
        error: { reason: "Other", code: 429 }
      })
      expect(textOf(yield* client.callTool("large"))).toContain("more than the maximum of 4096")
      const slow = yield* Effect.forkChild(client.callTool("slow"))
      yield* TestClock.adjust("10 seconds")
      expect(textOf(yield* Fiber.join(slow))).toContain("took longer than 10 s")
      expect(entries.map(({ outcome }) => outcome)).toEqual([
        ...Array.from({ length: 10 }, () => "ok"),
        "error",
        "tool_error",
        "tool_error"
      ])
      expect(entries[10]).toMatchObject({ target: "ping", principal: "ada", code: 429 })
      const owl = yield* connect(Careful, { principal: { id: "night-owl" } })
      expect((yield* Effect.flip(owl.callTool("ping"))).message).toContain("Closed at night")
    }))
})

describe("programs/operations.ts", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · changes arguments, results and lists, and answers without the handler`, () =>
      Effect.gen(function*() {
        const client = yield* connect(Shop, { revisions: [revision], principal: { id: "ada", shop: "Kyoto" } })
        expect(yield* call(client, "search", { query: "tea", limit: 99 })).toBe(
          "50 orders with tea in Kyoto, card (card)"
        )
        expect(yield* call(client, "find", { query: "tea", shop: "Osaka" }))
          .toBe("10 orders with tea in Kyoto, card (card)")
        expect(yield* client.callTool("refund")).toMatchObject({
          isError: true,
          content: [{ text: "Only a manager may call refund. Tell the user whom to ask" }]
        })
        expect((yield* client.listTools()).map(({ description }) => description))
          .toEqual(["Searches the orders. Today for Kyoto.", "Refunds an order. Today for Kyoto."])
        const manager = yield* connect(Shop, { revisions: [revision], principal: { id: "bob", role: "manager" } })
        expect(yield* call(manager, "refund")).toBe("Refunded")
      }))
  }
})

describe("programs/steady.ts", () => {
  it.effect("retries, caches and maps the last failure", () =>
    Effect.gen(function*() {
      const client = yield* connect(Rates)
      const rate = Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(client.callTool("rate", { currency: "eur" }), { startImmediately: true })
        yield* TestClock.adjust("5 seconds")
        return textOf(yield* Fiber.join(fiber))
      })
      answers.push("down", 7, 8)
      expect(yield* rate).toBe("eur 7")
      expect(yield* rate).toBe("eur 7")
      yield* TestClock.adjust("10 seconds")
      expect(yield* rate).toBe("eur 8")
      yield* TestClock.adjust("10 seconds")
      expect(yield* rate).toMatch(/^The exchange is closed. Try again in a minute \(reference [\w-]{36}\)$/)
    }))
})

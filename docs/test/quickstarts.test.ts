/** The programs of the quickstarts as processes, and those of `effect.md`. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { createServer } from "node:http"
import { join } from "node:path"
import * as Intro from "../programs/effectIntro.ts"
import { docs } from "./blocks.ts"
import { connect } from "./kit.ts"
import { started } from "./process.ts"

const greeting = { content: [{ type: "text", text: "Hello, Ada!" }] }

describe.each(["programs/quickStdio.ts", "programs/quickStdioAsync.ts"])("%s", (program) => {
  it.live("greets, and says which argument is invalid", () =>
    Effect.gen(function*() {
      const client = yield* Client.make(Stdio.transport({
        command: process.execPath,
        args: ["--conditions=@skein/source", join(docs, program)]
      }))
      expect(yield* client.callTool("greet", { name: "Ada" })).toMatchObject(greeting)
      expect(yield* client.callTool("greet", { name: 5 })).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/^Invalid arguments for tool greet: .+\n  at \["name"\]$/) }]
      })
    }).pipe(Effect.scoped))
})

describe("programs/quickHttpAsync.ts", () => {
  it.live("greets over HTTP", () =>
    Effect.gen(function*() {
      const { url } = yield* started("quickHttpAsync")
      const client = yield* Client.make(NodeHttp.transport({ url }))
      expect(yield* client.callTool("greet", { name: "Ada" })).toMatchObject(greeting)
    }).pipe(Effect.scoped))
})

describe("programs/words.ts, served by programs/wordsServer.ts", () => {
  it.live("counts the words of a text and of a page, and explains why a page cannot be read", () =>
    Effect.gen(function*() {
      const { url } = yield* started("wordsServer")
      const client = yield* Client.make(NodeHttp.transport({ url }))
      const count = (args: Readonly<Record<string, unknown>>) => client.callTool("word_count", args)
      expect(yield* count({ text: " to be\nor not " })).toMatchObject({ structuredContent: { words: 4 } })
      const page = new URL("/livez", url).href
      expect(yield* count({ url: page })).toMatchObject({ structuredContent: { words: 1 } })
      const missing = new URL("/missing", url).href
      expect(yield* count({ url: missing })).toMatchObject({
        isError: true,
        content: [{ text: `${missing} cannot be read: 404` }]
      })
      expect(yield* count({ url: "http://127.0.0.1:1/" })).toMatchObject({
        isError: true,
        content: [{ text: "http://127.0.0.1:1/ cannot be read: no response" }]
      })
    }).pipe(Effect.scoped))
})

describe("programs/effectIntro.ts", () => {
  it.effect("returns the values that effect.md states", () =>
    Effect.gen(function*() {
      const answer = yield* Effect.forkChild(Intro.answer)
      yield* TestClock.adjust("10 millis")
      expect(yield* Fiber.join(answer)).toBe(42)
      expect(yield* Intro.order).toEqual({ tea: "sencha", cups: 2, at: new Date("2026-07-28T09:30:00Z") })
      const client = yield* connect(Intro.Server)
      expect((yield* client.callTool("price", { tea: "sencha" })).content).toMatchObject([{ text: "6 €" }])
      expect(yield* Effect.provide(Intro.pricesOf(["a", "bc"]), Intro.Shop.layer)).toEqual([1, 2])
    }))

  it.effect("takes another tea when one is sold out, and fails when both are", () =>
    Effect.gen(function*() {
      expect(yield* Intro.takeOr("oolong", "sencha")).toBe("One sencha")
      expect(yield* Intro.takeOr("sencha", "oolong")).toBe("One sencha")
      expect((yield* Effect.flip(Intro.takeOr("sencha", "oolong"))).message).toBe("There is no oolong left")
    }))

  it.live("reads a page, and fails with a tagged error if it cannot", () =>
    Effect.gen(function*() {
      const server = createServer((_request, response) => response.end("a page"))
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => void server.close().closeAllConnections())
      )
      const { port } = server.address() as { readonly port: number }
      expect(yield* Intro.textOf(`http://127.0.0.1:${port}`)).toBe("a page")
      expect((yield* Effect.flip(Intro.textOf("http://127.0.0.1:1")))._tag).toBe("Unreachable")
    }).pipe(Effect.scoped))
})

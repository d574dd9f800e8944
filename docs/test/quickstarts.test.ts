/** The programs of the quickstarts as processes, and those of `effect.md`. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { execFile } from "node:child_process"
import { createServer } from "node:http"
import { join } from "node:path"
import { promisify } from "node:util"
import * as Intro from "../programs/effectIntro.ts"
import { blocksOf, docs, read } from "./blocks.ts"
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

describe("programs/quickClient.ts", () => {
  it.live("lists the tools of a server over HTTP, and calls one", () =>
    Effect.gen(function*() {
      const { url } = yield* started("smallest")
      const args = ["--conditions=@skein/source", join(docs, "programs/quickClient.ts"), url]
      const { stdout } = yield* Effect.promise(() => promisify(execFile)(process.execPath, args))
      expect(stdout).toMatch(/^greet: Greets a person by name\.\n\[ { type: 'text', text: 'Hello, Ada!' } \]\n$/)
    }).pipe(Effect.scoped))
})

describe.each([
  ["quickstart-client.md", "client/async/src/host.ts"],
  ["quickstart-tasks.md", "tasks/async/src/server.ts"]
])("%s", (page, file) => {
  it("shows a part of the created project, whose tests run with those of create-skein", () => {
    const block = blocksOf(page).find(({ info }) => info === "typescript")
    expect(read(`../packages/create-skein/templates/${file}`)).toContain(`\n${block!.text}\n`)
  })
})

/** Serves a weather service, which has an answer for Berlin only. Returns its URL. */
const weatherService: Effect.Effect<string, never, Scope.Scope> = Effect.gen(function*() {
  const server = createServer(({ url }, response) => {
    const { searchParams } = new URL(url!, "http://localhost")
    const place = [searchParams.get("latitude"), searchParams.get("longitude")].join()
    if (place !== "52.5,13.4" || searchParams.get("current") !== "temperature_2m") response.statusCode = 400
    response.end(JSON.stringify({ current: { temperature_2m: 21.5 } }))
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => void server.close().closeAllConnections())
  )
  const { port } = server.address() as { readonly port: number }
  return `http://127.0.0.1:${port}/`
})

describe("programs/quickstart", () => {
  it.live("returns the temperature that the service answers, and explains why there is none", () =>
    Effect.gen(function*() {
      const { url } = yield* started("quickstart/server", { env: { WEATHER_URL: yield* weatherService } })
      const client = yield* Client.make(NodeHttp.transport({ url }))
      expect(yield* client.callTool("temperature", { latitude: 52.5, longitude: 13.4 })).toMatchObject({
        structuredContent: { celsius: 21.5 }
      })
      expect(yield* client.callTool("temperature", { latitude: 0, longitude: 13.4 })).toMatchObject({
        isError: true,
        content: [{ text: "The weather service answered with 400" }]
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

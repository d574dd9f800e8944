/** The parts of created projects that the quickstarts show, and the programs of `effect.md`. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { createServer } from "node:http"
import * as Intro from "../programs/effectIntro.ts"
import { blocksOf, read } from "./blocks.ts"
import { connect } from "./kit.ts"

describe.each([
  ["quickstart-client.md", "client/async/src/host.ts"],
  ["quickstart-tasks.md", "tasks/async/src/server.ts"]
])("%s", (page, file) => {
  it("shows a part of the created project, whose tests run with those of create-skein", () => {
    const block = blocksOf(page).find(({ info }) => info === "typescript")
    expect(read(`../packages/create-skein/templates/${file}`)).toContain(`\n${block!.text}\n`)
  })
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

import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { all, completed, each, fresh, insert, stateOf } from "./kit.ts"

const failing = (...texts: ReadonlyArray<string>) =>
  completed({ content: texts.map((text) => ({ type: "text", text })), isError: true })

each(all, (backend) => {
  it.effect("a listing shows which tasks have failed, and why, although it has no outcomes", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const ends = {
        fine: completed({ content: [{ type: "text", text: "fine" }] }),
        bad: failing("There is no flour", "nor sugar"),
        long: failing("x".repeat(600)),
        silent: completed({ content: [], isError: true }),
        error: { status: "failed", outcome: { _tag: "Error", error: { code: -32603, message: "Broken" } } },
        cancelled: { status: "cancelled" }
      } as const
      for (const [tool, end] of Object.entries(ends)) {
        const { id } = yield* insert(opened, { tool })
        yield* store.setStatusMessage(id, "Baking", 1)
        yield* store.finish(id, end)
        const state = (yield* store.list(["ada"], undefined, 10)).find((state) => state.id === id)
        const { isError, statusMessage, status } = yield* stateOf(opened, id)
        expect(state).toMatchObject({ id, tool, status, isError, statusMessage, outcome: undefined })
      }
      const logged = (yield* store.list(["ada"], undefined, 10)).map((
        { isError, statusMessage, tool }
      ) => [tool, isError, statusMessage])
      expect(logged.sort()).toEqual([
        ["bad", true, "There is no flour"],
        ["cancelled", false, "Baking"],
        ["error", false, "Broken"],
        ["fine", false, "Baking"],
        ["long", true, "x".repeat(500)],
        ["silent", true, "Baking"]
      ])
    }))

  it.effect("shows that a task waits for a worker in place of its message, and only meanwhile", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const message = (id: string) => Effect.map(stateOf(opened, id), ({ statusMessage }) => statusMessage)
      const { id } = yield* insert(opened, { tool: "bake" })
      yield* store.setStatusMessage(id, "The dough rests", 1)
      yield* store.setWaitsForWorker(id, true)
      expect(yield* message(id)).toBe("Waiting for a worker that has the tool bake")
      expect((yield* store.load(id))?.waitsForWorker).toBe(true)
      const { version } = yield* stateOf(opened, id)
      yield* store.setWaitsForWorker(id, true)
      expect((yield* stateOf(opened, id)).version).toBe(version)
      yield* store.setWaitsForWorker(id, false)
      expect(yield* message(id)).toBe("The dough rests")
      expect((yield* store.load(id))?.waitsForWorker).toBe(false)
      yield* store.setWaitsForWorker(id, true)
      yield* store.finish(id, { status: "cancelled" })
      expect(yield* message(id)).toBe("The dough rests")
      yield* store.setWaitsForWorker(id, false)
      expect((yield* store.load(id))?.status).toBe("cancelled")
    }))
})

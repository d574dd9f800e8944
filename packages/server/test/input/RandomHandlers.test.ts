/**
 * A random program of input requests has the same outcome in both eras. Input requests that are never answered leave
 * nothing behind.
 */
import { describe, expect, it } from "@effect/vitest"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { InputError } from "@skein/server/InputError"
import * as Elicitation from "@skein/server/Elicitation"
import { once } from "@skein/server/Once"
import * as RequestState from "@skein/server/RequestState"
import * as Roots from "@skein/server/Roots"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as base from "../kit.ts"
import * as kit from "./kit.ts"

type Program =
  | { readonly _tag: "Ask"; readonly text: string }
  | { readonly _tag: "Roots" }
  | { readonly _tag: "Once"; readonly key: string }
  | { readonly _tag: "Step" }
  | { readonly _tag: "All" | "Forked" | "Sequence"; readonly parts: ReadonlyArray<Program> }
  | { readonly _tag: "Loop"; readonly times: number; readonly part: Program }
  | { readonly _tag: "If"; readonly text: string; readonly yes: Program; readonly no: Program }

/** A small generator of random numbers, so that a failure can be repeated by its seed. */
const random = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) >>> 0
  return seed / 0x1_0000_0000
}

const texts = ["a", "b", "c"]

const generate = (next: () => number, depth: number): Program => {
  const pick = <A>(from: ReadonlyArray<A>): A => from[Math.floor(next() * from.length)]!
  const several = () => Array.from({ length: 1 + Math.floor(next() * 3) }, () => generate(next, depth - 1))
  const kind = depth === 0 ? next() * 4 : next() * 9
  if (kind < 2) return { _tag: "Ask", text: pick(texts) }
  if (kind < 2.5) return { _tag: "Roots" }
  if (kind < 3.3) return { _tag: "Once", key: pick(texts) }
  if (kind < 4) return { _tag: "Step" }
  if (kind < 5) return { _tag: "All", parts: several() }
  if (kind < 6) return { _tag: "Forked", parts: several() }
  if (kind < 7) return { _tag: "Sequence", parts: several() }
  if (kind < 8) return { _tag: "Loop", times: 1 + Math.floor(next() * 2), part: generate(next, depth - 1) }
  return { _tag: "If", text: pick(texts), yes: generate(next, depth - 1), no: generate(next, depth - 1) }
}

const text = Elicitation.make({ text: Schema.String })
const ask = (message: string) => Effect.map(Elicitation.accepted(Elicitation.form(message, text)), ({ text }) => text)

type Handler = Effect.Effect<string, InputError, McpRequest>

/** The steps of a program. Parallel requests with one text may change places, so their responses are the same. */
const interpret = (program: Program, effects: Map<string, number>): Handler => {
  const run = (part: Program) => interpret(part, effects)
  const joined = (parts: Effect.Effect<ReadonlyArray<string>, InputError, McpRequest>) =>
    Effect.map(parts, (all) => `(${all.join(" ")})`)
  switch (program._tag) {
    case "Ask":
      return ask(program.text)
    case "Roots":
      return Effect.map(Roots.list(), (roots) => String(roots.length))
    case "Once":
      return Effect.map(
        once(
          program.key,
          Schema.String,
          Effect.sync(() => {
            effects.set(program.key, (effects.get(program.key) ?? 0) + 1)
            return program.key
          })
        ),
        (key) => `once ${key}`
      )
    case "Step":
      return Effect.as(Effect.promise(() => Promise.resolve()), ".")
    case "All":
      return joined(Effect.all(program.parts.map(run), { concurrency: "unbounded" }))
    case "Forked":
      return joined(
        Effect.flatMap(
          Effect.forEach(program.parts, (part) => Effect.forkChild(run(part))),
          (fibers) => Effect.forEach(fibers, (fiber) => Fiber.join(fiber))
        )
      )
    case "Sequence":
      return joined(Effect.all(program.parts.map(run)))
    case "Loop":
      return joined(Effect.all(Array.from({ length: program.times }, () => run(program.part))))
    case "If":
      return Effect.flatMap(ask(program.text), (text) => run(text < "B" ? program.yes : program.no))
  }
}

const answer: kit.Answerer = ({ method, params }) =>
  method === "roots/list"
    ? { roots: [{ uri: "file:///a" }] }
    : kit.accept({ text: params.message.toUpperCase() })

describe("a random program", () => {
  for (let seed = 1; seed <= 60; seed++) {
    it.effect(`${seed} has the same outcome and input requests in both eras, and runs each effect once`, () =>
      Effect.gen(function*() {
        const program = generate(random(seed), 3)
        const outcome = (revision: "2025-11-25" | "2026-07-28") =>
          Effect.gen(function*() {
            const effects = new Map<string, number>()
            const server = Layer.provide(
              kit.tool(Effect.suspend(() => interpret(program, effects))),
              RequestState.layer({ maxRounds: 200 })
            )
            const client = yield* kit.client(server, { revision, answer })
            const text = yield* client.call("t")
            const asked = client.asked.map(({ method, params }) => params?.message ?? method).toSorted()
            return { text, asked, effects: [...effects].toSorted(([a], [b]) => a < b ? -1 : 1) }
          })
        const modern = yield* outcome("2026-07-28")
        expect(modern).toEqual(yield* outcome("2025-11-25"))
        expect(modern.effects.every(([, times]) => times === 1)).toBe(true)
        expect(modern.text).not.toMatch(/^failed|^-/)
      }))
  }
})

describe("memory", () => {
  const count = 10_000
  const heap = (): number => {
    globalThis.gc!()
    globalThis.gc!()
    return process.memoryUsage().heapUsed
  }

  /**
   * Runs the same work once to warm up and twice more, and returns the bytes that remain per turn: the smaller of the
   * two.
   */
  const growth = (work: Effect.Effect<void>) =>
    Effect.gen(function*() {
      const sizes: Array<number> = []
      for (let turn = 0; turn < 3; turn++) {
        yield* work
        yield* base.settle
        sizes.push(heap())
      }
      return Math.min(sizes[1]! - sizes[0]!, sizes[2]! - sizes[1]!) / count
    })

  const cleaned = { count: 0 }
  const handler = Effect.ensuring(ask("a"), Effect.sync(() => void cleaned.count++))

  it.effect(`2026-07-28 · ${count} requests that are cancelled during input requests release everything`, () =>
    Effect.gen(function*() {
      cleaned.count = 0
      const client = yield* kit.client(kit.tool(handler), { revision: "2026-07-28", answer })
      const work = Effect.gen(function*() {
        for (let n = 0; n < count; n += 100) {
          for (let i = 0; i < 100; i++) {
            const requestId = client.send("tools/call", { name: "t" })
            client.notify("notifications/cancelled", { requestId: requestId as number })
          }
          yield* base.settle
        }
        expect([...client.peer.requests]).toEqual([])
        client.received.length = 0
      })
      expect(yield* growth(work)).toBeLessThan(100)
      expect(cleaned.count).toBe(3 * count)
      expect(client.asked).toEqual([])
    }))

  it.effect(`2026-07-28 · ${count} requests with input requests that are never retried release everything`, () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.tool(handler), { revision: "2026-07-28", answer })
      const work = Effect.gen(function*() {
        for (let n = 0; n < count; n += 100) {
          for (let i = 0; i < 100; i++) client.send("tools/call", { name: "t" })
          do yield* base.settle
          while ([...client.peer.requests].length > 0)
        }
        expect(client.received.every(({ result }) => result.resultType === "input_required")).toBe(true)
        client.received.length = 0
      })
      expect(yield* growth(work)).toBeLessThan(100)
    }))
})

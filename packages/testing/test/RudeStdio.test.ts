/** What the rude program does over stdio, seen by a parent that reads bytes. */
import * as RudeServer from "@skein/testing/RudeServer"
import * as Script from "@skein/testing/Script"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { call, initialize, program } from "./kit.ts"

const start = (script: Script.Script) =>
  Effect.gen(function*() {
    const rude = yield* RudeServer.stdio(script)
    return { rude, child: yield* program(rude.command, rude.args) }
  })

const lines = (text: string) => text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))

describe("the rude program", () => {
  it.live("without faults it answers, counts, and ends with its stdin", () =>
    Effect.gen(function*() {
      const { child, rude } = yield* start({ faults: [] })
      child.say(initialize())
      child.say(call(1, "echo", { key: "é" }))
      yield* child.until("\"id\":1")
      child.close()
      const { code, text } = yield* child.ended
      expect(code).toBe(0)
      expect(lines(text)).toMatchObject([
        { id: 0, result: { protocolVersion: "2025-11-25" } },
        { id: 1, result: { content: [{ text: "é" }] } }
      ])
      expect(yield* rude.times("é")).toBe(1)
      expect(yield* rude.starts).toBe(1)
    }))

  it.live("Cut: it exits in the middle of a line, after exactly so many bytes", () =>
    Effect.gen(function*() {
      const { child, rude } = yield* start({ faults: [Script.rule("call", Script.cut(17))] })
      child.say(call(1, "echo", { key: "cut" }))
      const { code, text } = yield* child.ended
      expect([code, text.length]).toEqual([1, 17])
      expect(yield* rude.times("cut")).toBe(1)
    }))

  it.live("Restart: it exits with that code, and has done what was asked for, or not", () =>
    Effect.gen(function*() {
      for (const done of [true, false]) {
        const { child, rude } = yield* start({ faults: [Script.rule("call", { _tag: "Restart", done, code: 7 })] })
        child.say(call(1, "echo", { key: "r" }))
        expect(yield* child.ended).toEqual({ code: 7, text: "" })
        expect(yield* rude.times("r")).toBe(done ? 1 : 0)
      }
    }))

  it.live("Noise, Twice, Text and Drip", () =>
    Effect.gen(function*() {
      const text = { _tag: "Text", bom: true, newline: "\r\n", comments: false, pieces: false } as const
      const { child } = yield* start({
        faults: [
          Script.rule("call", { _tag: "Noise" }),
          Script.rule("call", { _tag: "Twice" }, { nth: 1 }),
          Script.rule("call", text, { nth: 2, times: 2 }),
          Script.rule("call", { _tag: "Drip" }, { nth: 2 })
        ]
      })
      for (const id of [1, 2, 3, 4]) child.say(call(id, "echo", { key: "k" }))
      const said = (yield* child.until("\"id\":4")).split("\n")
      expect(said.slice(0, 3)).toEqual(["This is not JSON.", "{\"jsonrpc\":\"2.0\",\"id\":", "null"])
      expect(said.filter((line) => line.includes("\"id\":2"))).toHaveLength(2)
      expect(said.find((line) => line.includes("\"id\":3"))).toMatch(/^\ufeff.*\r$/)
    }))

  it.live("Deaf: what comes after is never read", () =>
    Effect.gen(function*() {
      const { child, rude } = yield* start({ faults: [Script.rule("call", { _tag: "Deaf" }, { nth: 1 })] })
      child.say(`${JSON.stringify(call(1, "echo", { key: "a" }))}\n`)
      yield* child.until("\"id\":1")
      child.say(call(2, "echo", { key: "b" }))
      child.close()
      yield* child.until("")
      expect(yield* rude.times("b")).toBe(0)
    }))
})

/** The bytes that a faulty server writes over stdio, and its exit codes. */
import * as FaultyServer from "@skein/testing/FaultyServer"
import * as Scenario from "@skein/testing/Scenario"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { call, initialize, program } from "./rawClients.ts"

const start = (scenario: Scenario.Scenario) =>
  Effect.gen(function*() {
    const server = yield* FaultyServer.stdio(scenario)
    return { server, child: yield* program(server.command, server.args) }
  })

const lines = (text: string) => text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))

describe("the program", () => {
  it.live("answers, counts calls, and exits when its stdin ends", () =>
    Effect.gen(function*() {
      const { child, server } = yield* start({ faults: [] })
      child.send(initialize())
      child.send(call(1, "echo", { key: "é" }))
      yield* child.until("\"id\":1")
      child.close()
      const { code, text } = yield* child.ended
      expect(code).toBe(0)
      expect(lines(text)).toMatchObject([
        { id: 0, result: { protocolVersion: "2025-11-25" } },
        { id: 1, result: { content: [{ text: "é" }] } }
      ])
      expect(yield* server.callCount("é")).toBe(1)
      expect(yield* server.startCount).toBe(1)
    }))

  it.live("Cut · exits after exactly afterBytes bytes", () =>
    Effect.gen(function*() {
      const { child, server } = yield* start({ faults: [Scenario.rule("request", Scenario.cut(17))] })
      child.send(call(1, "echo", { key: "cut" }))
      const { code, text } = yield* child.ended
      expect([code, text.length]).toEqual([1, 17])
      expect(yield* server.callCount("cut")).toBe(1)
    }))

  it.live("Restart · exits with exitCode, after it has carried out the call or before", () =>
    Effect.gen(function*() {
      for (const handled of [true, false]) {
        const { child, server } = yield* start({
          faults: [Scenario.rule("request", { _tag: "Restart", handled, exitCode: 7 })]
        })
        child.send(call(1, "echo", { key: "r" }))
        expect(yield* child.ended).toEqual({ code: 7, text: "" })
        expect(yield* server.callCount("r")).toBe(handled ? 1 : 0)
      }
    }))

  it.live("InvalidJson, Duplicate, Formatting and Drip · change the lines", () =>
    Effect.gen(function*() {
      const text = { _tag: "Formatting", bom: true, newline: "\r\n", comments: false, multilineData: false } as const
      const { child } = yield* start({
        faults: [
          Scenario.rule("request", { _tag: "InvalidJson" }),
          Scenario.rule("request", { _tag: "Duplicate" }, { nth: 1 }),
          Scenario.rule("request", text, { nth: 2, times: 2 }),
          Scenario.rule("request", { _tag: "Drip" }, { nth: 2 })
        ]
      })
      for (const id of [1, 2, 3, 4]) child.send(call(id, "echo", { key: "k" }))
      const lines = (yield* child.until("\"id\":4")).split("\n")
      expect(lines.slice(0, 3)).toEqual(["This is not JSON.", "{\"jsonrpc\":\"2.0\",\"id\":", "null"])
      expect(lines.filter((line) => line.includes("\"id\":2"))).toHaveLength(2)
      expect(lines.find((line) => line.includes("\"id\":3"))).toMatch(/^\ufeff.*\r$/)
    }))

  it.live("StopReading · reads no later line", () =>
    Effect.gen(function*() {
      const { child, server } = yield* start({
        faults: [Scenario.rule("request", { _tag: "StopReading" }, { nth: 1 })]
      })
      child.send(`${JSON.stringify(call(1, "echo", { key: "a" }))}\n`)
      yield* child.until("\"id\":1")
      child.send(call(2, "echo", { key: "b" }))
      child.close()
      yield* child.until("")
      expect(yield* server.callCount("b")).toBe(0)
    }))
})

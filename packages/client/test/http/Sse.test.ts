/** The parser of event streams. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Reader } from "../../src/internal/http/sse.ts"
import { cpuTime } from "../support/cpuTime.ts"

type Event = readonly [type: string, data: string, id: string | undefined] | number

const read = (pieces: ReadonlyArray<string>, maxEvent = 1_000) => {
  const events: Array<Event> = []
  const reader = new Reader(
    { event: (...event) => void events.push(event), retry: (millis) => void events.push(millis) },
    maxEvent
  )
  const taken = pieces.every((piece) => reader.feed(Buffer.from(piece)) === undefined)
  return { events, taken }
}

describe("an event stream", () => {
  const cases: ReadonlyArray<readonly [string, string, ReadonlyArray<Event>]> = [
    ["data of one line", "data: a\n\n", [["message", "a", undefined]]],
    ["data of several lines", "data: a\ndata:b\ndata:  c\n\n", [["message", "a\nb\n c", undefined]]],
    ["a type and an id", "event: x\nid: 1\ndata: a\n\n", [["x", "a", "1"]]],
    ["an id without data", "id: 7\n\n", [["message", "", "7"]]],
    ["an empty id", "id\ndata: a\n\n", [["message", "a", ""]]],
    ["an id with a NUL, which is ignored", "id: a\0b\ndata: a\n\n", [["message", "a", undefined]]],
    ["retry", "retry: 0\n\nretry: 1500\n\nretry: 1.5\n\nretry: -1\n\nretry:\n\n", [0, 1500]],
    ["comments and unknown fields", ": hi\nfoo: bar\nbaz\n\n:\n\n", []],
    ["an event that does not end", "data: a\n\ndata: b\n", [["message", "a", undefined]]],
    ["a byte order mark", "\uFEFFdata: a\n\n", [["message", "a", undefined]]],
    ["CRLF", "data: a\r\nid: 1\r\n\r\ndata: b\r\n\r\n", [["message", "a", "1"], ["message", "b", undefined]]],
    ["CR", "data: a\rid: 1\r\rdata: b\r\r", [["message", "a", "1"], ["message", "b", undefined]]],
    ["all line endings", "data: a\r\ndata: b\rdata: c\n\r\n", [["message", "a\nb\nc", undefined]]]
  ]
  for (const [what, text, events] of cases) {
    it(`parses ${what}, in one piece and character by character`, () => {
      expect(read([text]).events).toEqual(events)
      expect(read([...text]).events).toEqual(events)
      expect(read([...text].flatMap((one) => [one, ""])).events).toEqual(events)
    })
  }

  it.effect.prop(
    "parses a stream equally however it is split",
    [
      Schema.Array(
        Schema.Literals(["data: a", "id: 1", "\n", "\r", "\r\n", "\n\n", ":c", "event: x", "retry: 5", "data"])
      ),
      Schema.Int
    ],
    ([parts, seed]) =>
      Effect.sync(() => {
        const text = parts.join("")
        const at = text.length === 0 ? 0 : Math.abs(seed) % (text.length + 1)
        expect(read([text.slice(0, at), text.slice(at)])).toEqual(read([text]))
      })
  )

  it("bounds the size of one event, without its comments", () => {
    const line = `data: ${"x".repeat(100)}\n`
    expect(read([line.repeat(9), "\n"]).taken).toBe(true)
    expect(read([line.repeat(10)]).taken).toBe(false)
    expect(read(["x".repeat(1_001)]).taken).toBe(false)
    expect(read([`${line}\n`.repeat(1_000)]).events.length).toBe(1_000)
    expect(read([`:${"x".repeat(500)}\n`.repeat(100), "data: a\n\n"])).toMatchObject({
      taken: true,
      events: [{ 1: "a" }]
    })
  })

  it("reads a long event in small pieces, and many short lines, in linear time", () => {
    const time = (size: number) => {
      const pieces = [
        "data: ",
        ...Array.from({ length: size }, () => "xy"),
        "\n".repeat(2),
        "data\r".repeat(size),
        "\r"
      ]
      const before = cpuTime()
      expect(read(pieces, 1e9).events.length).toBe(2)
      return cpuTime() - before
    }
    time(50_000)
    const [small, large] = [time(50_000), time(400_000)]
    expect(large).toBeLessThan(Math.max(small, 5) * 8 * 6)
  })
})

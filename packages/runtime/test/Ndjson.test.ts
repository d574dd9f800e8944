import { wellFormed } from "@skein/protocol/Json"
import { describe, expect, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Ndjson from "@skein/runtime/Ndjson"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"

const utf8 = new TextEncoder()

const read = (
  chunks: ReadonlyArray<Uint8Array | string>,
  options: { readonly maxLineBytes?: number; readonly noEnd?: boolean } = {}
) => {
  const messages: Array<JsonRpc.Inbound> = []
  let ends = 0
  const reader = new Ndjson.Reader({
    message: (message) => messages.push(message),
    end: () => ends++,
    maxLineBytes: options.maxLineBytes
  })
  for (const chunk of chunks) reader.push(typeof chunk === "string" ? utf8.encode(chunk) : chunk)
  if (options.noEnd !== true) {
    reader.end()
    expect(ends).toBe(1)
  }
  return messages
}

const note = (method: string): JsonRpc.Notification => ({ _tag: "Notification", method, params: undefined })
const line = (method: string) => JSON.stringify({ jsonrpc: "2.0", method })
const tooLong = (max: number, id?: JsonRpc.Id, answer = false, notification = false) => ({
  _tag: "Invalid",
  answer,
  notification,
  id,
  error: {
    code: -32600,
    message: expect.stringContaining(`the line exceeds maxLineBytes (${max}) of its reader: send less`)
  }
})

const longNote = (max: number) => tooLong(max, undefined, false, true)

/** Cuts bytes at the given places, as Buffers or as plain arrays. */
const cut = (bytes: Uint8Array, cuts: ReadonlyArray<number>, buffers: boolean): Array<Uint8Array> => {
  const places = [...new Set(cuts.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  const chunks: Array<Uint8Array> = []
  let from = 0
  for (const to of [...places, bytes.length]) {
    chunks.push(buffers ? Buffer.from(bytes.subarray(from, to)) : bytes.slice(from, to))
    from = to
  }
  return chunks
}

describe("Ndjson.Reader", () => {
  it("2026-07-28 · messages are delimited by newlines", () => {
    expect(read([`${line("a")}\n${line("b")}\n`], { noEnd: true })).toEqual([note("a"), note("b")])
  })

  it("accepts CR LF, and skips blank lines and byte order marks", () => {
    expect(read([`\uFEFF${line("a")}\r\n\r\n  \t\n\n${line("b")}\r\n\uFEFF\n`])).toEqual([note("a"), note("b")])
  })

  it("delivers a last line without a line break at the end of the stream", () => {
    expect(read([`${line("a")}\n${line("b")}`])).toEqual([note("a"), note("b")])
    expect(read([`${line("a")}\n${line("b")}`], { noEnd: true })).toEqual([note("a")])
  })

  it("reports a parse error for a malformed line, and reads the next line", () => {
    const messages = read([`{"jsonrpc": nope\n\u0000\n${line("b")}\n`])
    expect(messages.map((m) => m._tag === "Invalid" ? m.error.code : m)).toEqual([-32700, -32700, note("b")])
  })

  it("reports an error for a line that nests too deep, and reads the next line", () => {
    const deep = 500_000
    const messages = read([`${"[".repeat(deep)}${"]".repeat(deep)}\n${"{\"a\":".repeat(deep)}\n${line("b")}\n`])
    expect(messages.map((message) => message._tag)).toEqual(["Batch", "Invalid", "Notification"])
  })

  it("joins a character that was split between two chunks", () => {
    const bytes = utf8.encode(`${line("é€😀")}\n`)
    for (let at = 0; at <= bytes.length; at++) {
      expect(read([bytes.slice(0, at), bytes.slice(at)])).toEqual([note("é€😀")])
    }
  })

  it("reads invalid UTF-8 as replacement characters", () => {
    const bytes = Buffer.from(line("a?b"))
    bytes[bytes.indexOf("?")] = 0xff
    expect(read([bytes, "\n"])).toEqual([note("a\uFFFDb")])
    expect(read([Uint8Array.from(bytes), "\n"])).toEqual([note("a\uFFFDb")])
  })

  it("reads a line of maxLineBytes, reports one error for a longer one, and reads the next line", () => {
    const text = line("abc")
    for (const chunks of [[`${text}\n${text}!\n${text}\n`], [...`${text}\n${text}!\n${text}\n`]]) {
      expect(read(chunks, { maxLineBytes: text.length })).toEqual([note("abc"), longNote(text.length), note("abc")])
    }
    expect(read([`${text}!`], { maxLineBytes: text.length })).toEqual([longNote(text.length)])
  })

  it("reads lines of 4 MiB by default", () => {
    expect(Ndjson.defaultMaxLineBytes).toBe(4 * 1024 * 1024)
    const pad = Ndjson.defaultMaxLineBytes - line("").length
    expect(read([line("x".repeat(pad)), "\n"])).toEqual([note("x".repeat(pad))])
    expect(read([line("x".repeat(pad + 1)), "\n"])).toEqual([longNote(Ndjson.defaultMaxLineBytes)])
  })

  it("skips a line over the limit in bounded memory", () => {
    const messages: Array<JsonRpc.Inbound> = []
    const reader = new Ndjson.Reader({ message: (message) => messages.push(message), maxLineBytes: 1024 * 1024 })
    const chunk = Buffer.alloc(64 * 1024, "x")
    reader.push(Buffer.from("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"a\":\""))
    const before = process.memoryUsage()
    for (let i = 0; i < 4096; i++) reader.push(chunk)
    const after = process.memoryUsage()
    expect(after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed).toBeLessThan(32 * 1024 * 1024)
    reader.push(Buffer.from(`"},"id":7}\n${line("b")}\n`))
    expect(messages).toEqual([tooLong(1024 * 1024, 7), note("b")])
  })

  it("stores a line that arrives byte by byte in twice its size at most", () => {
    const messages: Array<JsonRpc.Inbound> = []
    const reader = new Ndjson.Reader({ message: (message) => messages.push(message) })
    const byte = Uint8Array.of(120)
    reader.push(utf8.encode("{\"jsonrpc\":\"2.0\",\"method\":\""))
    const before = process.memoryUsage()
    for (let i = 0; i < 1024 * 1024; i++) reader.push(byte)
    const after = process.memoryUsage()
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(8 * 1024 * 1024)
    reader.push(utf8.encode("\"}\n"))
    expect(messages).toEqual([note("x".repeat(1024 * 1024))])
  })

  it("reports the id of a skipped line, wherever it is in the line", () => {
    const big = "y\\\"\\\\".repeat(50)
    const cases: ReadonlyArray<readonly [string, JsonRpc.Id | undefined, boolean, boolean?]> = [
      [`{"jsonrpc":"2.0","id":12,"method":"m","params":{"x":"${big}"}}`, 12, false],
      [`{"method":"m","params":{"x":"${big}","id":"no"},"jsonrpc":"2.0","id":"last \\u0041"}`, "last A", false],
      [
        `{ "jsonrpc" : "2.0" , "id" : "a\\"b" , "result" : [ { "id" : 5, "method": "n", "x":"${big}" } ] }`,
        "a\"b",
        true
      ],
      [`{"result":{"x":"${big}"},"jsonrpc":"2.0","id":3}`, 3, true],
      [`{"error":{"code":1,"message":"${big}"},"id":null,"jsonrpc":"2.0"}`, undefined, true],
      [`{"id":1.5,"jsonrpc":"2.0","result":{"x":"${big}"}}`, undefined, true],
      [`{"id":"${big.repeat(3)}","jsonrpc":"2.0","method":"m"}`, undefined, false],
      [`[{"id":1,"jsonrpc":"2.0","method":"${big}"}]`, undefined, false],
      [`{"jsonrpc":"2.0","method":"m","params":{"x":"${big}","id":5}}`, undefined, false, true],
      [`{"jsonrpc":"2.0","id":null,"method":"m","params":{"x":"${big}"}}`, undefined, false, false],
      [`"id":1,"method":"${big}"`, undefined, false],
      [`}}}}]]]],"id":1,{{{{"id":2${big}`, undefined, false]
    ]
    for (const [text, id, answer, notification] of cases) {
      expect(read([`${text}\n`], { maxLineBytes: 100 })).toEqual([tooLong(100, id, answer, notification)])
      expect(read([...`${text}\n`], { maxLineBytes: 100 })).toEqual([tooLong(100, id, answer, notification)])
    }
  })

  it("never nests callbacks", () => {
    let depth = 0
    const seen: Array<string> = []
    const reader = new Ndjson.Reader({
      message: (message) => {
        expect(depth++).toBe(0)
        const { method } = message as JsonRpc.Notification
        seen.push(method)
        if (method.length < 3) reader.push(utf8.encode(`${line(`${method}+`)}\n`))
        depth--
      }
    })
    reader.push(utf8.encode(`${line("a")}\n${line("b")}\n`))
    expect(seen).toEqual(["a", "b", "a+", "b+", "a++", "b++"])
  })

  it("continues after a callback that throws", () => {
    const seen: Array<string> = []
    const reader = new Ndjson.Reader({
      message: (message) => {
        seen.push((message as JsonRpc.Notification).method)
        if (seen.length === 1) throw new Error("no")
      }
    })
    expect(() => reader.push(utf8.encode(`${line("a")}\n${line("b")}\n`))).toThrow("no")
    reader.push(utf8.encode(`${line("c")}\n`))
    expect(seen).toEqual(["a", "b", "c"])
  })

  it("delivers nothing after stop, even if a callback calls it", () => {
    let seen = 0
    const reader = new Ndjson.Reader({
      message: () => {
        seen++
        reader.stop()
      },
      end: () => seen++
    })
    reader.push(utf8.encode(`${line("a")}\n${line("b")}\n`))
    reader.push(utf8.encode(`${line("c")}\n`))
    reader.end()
    expect(seen).toBe(1)
  })

  const Lines = Schema.Array(Schema.Union([
    Schema.String,
    Schema.Struct({ jsonrpc: Schema.Literal("2.0"), id: Schema.Int, method: Schema.String })
  ]))

  it.prop(
    "reads the same messages in the same order for any chunk boundaries",
    [Lines, Schema.Array(Schema.Natural), Schema.Boolean, Schema.Literals([8, 40, 4096])],
    ([lines, cuts, buffers, maxLineBytes]) => {
      const text = lines.map((value) => typeof value === "string" ? value : JSON.stringify(value)).join("\n")
      const bytes = utf8.encode(text)
      const whole = read([bytes], { maxLineBytes })
      const chunks = cut(bytes, cuts, buffers)
      expect(read(chunks, { maxLineBytes })).toEqual(whole)
    }
  )

  it.prop(
    "reads back any written values",
    [
      Schema.Array(Schema.Struct({ method: Schema.String, key: Schema.String, value: Schema.Json })),
      Schema.Array(Schema.Natural)
    ],
    ([values, cuts]) => {
      const messages = values.map(({ key, method, value }, id): JsonRpc.Request => ({
        _tag: "Request",
        id,
        method: wellFormed(method),
        params: JSON.parse(wellFormed(JSON.stringify({ [`k${key}`]: value })))
      }))
      let text = ""
      const writer = new Ndjson.Writer({
        write: (more) => {
          text += more
          return true
        }
      })
      for (const message of messages) writer.send(message)
      writer.flush()
      expect(text.split("\n").length).toBe(messages.length + 1)
      expect(read(cut(utf8.encode(text), cuts, true))).toEqual(messages)
    }
  )
})

describe("Ndjson.Writer", () => {
  const setup = (options: { readonly maxUnsentChars?: number } = {}) => {
    const writes: Array<string> = []
    const state = { taking: true, waiting: 0, overflows: 0 }
    const writer = new Ndjson.Writer({
      write: (text) => {
        writes.push(text)
        return state.taking
      },
      waiting: () => state.waiting,
      overflow: () => {
        state.overflows++
        writer.stop()
      },
      ...options
    })
    return { writes, state, writer }
  }

  it("writes the messages of one tick together", async () => {
    const { writer, writes } = setup()
    expect(writer.send(note("a"))).toBe(true)
    expect(writer.send(note("b"))).toBe(true)
    expect(writes).toEqual([])
    await Promise.resolve()
    expect(writes).toEqual([`${line("a")}\n${line("b")}\n`])
    writer.send(note("c"))
    await Promise.resolve()
    expect(writes.length).toBe(2)
  })

  it("writes the first messages of a turn immediately and the others together, with atTurnEnd", async () => {
    const writes: Array<string> = []
    const ends: Array<() => void> = []
    const writer = new Ndjson.Writer({
      write: (text) => writes.push(text) > 0,
      atTurnEnd: (callback) => ends.push(callback)
    })
    const send = async (method: string) => {
      writer.send(note(method))
      await Promise.resolve()
    }
    for (const method of ["a", "b", "c"]) await send(method)
    expect(writes).toEqual([line("a") + "\n"])
    expect(ends.length).toBe(1)
    ends[0]!()
    expect(writes).toEqual([`${line("a")}\n`, `${line("b")}\n${line("c")}\n`])
    await send("d")
    expect(writes.length).toBe(3)
    expect(ends.length).toBe(2)
  })

  it("writes as soon as 2 Ki characters are collected", () => {
    const { writer, writes } = setup()
    writer.send(note("x".repeat(70_000)))
    expect(writes.length).toBe(1)
  })

  it("returns false while the peer is slow, collects meanwhile, and is drained when it takes more", async () => {
    const { state, writer, writes } = setup()
    state.taking = false
    writer.send(note("a"))
    writer.flush()
    expect(writer.congested).toBe(true)
    expect(writer.send(note("b"))).toBe(false)
    expect(writer.send(note("c"))).toBe(false)
    const waiting = Effect.runFork(writer.drained)
    const interrupted = Effect.runFork(writer.drained)
    await Effect.runPromise(Fiber.interrupt(interrupted))
    expect(writes.length).toBe(1)
    writer.drain()
    expect(writes[1]).toBe(`${line("b")}\n${line("c")}\n`)
    await Effect.runPromise(Effect.yieldNow)
    expect(waiting.pollUnsafe()).toBeUndefined()
    state.taking = true
    writer.drain()
    await Effect.runPromise(Fiber.join(waiting))
    Effect.runSync(writer.drained)
  })

  it("accepts messages up to the bound, and calls overflow once", () => {
    const { state, writer } = setup({ maxUnsentChars: 1000 })
    state.taking = false
    state.waiting = 900
    writer.send(note("a"))
    writer.flush()
    expect(writer.send(note("x".repeat(5000)))).toBe(false)
    expect(state.overflows).toBe(0)
    expect(writer.send(note("b"))).toBe(true)
    expect(state.overflows).toBe(1)
    expect(writer.send(note("c"))).toBe(true)
    expect(state.overflows).toBe(1)
  })

  it.each([1, 1023, 1024, 1025, 3000])("%i messages that waited leave in one write, in order", (count) => {
    const { state, writer, writes } = setup()
    state.taking = false
    writer.send(note("first"))
    writer.flush()
    const names = Array.from({ length: count }, (_, at) => `m${at}`)
    for (const name of names) expect(writer.send(note(name))).toBe(false)
    writer.drain()
    expect(writes.length).toBe(2)
    for (const name of names) writer.send(note(name))
    expect([writes[1], writer.stop()]).toEqual([1, 2].map(() => names.map((name) => `${line(name)}\n`).join("")))
  })

  it("stores waiting messages in little more memory than their characters", () => {
    const { state, writer } = setup()
    state.taking = false
    writer.send(note("first"))
    writer.flush()
    const used = () => {
      globalThis.gc!()
      return process.memoryUsage().heapUsed
    }
    const before = used()
    let characters = 0
    for (let at = 0; at < 200_000; at++) {
      writer.send(JsonRpc.success(at, {}))
      characters += `{"jsonrpc":"2.0","id":${at},"result":{}}\n`.length
    }
    expect(used() - before).toBeLessThan(1.5 * characters)
    expect(writer.stop().length).toBe(characters)
  })

  it("has a bound of 64 Mi characters by default", () => {
    expect(Ndjson.defaultMaxUnsentChars).toBe(64 * 1024 * 1024)
    expect(setup().writer.maxUnsentChars).toBe(64 * 1024 * 1024)
  })

  it("throws for a message without JSON form, and sends nothing of it", () => {
    const { writer, writes } = setup()
    expect(() => writer.send({ _tag: "Notification", method: "m", params: { x: 1n } })).toThrow(TypeError)
    writer.send(note("a"))
    writer.flush()
    expect(writes).toEqual([`${line("a")}\n`])
  })

  it("is drained on stop, and returns the unwritten text", async () => {
    const { state, writer } = setup()
    state.taking = false
    writer.send(note("a"))
    writer.flush()
    writer.send(note("b"))
    const waiting = Effect.runFork(writer.drained)
    expect(writer.stop()).toBe(`${line("b")}\n`)
    await Effect.runPromise(Fiber.join(waiting))
    expect(writer.send(note("c"))).toBe(true)
  })
})

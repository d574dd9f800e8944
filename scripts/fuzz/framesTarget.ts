/** Reads hostile event streams and lines, whole and in chunks of any size, and compares the results. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Ndjson from "@skein/runtime/Ndjson"
import * as Effect from "effect/Effect"
import * as Sse from "../../packages/client/src/internal/http/sse.ts"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"
import * as Hostile from "./hostileJson.ts"
import * as Samples from "./samples.ts"
import type { Target } from "./target.ts"

const message = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"é\":\"€😀\"}}"

const pieces: ReadonlyArray<string | Uint8Array> = [
  "data: ",
  "data:",
  "data",
  "data: a\n",
  "data: a\r\n\r\n",
  `data: ${message}\n\n`,
  "id: ",
  "id\n",
  "id: 7\n",
  "id: \u0000\n",
  `id: ${"9".repeat(6_000)}\n`,
  "event: endpoint\n",
  "event:\n",
  "event: \u001b[2J\n",
  "retry: 0\n",
  "retry: 1000000000000000\n",
  `retry: ${"9".repeat(400)}\n`,
  "retry: -1\n",
  "retry: 1.5\n",
  ": comment\n",
  ":\r",
  "\u0000",
  "\n",
  "\r",
  "\r\n",
  "\n\n",
  "\ufeff",
  "é€😀",
  "\u2028",
  " ",
  ":",
  message,
  "{}",
  "[]",
  "x".repeat(300),
  // Bytes that are not UTF-8: a lone start, a lone continuation, a surrogate, a longer form of "/", and a start of 5 bytes.
  new Uint8Array([0xe2, 0x82]),
  new Uint8Array([0xf0, 0x9f, 0x98]),
  new Uint8Array([0x80]),
  new Uint8Array([0xed, 0xa0, 0x80]),
  new Uint8Array([0xc0, 0xaf]),
  new Uint8Array([0xf8, 0xff, 0xfe])
]

/** The bytes of a hostile stream. */
export const hostileBytes = (random: Random.Random): Buffer => {
  const parts: Array<Buffer> = []
  for (let count = random.below(14); count > 0; count--) {
    const piece = random.chance(0.05)
      ? Hostile.garble(random, Hostile.stringify(Hostile.bomb(random)).slice(0, 20_000), Hostile.jsonPieces)
      : random.pick(pieces)
    parts.push(typeof piece === "string" ? Buffer.from(piece) : Buffer.from(piece))
  }
  const bytes = Buffer.concat(parts)
  for (let count = random.below(3); count > 0 && bytes.length > 0; count--) {
    bytes[random.below(bytes.length)] = random.below(256)
  }
  return bytes
}

/** Splits bytes at random positions, or at each byte. */
export const split = (random: Random.Random, bytes: Buffer): ReadonlyArray<Buffer> => {
  const most = random.pick([1, 1, 2, 5, 40, 1_000])
  const chunks: Array<Buffer> = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + random.below(most)
    // Copied, as a socket would deliver them.
    chunks.push(Buffer.from(bytes.subarray(at, end)))
    at = end
    if (random.chance(0.02)) chunks.push(Buffer.alloc(0))
  }
  return chunks
}

const readEvents = (chunks: ReadonlyArray<Uint8Array>, maxEventBytes: number): string => {
  const seen: Array<unknown> = []
  const reader = new Sse.Reader({
    event: (type, data, id) => seen.push([type, data, id]),
    retry: (millis) => seen.push(["retry", String(millis)])
  }, maxEventBytes)
  const isRead = chunks.every((chunk) => reader.feed(chunk) === undefined)
  return JSON.stringify([isRead, isRead ? seen : undefined])
}

/** The events of a stream by the algorithm of WHATWG HTML, except that an event may consist of its id or type alone. */
const expectedEvents = (bytes: Buffer): string => {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes).replace(/^\ufeff/, "")
  const lines = text.split(/\r\n|\n|\r/).slice(0, -1)
  const seen: Array<unknown> = []
  let data: Array<string> = []
  let type = ""
  let id: string | undefined
  for (const line of lines) {
    if (line === "") {
      if (data.length > 0 || type !== "" || id !== undefined) {
        seen.push([type === "" ? "message" : type, data.join("\n"), id])
      }
      data = []
      type = ""
      id = undefined
      continue
    }
    const [, name = "", value = ""] = /^([^:]*)(?:: ?([^]*))?$/.exec(line)!
    if (name === "data") data.push(value)
    if (name === "event") type = value
    if (name === "id" && !value.includes("\0")) id = value
    if (name === "retry" && /^[0-9]+$/.test(value)) seen.push(["retry", String(Number(value))])
  }
  return JSON.stringify([true, seen])
}

const readLines = (chunks: ReadonlyArray<Uint8Array>, maxLineBytes: number): string => {
  const seen: Array<unknown> = []
  const reader = new Ndjson.Reader({ message: (message, size) => seen.push([message, size]), maxLineBytes })
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  return seen.map((each) => {
    const [parsed] = each as [JsonRpc.Inbound]
    return parsed._tag === "Invalid" ? `Invalid ${parsed.error.message}` : Hostile.stringify(each)
  }).join("\n")
}

const shown = (text: string): string => text.length > 600 ? `${text.slice(0, 600)}…` : text

export const framesTarget: Target = {
  name: "frames",
  run: (random, report) =>
    Effect.sync(() => {
      for (let count = 0; count < 20; count++) {
        const bytes = hostileBytes(random)
        const chunks = split(random, bytes)
        try {
          const whole = readEvents([bytes], 1_000_000)
          const expected = expectedEvents(bytes)
          if (whole !== expected) {
            report(`other events: ${shown(whole)}\nexpected ${shown(expected)}\n${bytes.toString("base64")}`)
          }
          const parts = readEvents(chunks, 1_000_000)
          if (parts !== whole) {
            report(`other events in chunks: ${shown(parts)}\nwhole ${shown(whole)}\n${bytes.toString("base64")}`)
          }
          readEvents(chunks, random.below(200))
          const lines = readLines([bytes], 1_000_000)
          if (/^Invalid (?!.)/m.test(lines) || Samples.isUnprintable(lines.replace(/^(?!Invalid).*$/gm, ""))) {
            report(`unprintable characters in an error: ${shown(lines)}`)
          }
          const other = readLines(chunks, 1_000_000)
          if (other !== lines) report(`other lines in chunks: ${shown(other)}\nwhole ${shown(lines)}`)
          const short = random.below(200)
          if (readLines(chunks, short) !== readLines([bytes], short)) {
            report(`other long lines: ${bytes.toString("base64")}`)
          }
        } catch (error) {
          report(`threw ${String((error as Error).stack)}\n${bytes.toString("base64").slice(0, 2_000)}`)
        }
      }
    })
}

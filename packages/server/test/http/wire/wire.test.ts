/** The bytes of HTTP on each adapter, behind the HTTP servers that users run it on. */
import { describe, expect, it } from "@effect/vitest"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Server } from "../adapters.ts"
import * as kit from "../kit.ts"
import { type Answers, type Case, endpointSections, type Section, sections } from "./cases.ts"
import { type Decisions, decisions, legacyDecisions } from "./hostDecisions.ts"
import { hosts } from "./hosts.ts"
import { bare, legacyMessages, next, type Route, streamableHttp } from "./requests.ts"

/** A server that counts the calls that reach its tool. */
const counting = () => {
  const calls: Array<string> = []
  const server: Server = McpServer.layer(
    { name: "wire", version: "1" },
    Tool.layer(Tool.make("echo", { input: { text: Schema.String } }), ({ text }) =>
      Effect.sync(() => {
        calls.push(text)
        return text
      }))
  )
  return { calls, server }
}

/** The length of a body in chunks, or -1 if it is not complete. */
const chunkedLength = (bytes: string): number => {
  for (let at = 0;;) {
    const [line, size] = /^([\da-f]+)\r\n/i.exec(bytes.slice(at)) ?? []
    if (line === undefined) return -1
    const end = at + line.length + Number.parseInt(size!, 16)
    if (bytes.slice(end, end + 2) !== "\r\n") return -1
    at = end + 2
    if (size === "0") return at
  }
}

/**
 * The statuses of the answers, as a client that trusts their lengths reads them (RFC 9112, 6.3); 0 stands for bytes that
 * are not an answer.
 */
const statusesIn = (text: string, isHead: boolean): Answers => {
  const statuses: Array<number> = []
  let bytes = Buffer.from(text).toString("latin1")
  while (bytes !== "") {
    const head = /^HTTP\/1\.1 (\d{3}) .*\r\n(?:[\w-]+: ?.*\r\n)*\r\n/.exec(bytes)
    if (head === null) return [...statuses, 0]
    const status = Number(head[1])
    const hasBody = status >= 200 && status !== 204 && !(isHead && statuses.length === 0)
    statuses.push(status)
    bytes = bytes.slice(head[0].length)
    if (!hasBody) continue
    const length = /^content-length: (\d+)\r$/im.exec(head[0])?.[1]
    const isChunked = /^transfer-encoding: chunked\r$/im.test(head[0])
    // Without a length, the body ends with the connection.
    const end = length !== undefined ? Number(length) : isChunked ? chunkedLength(bytes) : bytes.length
    if (end < 0 || end > bytes.length || (length !== undefined && isChunked)) return [...statuses, 0]
    bytes = bytes.slice(end)
  }
  return statuses
}

/** Sends a case and the next request on one connection, and reads until the server closes it. */
const exchange = (at: { readonly port: number }, route: Route, { bytes, next: mode }: Case) =>
  Effect.scoped(Effect.gen(function*() {
    const raw = yield* kit.raw(at)
    raw.write(Buffer.from(mode === undefined ? bytes + next(route) : bytes, "latin1"))
    if (mode === "end") raw.end()
    if (mode === "later") {
      yield* raw.until("HTTP/1.1")
      // A server that has closed the connection does not read it.
      raw.write(next(route))
    }
    return (yield* raw.closed).text
  }))

const row = (what: string, answers: Answers, calls: number, isNamed: boolean): string =>
  `${what} → ${answers.join(", ")} · ${calls} calls${isNamed ? "" : " · without its header"}`

/** Compares all cases of a section in one assertion, which shows every difference at once. */
const run = (
  decided: Decisions,
  at: { readonly port: number },
  route: Route,
  { cases }: Section,
  calls: Array<string>
) =>
  Effect.gen(function*() {
    const actual: Array<string> = []
    const expected: Array<string> = []
    for (const one of cases) {
      const decision = decided[one.what]
      const answers = (decision?.answers ?? one.answers).map((status) => status === 200 ? route.ok : status)
      const reached = decision?.calls ?? answers.filter((status) => status === route.ok).length
      calls.length = 0
      const text = yield* exchange(at, route, one)
      const header = decision === undefined ? one.header : decision.header
      const isNamed = header === undefined || header.test(text)
      actual.push(row(one.what, statusesIn(text, one.what === "HEAD"), calls.length, isNamed))
      expected.push(row(one.what, answers, reached, true))
    }
    expect(actual).toEqual(expected)
  })

describe("the decisions of HTTP servers", () => {
  it("name cases of the table", () => {
    const known = new Set([...sections(streamableHttp), ...endpointSections(streamableHttp)]
      .flatMap(({ cases }) => cases.map(({ what }) => what)))
    const named = Object.values(decisions).flatMap((one) => Object.keys(one))
    expect(named.filter((what) => !known.has(what))).toEqual([])
  })
})

describe.each(hosts)("$name", ({ name, serve }) => {
  it.live.each([...sections(streamableHttp), ...endpointSections(streamableHttp)])(
    "$clause",
    (section) =>
      Effect.scoped(Effect.gen(function*() {
        const { calls, server } = counting()
        const at = yield* serve(server, { legacySse: LegacySse.make() })
        yield* run(decisions[name], at, streamableHttp, section, calls)
      }))
  )

  it.live("HTTP+SSE · the messages pass the same table", () =>
    Effect.scoped(Effect.gen(function*() {
      const { calls, server } = counting()
      const at = yield* serve(server, { legacySse: LegacySse.make() })
      const stream = yield* kit.raw(at)
      stream.write(bare("GET /sse HTTP/1.1"))
      const [, id] = /sessionId=(\w+)/.exec(yield* stream.until("sessionId="))!
      const route = legacyMessages(id!)
      for (const section of sections(route)) yield* run(legacyDecisions[name], at, route, section, calls)
    })))
})

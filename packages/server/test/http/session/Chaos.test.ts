/**
 * Clients that connect and disconnect at random. Each message of a stream reaches its client once and in order, and
 * nothing is left behind. The sequence is drawn from a seed, which a failure names.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import type { Json } from "../kit.ts"
import { FakeAnswer, FakeRequest } from "./fake.ts"
import { call, Control, initialize, layer, notification, until } from "./kit.ts"
import { internals } from "../../../src/internal/catalog/catalogState.ts"

/** Numbers from 0 to below 1 (mulberry32). */
const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

type Say = (method: string, headers: { readonly [name: string]: string }, body?: unknown) => FakeAnswer

/** The client's state of one stream: its connections, and how far it has read. */
class Reader {
  readonly #say: Say
  readonly #session: { readonly [name: string]: string }
  #answer: FakeAnswer
  readonly messages: Array<Json> = []
  #lastId = ""
  cancelled = false
  refused = 0

  constructor(say: Say, session: { readonly [name: string]: string }, answer: FakeAnswer) {
    this.#say = say
    this.#session = session
    this.#answer = answer
  }

  /** Reads the messages that arrived on the connection. */
  read(): void {
    for (const block of this.#answer.text.split("\n\n")) {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, "m").exec(block)?.[1]
      const id = field("id")
      const data = field("data")
      if (id !== undefined) this.#lastId = id
      if (data !== undefined && data !== "") this.messages.push(JSON.parse(data))
    }
    this.#answer.text = ""
  }

  get done(): boolean {
    return this.messages.some(({ id, result }) => id !== undefined && result !== undefined)
  }

  /** Disconnects after reading only so far: the rest of the messages is lost with the connection. */
  leave(reads: boolean): void {
    if (reads) this.read()
    else this.#answer.text = ""
    this.#answer.leave()
  }

  back(): void {
    if (this.done || this.#lastId === "") return
    this.#answer = this.#say("GET", { ...this.#session, "last-event-id": this.#lastId })
    if (this.#answer.status !== 200 && !(this.cancelled && this.#answer.status === 204)) this.refused++
  }
}

const play = (seed: number) => {
  const control = new Control()
  return Effect.gen(function*() {
    const endpoint = yield* Http.make()
    let open = 0
    const { [internals]: core } = yield* McpServer.McpServer
    core.catalog[internals].middleware.observer = {
      sessionOpened: () => {},
      sessionClosed: () => {},
      streamOpened: () => void open++,
      streamClosed: () => void open--,
      refused: () => {},
      refusing: () => {}
    }
    const next = random(seed)
    const below = (n: number): number => Math.floor(next() * n)
    const say: Say = (method, headers, body) => {
      const answer = new FakeAnswer()
      endpoint.handle(new FakeRequest(method, headers, body), answer)
      return answer
    }
    const sessions = Array.from({ length: 3 }, () => {
      const id = say("POST", {}, initialize("2025-11-25")).headers["mcp-session-id"]!
      const session = { "mcp-session-id": id }
      say("POST", session, notification("notifications/initialized"))
      return session
    })
    const calls: Array<
      { session: { readonly [name: string]: string }; id: number; reader: Reader; gates: Array<string> }
    > = []
    const acts: ReadonlyArray<() => void> = [
      () => {
        const session = sessions[below(sessions.length)]!
        const id = calls.length
        const reader = new Reader(say, session, say("POST", session, call(id, "steps", { key: `${id}` })))
        // A client with a priming event can reconnect.
        reader.read()
        calls.push({ session, id, reader, gates: [`${id} 1`, `${id} 2`] })
      },
      () => void say("GET", sessions[below(sessions.length)]!).leave(),
      () =>
        void say("POST", sessions[below(sessions.length)]!, call(`a${next()}`, "announce", { times: 2, same: false })),
      ...Array.from({ length: 3 }, () => () => {
        const gate = calls[below(calls.length)]?.gates.shift()
        if (gate !== undefined) control.open(gate)
      }),
      ...Array.from({ length: 3 }, () => () => calls[below(calls.length)]?.reader.leave(next() < 0.5)),
      ...Array.from({ length: 3 }, () => () => calls[below(calls.length)]?.reader.back()),
      () => {
        if (next() > 0.3) return
        const one = calls[below(calls.length)]
        if (one === undefined || one.gates.length === 0) return
        one.reader.cancelled = true
        say("POST", one.session, notification("notifications/cancelled", { requestId: one.id }))
      }
    ]
    for (let turn = 0; turn < 200; turn++) {
      acts[below(acts.length)]!()
      if (next() < 0.3) yield* Effect.yieldNow
    }
    for (const { gates } of calls) for (const gate of gates) control.open(gate)
    yield* until(() => calls.every(({ id, reader }) => reader.cancelled || control.started.includes(`${id} 2`)))
    yield* Effect.yieldNow
    for (const { id, reader } of calls) {
      reader.read()
      if (!reader.done) reader.back()
      reader.read()
      const values = reader.messages.map((message) => message.params?.progress ?? message.result?.content[0].text)
      const whole = [1, 2, `${id} done`]
      const wanted = reader.cancelled ? whole.slice(0, values.length) : whole
      expect({ seed, id, values, refused: reader.refused }).toEqual({ seed, id, values: wanted, refused: 0 })
    }
    for (const session of sessions) expect(say("DELETE", session).status).toBe(204)
    yield* Effect.yieldNow
    const left = { seed, sessions: endpoint.sessions, streams: endpoint.streams, open }
    expect(left).toEqual({ seed, sessions: 0, streams: 0, open: 0 })
  }).pipe(Effect.provide(layer(control)))
}

describe("at random", () => {
  it.effect(
    "delivers each message once and in order, and releases everything",
    () => Effect.forEach(Array.from({ length: 100 }, (_, n) => n + 1), play, { discard: true }),
    60_000
  )
})

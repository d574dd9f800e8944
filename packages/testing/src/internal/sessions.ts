/**
 * What a rude server remembers of its clients in the session era: their streams, and what it has asked them.
 */
import * as Effect from "effect/Effect"
import type { Json } from "./garble.ts"
import type { Event, Sse } from "./sse.ts"

/** All that was ever said on one stream, and the response that it is said on now, if there is one. */
export class Log {
  readonly name: string
  readonly #events: Array<Event> = []
  readonly #withIds: boolean
  #out: Sse | undefined = undefined
  #over = false

  constructor(name: string, withIds: boolean) {
    this.name = name
    this.#withIds = withIds
  }

  /** Whether there will be no more. */
  get over(): boolean {
    return this.#over
  }

  add(text: string, event?: string): void {
    const id = this.#withIds ? `${this.name}_${this.#events.length}` : undefined
    const said = { id, text, event }
    if (this.#withIds) this.#events.push(said)
    this.#out?.send(said)
  }

  /** Says the rest on that response, from the event after this one. */
  attach(out: Sse, after?: number): void {
    this.#out = out
    if (after !== undefined) { for (const event of this.#events.slice(after + 1)) out.send(event) }
    if (this.#over) out.end()
  }

  end(): void {
    this.#over = true
    this.#out?.end()
  }
}

/** See the module's text. */
export class Session {
  readonly id: string
  /** The stream that belongs to no request. */
  readonly general: Log
  readonly #resumable: boolean
  readonly #streams = new Map<string, Log>()
  readonly #asked = new Map<unknown, (answer: Effect.Effect<Json>) => void>()
  #questions = 0

  constructor(id: string, resumable: boolean) {
    this.id = id
    this.#resumable = resumable
    this.general = this.stream()
  }

  stream(): Log {
    const log = new Log(`s${this.#streams.size}`, this.#resumable)
    this.#streams.set(log.name, log)
    return log
  }

  /** The stream that an event belongs to, and the event's place there. */
  find(eventId: string): readonly [Log, number] | undefined {
    const [name = "", at = ""] = eventId.split("_")
    const log = this.#streams.get(name)
    return log === undefined || !/^\d+$/.test(at) ? undefined : [log, Number(at)]
  }

  ask(log: Log, method: string, params: Json): Effect.Effect<Json> {
    return Effect.callback<Json>((resume) => {
      const id = `rude-${this.#questions++}`
      this.#asked.set(id, resume)
      log.add(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
      return Effect.sync(() => void this.#asked.delete(id))
    })
  }

  /** An answer of the client's. */
  settle(answer: Json): void {
    const resume = this.#asked.get(answer["id"])
    this.#asked.delete(answer["id"])
    resume?.(Effect.succeed(answer))
  }
}

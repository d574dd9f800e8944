/**
 * A stream of events on a response, spelled as the faults want it.
 */
import type { ServerResponse } from "node:http"
import type { Faults } from "./rules.ts"

/** One event. A stream that cannot be taken up again has no ids. */
export interface Event {
  readonly id: string | undefined
  /** Its data; empty for one that only tells its id. */
  readonly text: string
  readonly event?: string | undefined
}

const indented = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 1)
  } catch {
    return text
  }
}

/** See the module's text. */
export class Sse {
  readonly #response: ServerResponse
  readonly #faults: Faults
  readonly #held: Array<string> = []
  readonly #newline: string
  #begun = false
  #muted = false

  constructor(response: ServerResponse, faults: Faults) {
    this.#response = response
    this.#faults = faults
    this.#newline = faults.get("Text")?.newline ?? "\n"
    this.#muted = faults.get("Silence")?.after === "head"
    response.flushHeaders()
    const retry = faults.get("Retry")?.ms
    if (retry !== undefined) this.#write(`retry: ${retry}${this.#newline}${this.#newline}`)
  }

  get open(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded
  }

  send(event: Event): void {
    const frame = this.#frame(event)
    const frames = this.#faults.has("Twice") ? frame + frame : frame
    if (this.#faults.has("Backwards")) {
      this.#held.unshift(frames)
      return
    }
    this.#write(frames)
    this.#after()
  }

  /** What is about to be said is all; the response ends, unless it is to be silent. */
  end(): void {
    for (const frame of this.#held.splice(0)) this.#write(frame)
    if (!this.#muted && this.open) this.#response.end()
  }

  /** What happens once the first event is out. */
  #after(): void {
    const poll = this.#faults.get("Poll")
    if (poll !== undefined && this.open) {
      if (poll.retry !== undefined) this.#write(`retry: ${poll.retry}${this.#newline}${this.#newline}`)
      this.#response.end()
    }
    if (this.#faults.get("Silence")?.after === "event") this.#muted = true
  }

  #write(text: string): void {
    if (this.#muted || !this.open) return
    const bom = !this.#begun && this.#faults.get("Text")?.bom === true ? "\ufeff" : ""
    this.#begun = true
    this.#response.write(bom + text)
  }

  #frame({ event, id, text }: Event): string {
    const spelling = this.#faults.get("Text")
    const lines = (spelling?.pieces === true ? indented(text) : text).split(/\r\n|[\r\n]/)
    const data = lines.map((line) => spelling?.pieces === true ? `data:${line}` : `data: ${line}`)
    return [
      ...(spelling?.comments === true ? [":", ": a comment", "unknown: field", "nofield"] : []),
      ...(event === undefined ? [] : [`event: ${event}`]),
      ...(id === undefined ? [] : [`id: ${id}`]),
      ...data,
      "",
      ""
    ].join(this.#newline)
  }
}

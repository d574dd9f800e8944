/**
 * An HTTP response that is a stream of server-sent events, written with the faults of its exchange.
 */
import type { ServerResponse } from "node:http"
import type { Faults } from "./faults.ts"

/** One event. */
export interface Event {
  /** Its id; `undefined` if the stream cannot be resumed. */
  readonly id: string | undefined
  /** Its data; empty for an event that carries an id only. */
  readonly text: string
  readonly event?: string | undefined
}

const onSeveralLines = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 1)
  } catch {
    return text
  }
}

/** Writes events to a response and applies the faults of the exchange. */
export class SseResponse {
  readonly #response: ServerResponse
  readonly #faults: Faults
  readonly #reversed: Array<string> = []
  readonly #newline: string
  #hasStarted = false
  #isStalled = false

  constructor(response: ServerResponse, faults: Faults) {
    this.#response = response
    this.#faults = faults
    this.#newline = faults.get("Formatting")?.newline ?? "\n"
    this.#isStalled = faults.get("Stall")?.after === "head"
    response.flushHeaders()
    const retry = faults.get("SseRetry")?.ms
    if (retry !== undefined) this.#write(`retry: ${retry}${this.#newline}${this.#newline}`)
  }

  get isOpen(): boolean {
    return !this.#response.destroyed && !this.#response.writableEnded
  }

  send(event: Event): void {
    const frame = this.#frame(event)
    const frames = this.#faults.has("Duplicate") ? frame + frame : frame
    if (this.#faults.has("Reverse")) {
      this.#reversed.unshift(frames)
      return
    }
    this.#write(frames)
    this.#afterFirstEvent()
  }

  /** Ends the response, unless it is stalled. */
  end(): void {
    for (const frame of this.#reversed.splice(0)) this.#write(frame)
    if (!this.#isStalled && this.isOpen) this.#response.end()
  }

  /** Applies the faults that follow the first event. */
  #afterFirstEvent(): void {
    const close = this.#faults.get("CloseStream")
    if (close !== undefined && this.isOpen) {
      if (close.retry !== undefined) this.#write(`retry: ${close.retry}${this.#newline}${this.#newline}`)
      this.#response.end()
    }
    if (this.#faults.get("Stall")?.after === "event") this.#isStalled = true
  }

  #write(text: string): void {
    if (this.#isStalled || !this.isOpen) return
    const bom = !this.#hasStarted && this.#faults.get("Formatting")?.bom === true ? "\ufeff" : ""
    this.#hasStarted = true
    this.#response.write(bom + text)
  }

  #frame({ event, id, text }: Event): string {
    const formatting = this.#faults.get("Formatting")
    const lines = (formatting?.multilineData === true ? onSeveralLines(text) : text).split(/\r\n|[\r\n]/)
    const data = lines.map((line) => formatting?.multilineData === true ? `data:${line}` : `data: ${line}`)
    return [
      ...(formatting?.comments === true ? [":", ": a comment", "unknown: field", "nofield"] : []),
      ...(event === undefined ? [] : [`event: ${event}`]),
      ...(id === undefined ? [] : [`id: ${id}`]),
      ...data,
      "",
      ""
    ].join(this.#newline)
  }
}

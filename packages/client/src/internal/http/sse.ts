/**
 * Parses an event stream (WHATWG HTML, server-sent events) incrementally and in linear time.
 *
 * No library is used, because the id of an event without data must be reported: a stream is resumed with it
 * (2025-11-25, transports: the server primes the client with "an event ID and an empty data field").
 */

/** Receives the events of a reader. */
export interface Listener {
  /**
   * An event is complete. `id` is the value of its own id field, if it has one. `data` is empty for an event without
   * data.
   */
  readonly event: (type: string, data: string, id: string | undefined) => void
  /** The server sent a `retry` field: how many milliseconds to wait before the stream is requested again. */
  readonly retry: (millis: number) => void
}

const digits = /^\d{1,15}$/

/** Reads one stream. */
export class Reader {
  readonly #listener: Listener
  readonly #maxEvent: number
  // The pieces of an incomplete line.
  #lineParts: Array<string> = []
  #data: Array<string> = []
  // The number of characters of the current event, with the names of its fields.
  #size = 0
  #type = ""
  #id: string | undefined = undefined
  #isStarted = false
  // Whether the last piece ended with CR. An LF that follows belongs to it.
  #afterCr = false

  constructor(listener: Listener, maxEvent: number) {
    this.#listener = listener
    this.#maxEvent = maxEvent
  }

  /**
   * Parses the next piece. Returns `false` once an event is longer than the bound. It must not be called after that.
   */
  feed(text: string): boolean {
    if (text === "") return true
    let at = 0
    if (!this.#isStarted) {
      this.#isStarted = true
      if (text.charCodeAt(0) === 0xfeff) at = 1
    }
    if (this.#afterCr) {
      this.#afterCr = false
      if (text.charCodeAt(at) === 10) at++
    }
    // The position of the next LF and of the next CR, so that no part of the text is searched twice.
    let lf = text.indexOf("\n", at)
    let cr = text.indexOf("\r", at)
    while (lf !== -1 || cr !== -1) {
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr
      let line = text.slice(at, end)
      if (this.#lineParts.length > 0) {
        this.#lineParts.push(line)
        line = this.#lineParts.join("")
        this.#lineParts = []
      }
      this.#size += end - at + 1
      at = end + 1
      if (end === cr) {
        if (at === text.length) this.#afterCr = true
        else if (text.charCodeAt(at) === 10) at++
        cr = text.indexOf("\r", at)
      }
      if (lf !== -1 && lf < at) lf = text.indexOf("\n", at)
      if (line === "") this.#dispatch()
      else if (this.#size > this.#maxEvent) return false
      else this.#field(line)
    }
    if (at < text.length) {
      this.#lineParts.push(at === 0 ? text : text.slice(at))
      this.#size += text.length - at
    }
    return this.#size <= this.#maxEvent
  }

  #field(line: string): void {
    const colon = line.indexOf(":")
    // A comment does not count as a part of the event.
    if (colon === 0) {
      this.#size -= line.length + 1
      return
    }
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? "" : line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1)
    switch (name) {
      case "data":
        this.#data.push(value)
        return
      case "event":
        this.#type = value
        return
      case "id":
        if (!value.includes("\0")) this.#id = value
        return
      case "retry":
        if (digits.test(value)) this.#listener.retry(Number(value))
    }
  }

  #dispatch(): void {
    const data = this.#data.length === 1 ? this.#data[0]! : this.#data.join("\n")
    const [type, id, spoken] = [this.#type, this.#id, this.#data.length > 0]
    this.#size = 0
    if (!spoken && type === "" && id === undefined) return
    this.#data = []
    this.#type = ""
    this.#id = undefined
    this.#listener.event(type === "" ? "message" : type, data, id)
  }
}

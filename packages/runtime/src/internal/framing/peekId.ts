/**
 * Reads the id of a JSON-RPC message that is too long to store, and whether it is a response or a notification. Needs
 * bounded memory for any bytes.
 */
import { type Id, isId } from "@skein/protocol/JsonRpc"

const quote = 34
const comma = 44
const colon = 58
const backslash = 92
const maxToken = 512

const decoder = /* @__PURE__ */ new TextDecoder()

/** Scans the bytes of one line. */
export class IdPeeker {
  #depth = 0
  #inString = false
  #escaped = false
  #key = ""
  #atValue = false
  // The name of a top-level member, or the value of "id", while it is read; with its quotes.
  #token: Array<number> | undefined
  #id: Id | undefined
  #identified = false
  #method = false
  #outcome = false

  /** The id of the message, if it could be read. */
  get id(): Id | undefined {
    return this.#id
  }

  /** Whether the message has a result or an error, and no method. */
  get answer(): boolean {
    return this.#outcome && !this.#method
  }

  /** Whether the message has a method, and no id. */
  get notification(): boolean {
    return this.#method && !this.#identified
  }

  /** Scans the next bytes. */
  scan(bytes: Uint8Array): void {
    let at = 0
    while (at < bytes.length) {
      if (this.#inString) at = this.#string(bytes, at)
      else this.#structure(bytes[at++]!)
    }
  }

  // Long lines are mostly long strings: jump from quote to quote.
  #string(bytes: Uint8Array, start: number): number {
    const found = bytes.indexOf(quote, start)
    const end = found < 0 ? bytes.length : found
    let at = end
    while (at > start && bytes[at - 1] === backslash) at--
    // An odd number of backslashes escapes the next character; a backslash at the end of the previous chunk counts too.
    const backslashes = end - at + (at === start && this.#escaped ? 1 : 0)
    const escaped = backslashes % 2 === 1
    this.#take(bytes, start, found < 0 ? end : end + 1)
    this.#escaped = found < 0 && escaped
    if (found >= 0 && !escaped) this.#inString = false
    return found < 0 ? end : end + 1
  }

  #take(bytes: Uint8Array, start: number, end: number): void {
    if (this.#token === undefined) return
    for (let at = start; at < end && this.#token.length <= maxToken; at++) this.#token.push(bytes[at]!)
  }

  #structure(byte: number): void {
    const top = this.#depth === 1
    switch (byte) {
      case quote: {
        this.#inString = true
        if (top && !this.#atValue) this.#token = []
        this.#token?.push(byte)
        return
      }
      case colon: {
        if (!top || this.#atValue) return
        this.#key = this.#text()
        this.#atValue = true
        this.#token = this.#key === "\"id\"" ? [] : undefined
        if (this.#key === "\"method\"") this.#method = true
        else if (this.#key === "\"id\"") this.#identified = true
        else if (this.#key === "\"result\"" || this.#key === "\"error\"") this.#outcome = true
        return
      }
      case comma: {
        if (top) this.#member()
        return
      }
      case 123: // {
      case 91: // [
        this.#depth++
        return
      case 125: // }
      case 93: // ]
        if (top) this.#member()
        this.#depth--
        return
      default:
        if (this.#atValue && this.#token !== undefined && this.#token.length <= maxToken) this.#token.push(byte)
    }
  }

  #text(): string {
    const token = this.#token
    this.#token = undefined
    return token === undefined || token.length > maxToken ? "" : decoder.decode(Uint8Array.from(token))
  }

  #member(): void {
    if (this.#atValue && this.#key === "\"id\"") {
      try {
        const id: unknown = JSON.parse(this.#text())
        this.#id = isId(id) ? id : undefined
      } catch {
        this.#id = undefined
      }
    }
    this.#atValue = false
    this.#token = undefined
  }
}

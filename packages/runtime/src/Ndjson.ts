/**
 * One JSON-RPC message per line: the framing of stdio, and of any other reliable byte stream (revision 2026-07-28,
 * basic/transports/stdio). It does not use Node.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { ByteBuffer, decodeUtf8 } from "./ByteBuffer.ts"
import { IdPeeker } from "./internal/framing/peekId.ts"

/** The default of `maxLineBytes`: 4 MiB. */
export const defaultMaxLineBytes = 4 * 1024 * 1024

/** The default of `maxUnsentChars`: 64 Mi characters. */
export const defaultMaxUnsentChars = 64 * 1024 * 1024

const lineFeed = 10
const space = 32

/** Options of a `Reader`. */
export interface ReaderOptions {
  /**
   * Receives a message and its length in bytes, or the `Invalid` for a line that is not one. Called for one line after
   * the other, never nested.
   */
  readonly message: (message: JsonRpc.Inbound, size: number) => void
  /** Called once, after the last message, when the stream has ended. */
  readonly end?: (() => void) | undefined
  /**
   * The longest line, in bytes without its line break; 4 MiB by default. A longer line is skipped up to its line break,
   * never stored as a whole, and received as one `Invalid` (-32600) with its id; the next line is read normally.
   */
  readonly maxLineBytes?: number | undefined
}

/**
 * Parses bytes into messages. A chunk may end anywhere: inside a line, a line break or a character.
 *
 * Lines end with LF or CR LF, the last one also with the end of the stream. Blank lines and byte order marks are
 * skipped, and bytes that are not UTF-8 are read as U+FFFD. At most one partial line is stored.
 */
export class Reader {
  readonly maxLineBytes: number
  readonly #options: ReaderOptions
  #chunks: Array<Uint8Array> = []
  #head = 0
  #offset = 0
  readonly #partial = new ByteBuffer()
  #oversized: IdPeeker | undefined
  #draining = false
  #state: "reading" | "ending" | "over" = "reading"

  constructor(options: ReaderOptions) {
    this.#options = options
    this.maxLineBytes = options.maxLineBytes ?? defaultMaxLineBytes
  }

  /** Reads the next bytes. Called from `message`, it reads them after the current ones, so they must not change. */
  push(chunk: Uint8Array): void {
    if (this.#state !== "reading") return
    this.#chunks.push(chunk)
    this.#drain()
  }

  /** The stream has ended: the remaining bytes are the last line. */
  end(): void {
    if (this.#state !== "reading") return
    this.#state = "ending"
    this.#drain()
  }

  /** Drops all stored bytes, and delivers nothing afterwards. */
  stop(): void {
    this.#state = "over"
    this.#chunks = []
    this.#partial.clear(0)
    this.#oversized = undefined
  }

  #drain(): void {
    if (this.#draining) return
    this.#draining = true
    try {
      while (this.#state !== "over") {
        if (this.#head < this.#chunks.length) {
          this.#step(this.#chunks[this.#head]!)
        } else {
          if (this.#head > 0) {
            this.#chunks = []
            this.#head = 0
          }
          if (this.#state === "reading") return
          if (this.#oversized !== undefined) this.#tooLong()
          else if (this.#partial.size > 0) this.#partialLine()
          else {
            this.stop()
            this.#options.end?.()
          }
        }
      }
    } finally {
      this.#draining = false
    }
  }

  // Reads one line, or the part of it that has arrived. The state is advanced before a callback is called.
  #step(chunk: Uint8Array): void {
    const start = this.#offset
    const at = chunk.indexOf(lineFeed, start)
    if (at >= 0 && at + 1 < chunk.length) this.#offset = at + 1
    else {
      this.#offset = 0
      this.#head++
    }
    const end = at < 0 ? chunk.length : at
    const partial = this.#partial
    const length = partial.size + end - start
    if (this.#oversized === undefined && length > this.maxLineBytes) {
      this.#oversized = new IdPeeker()
      this.#oversized.scan(partial.bytes)
      partial.clear()
    }
    if (this.#oversized !== undefined) {
      this.#oversized.scan(chunk.subarray(start, end))
      if (at >= 0) this.#tooLong()
      return
    }
    if (at >= 0 && partial.size === 0) {
      return start === end ? undefined : this.#line(decodeUtf8(chunk, start, end), end - start)
    }
    partial.add(chunk.subarray(start, end))
    if (at >= 0) this.#partialLine()
  }

  #partialLine(): void {
    const { size, text } = this.#partial
    this.#partial.clear()
    this.#line(text, size)
  }

  #line(line: string, size: number): void {
    let text = line
    if (text.charCodeAt(0) === 0xfeff) text = text.slice(1)
    if (!(text.charCodeAt(0) > space) && text.trim() === "") return
    this.#options.message(JsonRpc.parseText(text), size)
  }

  #tooLong(): void {
    const { answer, id, notification } = this.#oversized!
    this.#oversized = undefined
    this.#options.message({
      _tag: "Invalid",
      answer,
      notification,
      id,
      error: { code: -32600, message: tooLong(this.maxLineBytes) }
    }, 0)
  }
}

const tooLong = (maxLineBytes: number): string =>
  `Invalid Request: the line exceeds maxLineBytes (${maxLineBytes}) of its reader: send less, such as pages or a link to a ` +
  "resource, or raise maxLineBytes there"

/** Options of a `Writer`. */
export interface WriterOptions {
  /** Writes text. Returns `false` if the peer is slow; then call `Writer.drain` once it takes more. */
  readonly write: (text: string) => boolean
  /** How much written text still waits in the stream, in characters or bytes. Called only while the peer is slow. */
  readonly waiting?: (() => number) | undefined
  /**
   * How many characters may wait while the peer does not read; 64 Mi by default. At the bound the next message is
   * dropped, and `overflow` is called.
   */
  readonly maxUnsentChars?: number | undefined
  /** Called when the buffer has overflowed. The connection must be closed then. */
  readonly overflow?: ((maxUnsentChars: number) => void) | undefined
  /**
   * Calls back at the end of this turn of the event loop, as `setImmediate` does. With it, only the first messages of a
   * turn are written in the next microtask; the others, such as the responses of handlers that were waiting, are
   * written together at its end.
   */
  readonly atTurnEnd?: ((callback: () => void) => unknown) | undefined
}

// Text of this length is written immediately, so that the peer can process the first messages of a burst while the
// others are still being produced.
const flushAt = 2048

// A string that was built from many small ones is a tree, several times as large as its characters. So waiting lines
// are joined in groups of this many.
const joinAt = 1024

/**
 * Writes messages as lines. The messages of one tick are written together (or in several writes of 2 Ki characters).
 * While the peer is slow they are collected.
 */
export class Writer {
  readonly maxUnsentChars: number
  readonly #options: WriterOptions
  #pending = ""
  // The lines that are collected while the peer is slow, after the pending text.
  #parts: Array<string> = []
  #lines: Array<string> = []
  #collected = 0
  #scheduled = false
  #congested = false
  #isStopped = false
  // Opened when the peer takes more; set while a caller waits for that.
  #drained: Latch.Latch | undefined

  constructor(options: WriterOptions) {
    this.#options = options
    this.maxUnsentChars = options.maxUnsentChars ?? defaultMaxUnsentChars
  }

  /** Whether the peer is slow: it has not yet taken the written text. */
  get congested(): boolean {
    return this.#congested
  }

  /** Whether half of `maxUnsentChars` waits: the peer is slow, and there is still room for short messages. */
  get isHalfFull(): boolean {
    return this.#congested && this.#waiting * 2 >= this.maxUnsentChars
  }

  get #waiting(): number {
    return this.#pending.length + this.#collected + (this.#options.waiting?.() ?? 0)
  }

  /** Sends a message. Returns `false` while the peer is slow. Throws only what `JsonRpc.encode` throws. */
  send(message: JsonRpc.Outbound): boolean {
    if (this.#isStopped) return true
    const text = JsonRpc.encode(message)
    if (this.#congested) {
      if (this.#waiting >= this.maxUnsentChars) {
        this.#options.overflow?.(this.maxUnsentChars)
        return true
      }
      this.#collect(text)
      return false
    }
    this.#pending += text + "\n"
    if (this.#pending.length >= flushAt) this.flush()
    else if (!this.#scheduled) {
      this.#scheduled = true
      queueMicrotask(this.#onTick)
      this.#options.atTurnEnd?.(this.#onTurnEnd)
    }
    return !this.#congested
  }

  #collect(text: string): void {
    this.#collected += text.length + 1
    if (this.#lines.push(text) < joinAt) return
    this.#lines.push("")
    this.#parts.push(this.#lines.join("\n"))
    this.#lines = []
  }

  // All waiting text, in order.
  #take(): string {
    let text = this.#pending
    this.#pending = ""
    if (this.#collected === 0) return text
    if (this.#lines.length > 0) this.#lines.push("")
    text += this.#parts.join("") + this.#lines.join("\n")
    this.#parts = []
    this.#lines = []
    this.#collected = 0
    return text
  }

  readonly #onTick = (): void => {
    if (this.#options.atTurnEnd === undefined) this.#scheduled = false
    this.flush()
  }

  readonly #onTurnEnd = (): void => {
    this.#scheduled = false
    this.flush()
  }

  /** Writes the messages of this tick now. */
  flush(): void {
    if (this.#congested) return
    const text = this.#take()
    if (text !== "") this.#congested = !this.#options.write(text)
  }

  /** The peer takes more. */
  drain(): void {
    this.#congested = false
    this.flush()
    if (!this.#congested) this.#wake()
  }

  /** Stops writing. Returns the waiting text, and resumes the callers that wait for `drained`. */
  stop(): string {
    const rest = this.#take()
    this.#isStopped = true
    this.#congested = false
    this.#wake()
    return rest
  }

  /** Succeeds once the peer takes more, or can take no further text. */
  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => this.#congested ? (this.#drained ??= Latch.makeUnsafe(false)).await : Effect.void)
  }

  #wake(): void {
    this.#drained?.openUnsafe()
    this.#drained = undefined
  }
}

/**
 * One JSON-RPC message per line: the framing of stdio, and of any other reliable stream of bytes (revision 2026-07-28,
 * basic/transports/stdio). Nothing here knows of a fiber or of Node.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { IdPeeker } from "./internal/peekId.ts"

/** The longest line that is read, in bytes without its line break, where nothing else is asked for: 4 MiB. */
export const defaultMaxLineBytes = 4 * 1024 * 1024

/** How much may wait for a reader that has stalled, where nothing else is asked for: 64 Mi characters. */
export const defaultMaxBufferedChars = 64 * 1024 * 1024

const lineFeed = 10
const space = 32
const keptPartial = 64 * 1024

interface Utf8 {
  readonly toString: (encoding: "utf8", start: number, end: number) => string
}
const isBuffer = (globalThis as { readonly Buffer?: { readonly isBuffer?: (value: unknown) => boolean } }).Buffer
  ?.isBuffer
const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true })

const decode = (bytes: Uint8Array, start: number, end: number): string =>
  isBuffer?.(bytes) === true
    ? (bytes as unknown as Utf8).toString("utf8", start, end)
    : decoder.decode(bytes.subarray(start, end))

/** What a `Reader` needs to know. */
export interface ReaderOptions {
  /** Takes a message, or the `Invalid` for a line that holds none. Called for one line after the other, never nested. */
  readonly message: (message: JsonRpc.Inbound) => void
  /** Called once, after the last message, when the bytes have ended. */
  readonly end?: (() => void) | undefined
  /**
   * The longest line, in bytes without its line break; 4 MiB by default. A longer one is skipped up to its line break, never
   * held as a whole, and received as one `Invalid` (-32600) with the id that it has; the next line is read as ever.
   */
  readonly maxLineBytes?: number | undefined
}

/**
 * Bytes in, messages out, however the bytes are cut: in the middle of a line, of a line break or of a character.
 *
 * Lines end with LF or CR LF, the last one also with the end of the bytes. Blank lines and byte order marks are skipped, and
 * bytes that are not UTF-8 read as U+FFFD. At most one partial line is held, besides the chunks that are pushed while
 * paused: those are kept until `resume`, so who pauses the reader should pause what feeds it.
 */
export class Reader {
  readonly maxLineBytes: number
  readonly #message: (message: JsonRpc.Inbound) => void
  readonly #end: (() => void) | undefined
  #chunks: Array<Uint8Array> = []
  #head = 0
  #offset = 0
  #partial: Uint8Array | undefined
  #partialLength = 0
  #skipped: IdPeeker | undefined
  #paused = false
  #draining = false
  #state: "reading" | "ending" | "over" = "reading"

  constructor(options: ReaderOptions) {
    this.#message = options.message
    this.#end = options.end
    this.maxLineBytes = options.maxLineBytes ?? defaultMaxLineBytes
  }

  /** Takes the next bytes. They are read later when the reader is paused, so they must not change. */
  push(chunk: Uint8Array): void {
    if (this.#state !== "reading") return
    this.#chunks.push(chunk)
    this.#drain()
  }

  /** No more bytes will come: what is left is the last line. */
  end(): void {
    if (this.#state !== "reading") return
    this.#state = "ending"
    this.#drain()
  }

  /** Delivers nothing until `resume`, also when it is called from within `message`. */
  pause(): void {
    this.#paused = true
  }

  /** Delivers what was held back, before it returns (or after, when it is called from within `message`). */
  resume(): void {
    this.#paused = false
    this.#drain()
  }

  /** Drops everything that is held; nothing is delivered any more. */
  stop(): void {
    this.#state = "over"
    this.#chunks = []
    this.#partial = undefined
    this.#skipped = undefined
  }

  #drain(): void {
    if (this.#draining) return
    this.#draining = true
    try {
      while (!this.#paused && this.#state !== "over") {
        if (this.#head < this.#chunks.length) {
          this.#step(this.#chunks[this.#head]!)
        } else {
          if (this.#head > 0) {
            this.#chunks = []
            this.#head = 0
          }
          if (this.#state === "reading") return
          if (this.#skipped !== undefined) this.#tooLong()
          else if (this.#partialLength > 0) this.#line(this.#partial!, 0, this.#takePartial())
          else {
            this.stop()
            this.#end?.()
          }
        }
      }
    } finally {
      this.#draining = false
    }
  }

  // Reads one line, or what there is of it. The state is always advanced first, so that a callback may do anything.
  #step(chunk: Uint8Array): void {
    const start = this.#offset
    const at = chunk.indexOf(lineFeed, start)
    if (at >= 0 && at + 1 < chunk.length) this.#offset = at + 1
    else {
      this.#offset = 0
      this.#head++
    }
    const end = at < 0 ? chunk.length : at
    const length = this.#partialLength + end - start
    if (this.#skipped === undefined && length > this.maxLineBytes) {
      this.#skipped = new IdPeeker()
      if (this.#partialLength > 0) this.#skipped.scan(this.#partial!.subarray(0, this.#takePartial()))
    }
    if (this.#skipped !== undefined) {
      this.#skipped.scan(chunk.subarray(start, end))
      if (at >= 0) this.#tooLong()
      return
    }
    if (at < 0) return this.#append(chunk, start, length)
    if (this.#partialLength === 0) return this.#line(chunk, start, end)
    this.#append(chunk.subarray(0, end), start, length)
    const partial = this.#partial!
    this.#line(partial, 0, this.#takePartial())
  }

  // One buffer that doubles: a line that dribbles in costs no more than twice its own copy, and no list of slices.
  #append(chunk: Uint8Array, start: number, length: number): void {
    if (length === this.#partialLength) return
    if (this.#partial === undefined || this.#partial.length < length) {
      const grown = new Uint8Array(Math.max(length, Math.min(2 * length, this.maxLineBytes), 1024))
      if (this.#partialLength > 0) grown.set(this.#partial!.subarray(0, this.#partialLength))
      this.#partial = grown
    }
    this.#partial.set(start === 0 ? chunk : chunk.subarray(start), this.#partialLength)
    this.#partialLength = length
  }

  #takePartial(): number {
    const length = this.#partialLength
    this.#partialLength = 0
    if (this.#partial !== undefined && this.#partial.length > keptPartial) this.#partial = undefined
    return length
  }

  #line(bytes: Uint8Array, start: number, end: number): void {
    if (start === end) return
    let text = decode(bytes, start, end)
    if (text.charCodeAt(0) === 0xfeff) text = text.slice(1)
    if (!(text.charCodeAt(0) > space) && text.trim() === "") return
    this.#message(JsonRpc.parseText(text))
  }

  #tooLong(): void {
    const { answer, id, notification } = this.#skipped!
    this.#skipped = undefined
    this.#message({
      _tag: "Invalid",
      answer,
      notification,
      id,
      error: { code: -32600, message: `Invalid Request: the line exceeds ${this.maxLineBytes} bytes` }
    })
  }
}

/** What a `Writer` needs to know. */
export interface WriterOptions {
  /** Writes text; answers `false` when the other side is slow, and then `Writer.drain` is called once it takes more. */
  readonly write: (text: string) => boolean
  /** How much of what was written still waits in the stream, in characters or bytes. Asked only while the other side is slow. */
  readonly waiting?: (() => number) | undefined
  /**
   * How much may wait while the other side does not read; 64 Mi by default. A message is taken as long as less than that
   * waits; the next one is not, and `overflow` is called.
   */
  readonly maxBufferedChars?: number | undefined
  /** The bound was met: the connection has to be given up. */
  readonly overflow?: ((maxBufferedChars: number) => void) | undefined
  /**
   * Calls back at the end of this turn of the event loop, as `setImmediate` does. With it, only the first messages of a turn
   * leave with the next microtask; the others, the answers of handlers that were waiting, say, leave together at its end.
   */
  readonly atTurnEnd?: ((callback: () => void) => unknown) | undefined
}

// So that the other side can begin with the first messages of a burst while the rest are still being made.
const flushAt = 2048

// A text that grew by many small ones is a tree of them, several times as large as its characters; what waits for long is
// joined by parts of this many lines.
const joinAt = 1024

/**
 * Messages in, lines out. The messages of one tick leave in one write (or several, each as soon as 2 Ki characters are
 * there), and while the other side is slow they are collected here.
 */
export class Writer {
  readonly maxBufferedChars: number
  readonly #write: (text: string) => boolean
  readonly #waiting: () => number
  readonly #overflow: (maxBufferedChars: number) => void
  readonly #atTurnEnd: ((callback: () => void) => unknown) | undefined
  #pending = ""
  // What is collected while the other side is slow, after what is pending.
  #parts: Array<string> = []
  #lines: Array<string> = []
  #collected = 0
  #scheduled = false
  #congested = false
  #over = false
  #waiters: Set<() => void> | undefined

  constructor(options: WriterOptions) {
    this.#write = options.write
    this.#waiting = options.waiting ?? (() => 0)
    this.maxBufferedChars = options.maxBufferedChars ?? defaultMaxBufferedChars
    this.#overflow = options.overflow ?? (() => {})
    this.#atTurnEnd = options.atTurnEnd
  }

  /** Whether the other side is slow: it has not yet taken what was written. */
  get congested(): boolean {
    return this.#congested
  }

  /** Takes a message; `false` when the other side is slow. Throws only what `JsonRpc.encode` throws. */
  send(message: JsonRpc.Outbound): boolean {
    if (this.#over) return true
    const text = JsonRpc.encode(message)
    if (this.#congested) {
      if (this.#pending.length + this.#collected + this.#waiting() >= this.maxBufferedChars) {
        this.#overflow(this.maxBufferedChars)
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
      this.#atTurnEnd?.(this.#onTurnEnd)
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

  // All that waits, in the order in which it came.
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
    if (this.#atTurnEnd === undefined) this.#scheduled = false
    this.flush()
  }

  readonly #onTurnEnd = (): void => {
    this.#scheduled = false
    this.flush()
  }

  /** Writes at once what this tick has collected. */
  flush(): void {
    if (this.#congested) return
    const text = this.#take()
    if (text !== "") this.#congested = !this.#write(text)
  }

  /** The other side takes more. */
  drain(): void {
    this.#congested = false
    this.flush()
    if (!this.#congested) this.#wake()
  }

  /** Nothing is written any more; what waits is given back, and those who waited are woken. */
  stop(): string {
    const rest = this.#take()
    this.#over = true
    this.#congested = false
    this.#wake()
    return rest
  }

  /** Calls back once the other side takes more, or at once when it does. Answers how to withdraw. */
  onDrained(callback: () => void): () => void {
    if (!this.#congested) {
      callback()
      return () => {}
    }
    const waiters = this.#waiters ??= new Set()
    waiters.add(callback)
    return () => {
      waiters.delete(callback)
    }
  }

  #wake(): void {
    const waiters = this.#waiters
    if (waiters === undefined) return
    this.#waiters = undefined
    for (const waiter of waiters) waiter()
  }
}

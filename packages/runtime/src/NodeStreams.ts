/**
 * A connection over a pair of Node streams, one JSON-RPC message per line: the standard streams of a process, a Unix
 * domain socket, a TCP connection (revision 2026-07-28, basic/transports/stdio).
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Readable, Writable } from "node:stream"
import type { Connection, End, Receiver } from "./Connection.ts"
import { ConnectionLost, TransportError } from "./TransportError.ts"
import * as Ndjson from "./Ndjson.ts"

/** The bounds of a connection over streams. */
export interface Bounds {
  /**
   * The longest line that is read, in bytes; 4 MiB by default. A longer line is skipped in bounded memory and received
   * as one `Invalid` (-32600).
   */
  readonly maxLineBytes?: number | undefined
  /**
   * How many characters may wait while the peer does not read; 64 Mi by default. From half of it, further requests of
   * the peer are refused with `-32603`. At the bound, the next message ends the connection as `Lost`.
   */
  readonly maxUnsentChars?: number | undefined
}

/** Options of a connection over a pair of streams. */
export interface Options extends Bounds {
  /**
   * Whether `close` ends the output, without waiting for it; otherwise the stream stays open, as the stdout of a process
   * does, and `close` waits up to 2 seconds until the sent messages are written. Off by default.
   */
  readonly endOutput?: boolean | undefined
  /**
   * Called when the output breaks or is closed by the peer. By default the connection ends then; with this option the
   * input is still read, and outgoing messages are dropped.
   */
  readonly outputBroken?: ((error: Error | undefined) => void) | undefined
  /** See `Connection.stopsWithPeer`. Off by default. */
  readonly stopsWithPeer?: boolean | undefined
  /** Writes in place of `output.write`. */
  readonly write?: ((text: string, done?: (error?: Error | null) => void) => boolean) | undefined
}

const hangUps = new Set(["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED", "ERR_STREAM_WRITE_AFTER_END", "EOF"])

/** Whether an error of a stream means that the peer has closed it; any other error is a fault. */
const isHangUp = (error: Error): boolean => hangUps.has((error as { readonly code?: string | undefined }).code ?? "")

// The receiver gets the length of a message from this many bytes on. Others cost no object.
const longLine = 16 * 1024

// How long `close` waits until the sent messages are written, in milliseconds.
const flushTimeout = 2_000

const ended: End = { _tag: "ClosedByPeer" }
const closed: End = { _tag: "ClosedByUs" }

/** Ignores the errors of writes that were pending when the stream was released. */
const ignore = (): void => {}

type Listeners = ReadonlyArray<readonly [event: string, listener: (error: Error) => unknown]>

class StreamConnection implements Connection {
  readonly #input: Readable
  readonly #output: Writable
  readonly #options: Options
  readonly #reader: Ndjson.Reader
  readonly #writer: Ndjson.Writer
  readonly #write: (text: string, done?: (error?: Error | null) => void) => boolean
  #receiver: Receiver | undefined
  #end: End | undefined
  #outputClosed = false
  #closing = false

  constructor(input: Readable, output: Writable, options: Options) {
    this.#input = input
    this.#output = output
    this.#options = options
    this.#write = options.write ?? ((text, done) => output.write(text, done))
    this.#reader = new Ndjson.Reader({
      maxLineBytes: options.maxLineBytes,
      message: (message, size) => this.#receiver!.message(message, size < longLine ? undefined : { size }),
      end: () => this.#finish(ended)
    })
    this.#writer = new Ndjson.Writer({
      write: (text) => this.#outputClosed || this.#write(text),
      atTurnEnd: setImmediate,
      waiting: () => output.writableLength,
      maxUnsentChars: options.maxUnsentChars,
      overflow: (maxUnsentChars) =>
        this.#fail(`the peer does not read: more than ${maxUnsentChars} characters are waiting (maxUnsentChars)`)
    })
    for (const [event, listener] of this.#inputListeners) input.on(event, listener)
    for (const [event, listener] of this.#outputListeners) output.on(event, listener)
  }

  open(receiver: Receiver): void {
    this.#receiver = receiver
    if (this.#end !== undefined) return receiver.end(this.#end)
    this.#input.on("data", this.#onData)
    this.#input.on("end", this.#onInputEnd)
    this.#input.resume()
  }

  send(message: Parameters<Connection["send"]>[0]): boolean {
    return this.#writer.send(message)
  }

  get drained(): Effect.Effect<void> {
    return this.#writer.drained
  }

  get isOutputFull(): boolean {
    return this.#writer.isHalfFull
  }

  get stopsWithPeer(): boolean {
    return this.#options.stopsWithPeer === true
  }

  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#closing) return Effect.void
    this.#closing = true
    this.#finish(closed)
    if (this.#options.endOutput === true) {
      this.#flush(ignore)
      return Effect.sync(() => this.#release())
    }
    const flushed = Effect.callback<void>((resume) => this.#flush(() => resume(Effect.void)))
    return Effect.andThen(Effect.timeoutOption(flushed, flushTimeout), Effect.sync(() => this.#release()))
  })

  // Calls back when all text is written, or when the output has closed.
  #flush(done: () => void): void {
    const rest = this.#writer.stop()
    if (this.#outputClosed) return done()
    if (this.#options.endOutput === true) this.#output.end(rest, done)
    else if (rest === "" && this.#output.writableLength === 0) done()
    else this.#write(rest, done)
  }

  #release(): void {
    this.#outputClosed = true
    for (const [event, listener] of this.#inputListeners) this.#input.off(event, listener)
    for (const [event, listener] of this.#outputListeners) this.#output.off(event, listener)
    if (this.#output.writableLength > 0) this.#output.on("error", ignore)
  }

  /** Whether the input is read: always between `open` and the end, however slowly the peer reads the output. */
  get #reading(): boolean {
    return this.#end === undefined && this.#receiver !== undefined
  }

  readonly #onData = (chunk: Uint8Array): void => this.#reader.push(chunk)

  readonly #onInputEnd = (): void => this.#reader.end()

  readonly #inputListeners: Listeners = [
    [
      "error",
      (error) => isHangUp(error) ? this.#finish(ended) : this.#fail(`the input failed: ${error.message}`, error)
    ],
    // Node resumes the output of a child when the child exits, even if nothing reads it.
    ["resume", () => this.#end === undefined && this.#receiver === undefined && this.#input.pause()],
    // Other code may pause stdin, for example when it closes a prompt, and nothing else would resume it. Not
    // immediately, since the pause is still in progress.
    ["pause", () => this.#reading && queueMicrotask(() => this.#reading && this.#input.resume())],
    // Without an "end" before it, the rest of a line is not a message: it may be truncated.
    ["close", () => this.#input.readableEnded || this.#finish(ended)]
  ]

  readonly #outputListeners: Listeners = [
    ["error", (error) => this.#broken(error)],
    ["close", () => this.#broken(undefined)],
    ["drain", () => this.#outputClosed || this.#writer.drain()]
  ]

  #broken(error: Error | undefined): void {
    if (this.#outputClosed) return
    this.#outputClosed = true
    this.#writer.stop()
    if (this.#options.outputBroken !== undefined) this.#options.outputBroken(error)
    else if (error === undefined || isHangUp(error)) this.#finish(ended)
    else this.#fail(`the output failed: ${error.message}`, error)
  }

  #fail(message: string, cause?: unknown): void {
    this.#outputClosed = true
    this.#writer.stop()
    this.#finish({ _tag: "Lost", cause: new TransportError({ reason: new ConnectionLost({ message, cause }) }) })
  }

  #finish(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#reader.stop()
    this.#input.off("data", this.#onData)
    this.#input.off("end", this.#onInputEnd)
    // A child that is being closed must be able to write; a process leaves its own stdin unread.
    if (this.#options.endOutput === true) this.#input.resume()
    else this.#input.pause()
    this.#receiver?.end(end)
  }
}

/**
 * Makes a connection that the scope closes. The caller owns the streams: `close` flushes the output, ends it only with
 * `endOutput`, and destroys neither. It removes all its listeners, except one that ignores the errors of an output with
 * unwritten data.
 *
 * The end of the input is `ClosedByPeer`, and messages are still sent. An output that the peer has closed is
 * `ClosedByPeer` too, and then nothing is sent. Bytes after the last line break are read as a line when the input ends.
 * They are dropped when the input is closed without an end.
 */
export const make = (
  input: Readable,
  output: Writable,
  options: Options = {}
): Effect.Effect<Connection, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => makeUnsafe(input, output, options)),
    (connection) => connection.close
  )

/** Makes a connection that the caller must close. */
export const makeUnsafe = (input: Readable, output: Writable, options: Options = {}): Connection =>
  new StreamConnection(input, output, options)

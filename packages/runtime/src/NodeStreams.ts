/**
 * A connection over a pair of Node streams, one JSON-RPC message per line: the standard streams of a process, a Unix domain
 * socket, a TCP connection (revision 2026-07-28, basic/transports/stdio).
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Readable, Writable } from "node:stream"
import type { Connection, End, Receiver } from "./Connection.ts"
import { ConnectionLost, TransportError } from "./TransportError.ts"
import * as Ndjson from "./Ndjson.ts"

/** The bounds of a connection over streams. */
export interface Bounds {
  /**
   * The longest line that is read, in bytes; 4 MiB by default. A longer one is skipped in bounded memory and received as one
   * `Invalid` (-32600).
   */
  readonly maxLineBytes?: number | undefined
  /**
   * How much may wait while the other side does not read, in characters; 64 Mi by default. When that much waits, the next
   * message ends the connection as `Lost`.
   */
  readonly maxBufferedChars?: number | undefined
  /** How long `close` waits for what was sent to be taken; 2 seconds by default, and not at all when it is 0. */
  readonly flushTimeout?: Duration.Input | undefined
}

/** How the pair of streams is used. */
export interface Options extends Bounds {
  /**
   * Reads nothing while the output is backed up, so that a client that does not take its answers cannot ask for more. On by
   * default. Only one of the two sides may do this, or both could wait for ever: clients turn it off.
   */
  readonly throttle?: boolean | undefined
  /** Whether `close` ends the output; otherwise the stream is left open, as a process leaves its stdout. Off by default. */
  readonly endOutput?: boolean | undefined
  /**
   * What to do when the output breaks or is closed by the other side. By default the connection is over; with this the
   * input is read on, and what is sent is dropped.
   */
  readonly outputBroken?: ((error: Error | undefined) => void) | undefined
  /** Writes in place of `output.write`. */
  readonly write?: ((text: string, done?: (error?: Error | null) => void) => boolean) | undefined
}

// How long `close` waits for what was sent to be taken, where nothing else is asked for.
const defaultFlush = /* @__PURE__ */ Duration.seconds(2)

const hangUps = new Set(["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED", "ERR_STREAM_WRITE_AFTER_END", "EOF"])

/** The other side went away, as far as an error of a stream can tell; anything else is a fault. */
const isHangUp = (error: Error): boolean => hangUps.has((error as { readonly code?: string | undefined }).code ?? "")

const ended: End = { _tag: "Ended" }
const closed: End = { _tag: "Closed" }

/** Both ends have errors to swallow after they were let go: those of writes that nobody waits for any more. */
const ignore = (): void => {}

class StreamConnection implements Connection {
  readonly #input: Readable
  readonly #output: Writable
  readonly #options: Options
  readonly #reader: Ndjson.Reader
  readonly #writer: Ndjson.Writer
  readonly #write: (text: string, done?: (error?: Error | null) => void) => boolean
  #receiver: Receiver | undefined
  #end: End | undefined
  #outputGone = false
  #closing = false
  #held = false
  #throttled = false

  constructor(input: Readable, output: Writable, options: Options) {
    this.#input = input
    this.#output = output
    this.#options = options
    this.#write = options.write ?? ((text, done) => output.write(text, done))
    this.#reader = new Ndjson.Reader({
      maxLineBytes: options.maxLineBytes,
      message: (message) => this.#receiver!.message(message),
      end: () => this.#finish(ended)
    })
    this.#writer = new Ndjson.Writer({
      write: (text) => this.#put(text),
      atTurnEnd: setImmediate,
      waiting: () => output.writableLength,
      maxBufferedChars: options.maxBufferedChars,
      overflow: (maxBufferedChars) =>
        this.#lose(`The other side does not read: more than ${maxBufferedChars} characters wait for it`)
    })
    input.on("error", this.#onInputError)
    input.on("resume", this.#onInputResume)
    input.on("pause", this.#onInputPause)
    input.on("close", this.#onInputClose)
    output.on("error", this.#onOutputError)
    output.on("close", this.#onOutputClose)
    output.on("drain", this.#onDrain)
  }

  open(receiver: Receiver): void {
    this.#receiver = receiver
    if (this.#end !== undefined) return receiver.end(this.#end)
    this.#input.on("data", this.#onData)
    this.#input.on("end", this.#onInputEnd)
    this.#flow()
  }

  send(message: Parameters<Connection["send"]>[0]): boolean {
    return this.#writer.send(message)
  }

  readonly drained: Effect.Effect<void> = Effect.callback<void>((resume) => {
    const withdraw = this.#writer.onDrained(() => resume(Effect.void))
    return Effect.sync(withdraw)
  })

  pause(): void {
    this.#held = true
    this.#flow()
  }

  resume(): void {
    this.#held = false
    this.#flow()
  }

  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#closing) return Effect.void
    this.#closing = true
    this.#finish(closed)
    const flush = Duration.fromInputUnsafe(this.#options.flushTimeout ?? defaultFlush)
    if (Duration.isZero(flush)) {
      this.#flush(ignore)
      return Effect.sync(() => this.#release())
    }
    const flushed = Effect.callback<void>((resume) => this.#flush(() => resume(Effect.void)))
    return Effect.andThen(Effect.timeoutOption(flushed, flush), Effect.sync(() => this.#release()))
  })

  // The last write's callback says that everything before it is out, or that it never will be.
  #flush(done: () => void): void {
    const rest = this.#writer.stop()
    if (this.#outputGone) return done()
    if (this.#options.endOutput === true) this.#output.end(rest, done)
    else if (rest === "" && this.#output.writableLength === 0) done()
    else this.#write(rest, done)
  }

  #release(): void {
    this.#outputGone = true
    this.#input.off("error", this.#onInputError)
    this.#input.off("resume", this.#onInputResume)
    this.#input.off("pause", this.#onInputPause)
    this.#input.off("close", this.#onInputClose)
    this.#output.off("error", this.#onOutputError)
    this.#output.off("close", this.#onOutputClose)
    this.#output.off("drain", this.#onDrain)
    if (this.#output.writableLength > 0) this.#output.on("error", ignore)
  }

  #put(text: string): boolean {
    if (this.#outputGone) return true
    const taken = this.#write(text)
    if (!taken && this.#options.throttle !== false) {
      this.#throttled = true
      this.#flow()
    }
    return taken
  }

  readonly #onDrain = (): void => {
    if (this.#outputGone) return
    this.#writer.drain()
    if (this.#throttled && !this.#writer.congested) {
      this.#throttled = false
      this.#flow()
    }
  }

  get #reading(): boolean {
    return this.#receiver !== undefined && !this.#held && !this.#throttled
  }

  #flow(): void {
    if (this.#end !== undefined) return
    if (this.#reading) {
      this.#input.resume()
      this.#reader.resume()
    } else {
      this.#reader.pause()
      this.#input.pause()
    }
  }

  // Node lets the output of a child flow when the child exits, whether somebody takes it or not.
  readonly #onInputResume = (): void => {
    if (this.#end === undefined && !this.#reading) this.#input.pause()
  }

  // A prompt that somebody asked on stdin, say, pauses it when it is closed; nobody else would ever let it flow again. Not at
  // once, since the pause is not over yet.
  readonly #onInputPause = (): void => {
    if (this.#end === undefined && this.#reading) queueMicrotask(() => this.#flow())
  }

  readonly #onData = (chunk: Uint8Array): void => this.#reader.push(chunk)

  readonly #onInputEnd = (): void => this.#reader.end()

  // Without an "end" before it, the rest of a line is not a message: it may have been cut.
  readonly #onInputClose = (): void => {
    if (!this.#input.readableEnded) this.#finish(ended)
  }

  readonly #onInputError = (error: Error): void => {
    if (isHangUp(error)) this.#finish(ended)
    else this.#lose(`The input broke: ${error.message}`, error)
  }

  readonly #onOutputError = (error: Error): void => this.#broken(error)

  readonly #onOutputClose = (): void => this.#broken(undefined)

  #broken(error: Error | undefined): void {
    if (this.#outputGone) return
    this.#outputGone = true
    this.#writer.stop()
    if (this.#options.outputBroken !== undefined) {
      this.#throttled = false
      this.#flow()
      this.#options.outputBroken(error)
    } else if (error === undefined || isHangUp(error)) this.#finish(ended)
    else this.#lose(`The output broke: ${error.message}`, error)
  }

  #lose(message: string, cause?: unknown): void {
    this.#outputGone = true
    this.#writer.stop()
    this.#finish({ _tag: "Lost", cause: new TransportError({ reason: new ConnectionLost({ message, cause }) }) })
  }

  #finish(end: End): void {
    if (this.#end !== undefined) return
    this.#end = end
    this.#reader.stop()
    this.#input.off("data", this.#onData)
    this.#input.off("end", this.#onInputEnd)
    // A child that is being closed must still get rid of what it writes; a process leaves its own stdin unread.
    if (this.#options.endOutput === true) this.#input.resume()
    else this.#input.pause()
    this.#receiver?.end(end)
  }
}

/**
 * Makes a connection that the scope closes. The streams stay with the caller: `close` flushes the output, ends it only with
 * `endOutput`, and destroys neither; it removes every listener that was added, except that an output that is given up with
 * unwritten data keeps one that ignores its errors.
 *
 * The input's end is `Ended`, and what is sent still goes out. An output that the other side has closed is `Ended` too, and
 * then nothing goes out. Bytes after the last line break are read as a line when the input ends, and dropped when it is cut.
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

/** Makes a connection that the caller has to close. */
export const makeUnsafe = (input: Readable, output: Writable, options: Options = {}): Connection =>
  new StreamConnection(input, output, options)

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
export const makeUnsafe = (input: Readable, output: Writable, options: Options = {}): Connection => {
  const { endOutput = false, outputBroken, write = (text, done) => output.write(text, done) } = options
  let receiver: Receiver | undefined
  let end: End | undefined
  let isOutputClosed = false
  let isClosing = false
  const reader = new Ndjson.Reader({
    maxLineBytes: options.maxLineBytes,
    message: (message, size) => receiver!.message(message, size < longLine ? undefined : { size }),
    end: () => finish(ended)
  })
  const writer = new Ndjson.Writer({
    write: (text) => isOutputClosed || write(text),
    atTurnEnd: setImmediate,
    waiting: () => output.writableLength,
    maxUnsentChars: options.maxUnsentChars,
    overflow: (maxUnsentChars) =>
      fail(`the peer does not read: more than ${maxUnsentChars} characters are waiting (maxUnsentChars)`)
  })

  // Calls back when all text is written, or when the output has closed.
  const flush = (done: () => void): void => {
    const rest = writer.stop()
    if (isOutputClosed) return done()
    if (endOutput) output.end(rest, done)
    else if (rest === "" && output.writableLength === 0) done()
    else write(rest, done)
  }

  const release = Effect.sync(() => {
    isOutputClosed = true
    for (const [event, listener] of inputListeners) input.off(event, listener)
    for (const [event, listener] of outputListeners) output.off(event, listener)
    if (output.writableLength > 0) output.on("error", ignore)
  })

  /** Whether the input is read: always between `open` and the end, however slowly the peer reads the output. */
  const isReading = (): boolean => end === undefined && receiver !== undefined

  const onData = (chunk: Uint8Array): void => reader.push(chunk)

  const onInputEnd = (): void => reader.end()

  const broken = (error: Error | undefined): void => {
    if (isOutputClosed) return
    isOutputClosed = true
    writer.stop()
    if (outputBroken !== undefined) outputBroken(error)
    else if (error === undefined || isHangUp(error)) finish(ended)
    else fail(`the output failed: ${error.message}`, error)
  }

  const fail = (message: string, cause?: unknown): void => {
    isOutputClosed = true
    writer.stop()
    finish({ _tag: "Lost", cause: new TransportError({ reason: new ConnectionLost({ message, cause }) }) })
  }

  const finish = (reason: End): void => {
    if (end !== undefined) return
    end = reason
    reader.stop()
    input.off("data", onData)
    input.off("end", onInputEnd)
    // A child that is being closed must be able to write; a process leaves its own stdin unread.
    if (endOutput) input.resume()
    else input.pause()
    receiver?.end(reason)
  }

  const inputListeners: Listeners = [
    ["error", (error) => isHangUp(error) ? finish(ended) : fail(`the input failed: ${error.message}`, error)],
    // Node resumes the output of a child when the child exits, even if nothing reads it.
    ["resume", () => end === undefined && receiver === undefined && input.pause()],
    // Other code may pause stdin, for example when it closes a prompt, and nothing else would resume it. Not
    // immediately, since the pause is still in progress.
    ["pause", () => isReading() && queueMicrotask(() => isReading() && input.resume())],
    // Without an "end" before it, the rest of a line is not a message: it may be truncated.
    ["close", () => input.readableEnded || finish(ended)]
  ]
  const outputListeners: Listeners = [
    ["error", broken],
    ["close", () => broken(undefined)],
    ["drain", () => isOutputClosed || writer.drain()]
  ]
  for (const [event, listener] of inputListeners) input.on(event, listener)
  for (const [event, listener] of outputListeners) output.on(event, listener)

  return {
    stopsWithPeer: options.stopsWithPeer === true,
    open: (given) => {
      receiver = given
      if (end !== undefined) return given.end(end)
      input.on("data", onData)
      input.on("end", onInputEnd)
      input.resume()
    },
    send: (message) => writer.send(message),
    get drained() {
      return writer.drained
    },
    get isOutputFull() {
      return writer.isHalfFull
    },
    close: Effect.suspend(() => {
      if (isClosing) return Effect.void
      isClosing = true
      finish(closed)
      if (endOutput) {
        flush(ignore)
        return release
      }
      const flushed = Effect.callback<void>((resume) => flush(() => resume(Effect.void)))
      return Effect.andThen(Effect.timeoutOption(flushed, flushTimeout), release)
    })
  }
}

/**
 * A connection between two nodes of a fleet, for any number of streams. A stream is a request and its answer, each a head and a
 * body in parts, which are sent as fast as the other node takes them.
 */
import { constVoid } from "effect/Function"
import type { Frames } from "./nodeFrames.ts"

/** The largest head of a request or an answer, in bytes. */
export const maxHeadBytes = 96 * 1024

// The bytes of a part of a body in one frame, and the bytes of a stream that the other node has not taken yet, without that part.
const maxPartBytes = 32 * 1024
const windowBytes = 64 * 1024

// The largest frame, in bytes: a head, a part, and the rest.
const maxFrameBytes = maxHeadBytes + maxPartBytes + 64

// How many streams of one connection may be open.
const maxStreams = 65_536

// After so many frames a connection takes no further stream, and the next one opens another connection with other keys.
const maxFrames = 2 ** 24

// The kinds of frames: a part of a stream, the last part, its early end, the number of bytes that were taken, and the end of new streams.
const part = 0
const last = 1
const abort = 2
const taken = 3
const bye = 4

// The kind, the stream and the length of the head.
const prefixBytes = 9

const nothing = Buffer.alloc(0)

/** Handles a stream. */
export interface StreamHandler {
  /** A part has arrived. The first one has a head. */
  readonly received: (head: string, bytes: Buffer, isLast: boolean) => void
  /** The other node has given the stream up, or the connection was closed. */
  readonly closed: () => void
  /** A part that waited was sent. */
  readonly sent?: (() => void) | undefined
}

/** One side of a request and its answer. */
export class LinkStream {
  handler: StreamHandler
  /** How many bytes wait to be sent. */
  unsent = 0
  isClosed = false
  readonly #link: NodeLink
  readonly #number: number
  readonly #queue: Array<Uint8Array> = []
  #room = windowBytes
  #isEnding = false
  #isSent = false
  #untaken = 0
  #unreported = 0

  constructor(link: NodeLink, number: number, handler: StreamHandler) {
    this.#link = link
    this.#number = number
    this.handler = handler
  }

  /** Sends a part, and before the first one a head. */
  send(head: string, bytes: Uint8Array, isLast: boolean): void {
    if (this.isClosed) return
    this.#isEnding = isLast
    if (bytes.length > 0) this.#queue.push(bytes)
    this.unsent += bytes.length
    this.flush(head)
  }

  /** Sends the parts for which the other node and the socket have room. A head and an end need none. */
  flush(head = ""): void {
    if (this.isClosed || this.#isSent) return
    const { unsent } = this
    do {
      const bytes = this.#room > 0 && this.#link.hasRoom ? this.#next() : nothing
      const isLast = this.#isEnding && this.unsent === 0
      if (bytes.length === 0 && head === "" && !isLast) break
      this.#link.send(isLast ? last : part, this.#number, head, bytes)
      this.#isSent = isLast
      head = ""
    } while (this.unsent > 0)
    if (this.unsent > 0 && this.#room > 0) this.#link.waiting.add(this)
    if (this.#isSent && this.#link.isAccepted) this.close()
    if (this.unsent < unsent) this.handler.sent?.()
  }

  #next(): Uint8Array {
    const [bytes = nothing] = this.#queue
    const found = bytes.subarray(0, maxPartBytes)
    if (found.length === bytes.length) this.#queue.shift()
    else this.#queue[0] = bytes.subarray(maxPartBytes)
    this.unsent -= found.length
    this.#room -= found.length
    return found
  }

  /** The other node has taken a number of bytes. */
  addRoom(bytes: number): void {
    this.#room += bytes
    if (this.#room > windowBytes) this.#link.cut()
    else this.flush()
  }

  received(head: string, bytes: Buffer, isLast: boolean): void {
    this.#untaken += bytes.length
    if (this.#untaken > windowBytes + maxPartBytes) this.#link.cut()
    else this.handler.received(head, bytes, isLast)
  }

  /** Takes bytes that have arrived: the other node may send more. */
  take(bytes: number): void {
    this.#untaken -= bytes
    this.#unreported += bytes
    if (this.isClosed || this.#unreported < windowBytes / 2) return
    const count = Buffer.allocUnsafe(4)
    count.writeUInt32BE(this.#unreported)
    this.#unreported = 0
    this.#link.send(taken, this.#number, "", count)
  }

  /** Ends the stream early, unless all of it was sent and `isComplete`. Nothing is received any longer. */
  end(isComplete: boolean): void {
    if (this.isClosed) return
    if (!isComplete || !this.#isSent) this.#link.send(abort, this.#number, "", nothing)
    this.close()
  }

  close(): void {
    this.isClosed = true
    this.unsent = 0
    this.#queue.length = 0
    this.#link.remove(this, this.#number)
  }
}

/** A connection to another node, after the handshake. Streams are opened by the node that has opened the connection. */
export class NodeLink {
  /** The streams that wait until the socket has room. */
  readonly waiting = new Set<LinkStream>()
  readonly #frames: Frames
  readonly #accept: ((stream: LinkStream) => StreamHandler) | undefined
  readonly #streams = new Map<number, LinkStream>()
  #last = 0
  #count = 0
  #isEnding = false

  /** `accept` handles the streams of the other node. `idleTimeout` is the time without a stream after which the connection is closed. */
  constructor(frames: Frames, idleTimeout: number, accept?: ((stream: LinkStream) => StreamHandler) | undefined) {
    this.#frames = frames
    this.#accept = accept
    frames.maxBytes = maxFrameBytes
    frames.receive = (bytes) => this.#receive(bytes)
    const { socket } = frames
    socket.on("drain", () => this.#flush())
    socket.setTimeout(idleTimeout)
    socket.on("timeout", () => {
      if (this.#streams.size === 0) socket.destroy()
    })
    socket.on("close", () => {
      for (const stream of Array.from(this.#streams.values())) this.#close(stream)
    })
  }

  /** Whether the other node has opened the connection. */
  get isAccepted(): boolean {
    return this.#accept !== undefined
  }

  /** Whether a stream can be opened. */
  get isOpen(): boolean {
    return !this.#isEnding && this.#frames.socket.writable && this.#count < maxFrames && this.#streams.size < maxStreams
  }

  get hasRoom(): boolean {
    return !this.#frames.socket.writableNeedDrain
  }

  /** Opens a stream. */
  open(handler: StreamHandler): LinkStream {
    const stream = new LinkStream(this, ++this.#last, handler)
    this.#streams.set(this.#last, stream)
    return stream
  }

  send(kind: number, stream: number, head: string, bytes: Uint8Array): void {
    this.#count++
    const headBytes = Buffer.byteLength(head)
    const frame = Buffer.allocUnsafe(prefixBytes + headBytes + bytes.length)
    frame[0] = kind
    frame.writeUInt32BE(stream, 1)
    frame.writeUInt32BE(headBytes, 5)
    frame.write(head, prefixBytes)
    frame.set(bytes, prefixBytes + headBytes)
    this.#frames.send(frame)
  }

  remove(stream: LinkStream, number: number): void {
    this.waiting.delete(stream)
    this.#streams.delete(number)
    if (this.#isEnding && !this.isAccepted && this.#streams.size === 0) this.#frames.socket.end()
  }

  /** Ends the connection when its streams have ended: the node that has opened it opens no further ones. */
  end(): void {
    this.#isEnding = true
    if (this.isAccepted) this.send(bye, 0, "", nothing)
    else if (this.#streams.size === 0) this.#frames.socket.end()
  }

  /** Closes the connection, whose other node does not follow the protocol. */
  cut(): void {
    this.#frames.socket.destroy()
  }

  #flush(): void {
    for (const stream of Array.from(this.waiting)) {
      if (!this.hasRoom) return
      this.waiting.delete(stream)
      stream.flush()
    }
  }

  #close(stream: LinkStream): void {
    stream.close()
    stream.handler.closed()
  }

  #receive(frame: Buffer): void {
    this.#count++
    if (frame.length < prefixBytes) return this.cut()
    const kind = frame[0]
    const number = frame.readUInt32BE(1)
    const headEnd = prefixBytes + frame.readUInt32BE(5)
    if (headEnd > frame.length) return this.cut()
    if (kind === bye) return this.end()
    const stream = this.#streams.get(number)
    if (kind === part || kind === last) {
      const head = frame.toString("utf8", prefixBytes, headEnd)
      // The rest of a stream that has ended here may still arrive.
      const receiver = stream ?? (head === "" ? undefined : this.#accepted(number))
      return receiver?.received(head, frame.subarray(headEnd), kind === last)
    }
    if (stream === undefined) return
    if (kind === abort) this.#close(stream)
    else if (kind === taken && frame.length === headEnd + 4) stream.addRoom(frame.readUInt32BE(headEnd))
    else this.cut()
  }

  #accepted(number: number): LinkStream | undefined {
    if (this.#accept === undefined || number <= this.#last) return undefined
    if (this.#streams.size >= maxStreams) {
      this.cut()
      return undefined
    }
    this.#last = number
    const stream = new LinkStream(this, number, { received: constVoid, closed: constVoid })
    stream.handler = this.#accept(stream)
    this.#streams.set(number, stream)
    return stream
  }
}

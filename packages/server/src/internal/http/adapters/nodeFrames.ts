/**
 * The frames of a connection between two nodes of a fleet, and the keys that protect them.
 */
import { ByteBuffer } from "@skein/runtime/ByteBuffer"
import { constVoid } from "effect/Function"
import { createCipheriv, createDecipheriv, type KeyObject } from "node:crypto"
import type { Socket } from "node:net"

const nonceBytes = 12
const tagBytes = 16

/** The keys of one connection. The number of a frame is its nonce, so that none can be repeated, left out or moved. */
export class FrameCipher {
  readonly #own: KeyObject
  readonly #other: KeyObject
  readonly #sent = Buffer.alloc(nonceBytes)
  readonly #received = Buffer.alloc(nonceBytes)
  #sentFrames = 0
  #receivedFrames = 0

  constructor(own: KeyObject, other: KeyObject) {
    this.#own = own
    this.#other = other
  }

  /** Encrypts a frame. */
  seal(bytes: Uint8Array): readonly [Uint8Array, Uint8Array] {
    this.#sent.writeUIntBE(this.#sentFrames++, nonceBytes - 6, 6)
    const cipher = createCipheriv("aes-256-gcm", this.#own, this.#sent, { authTagLength: tagBytes })
    const sealed = cipher.update(bytes)
    cipher.final()
    return [sealed, cipher.getAuthTag()]
  }

  /** Decrypts the next frame; `undefined` if it is not the one that the other node has sent. */
  open(bytes: Buffer): Buffer | undefined {
    if (bytes.length < tagBytes) return undefined
    this.#received.writeUIntBE(this.#receivedFrames++, nonceBytes - 6, 6)
    const decipher = createDecipheriv("aes-256-gcm", this.#other, this.#received, { authTagLength: tagBytes })
    decipher.setAuthTag(bytes.subarray(-tagBytes))
    const opened = decipher.update(bytes.subarray(0, -tagBytes))
    try {
      decipher.final()
    } catch {
      return undefined
    }
    return opened
  }
}

// The largest frame during the handshake, in bytes.
const maxGreetingBytes = 512

// The milliseconds without data after which the kernel checks whether the other machine is there.
const keepAliveDelay = 30_000

const uncork = (socket: Socket): void => socket.uncork()

const lengthBytes = 4

/** The frames of a socket. Four bytes before each have its length. */
export class Frames {
  readonly socket: Socket
  cipher: FrameCipher | undefined = undefined
  receive: (bytes: Buffer) => void = constVoid
  /** The largest frame that is received. */
  maxBytes = maxGreetingBytes
  readonly #pending = new ByteBuffer()

  constructor(socket: Socket) {
    this.socket = socket.setNoDelay(true).setKeepAlive(true, keepAliveDelay)
    socket.on("error", constVoid)
    socket.on("data", (chunk: Buffer) => this.#add(chunk))
  }

  /** Sends a frame, in one packet with the others of this turn of the event loop. */
  send(bytes: Uint8Array): void {
    const { cipher, socket } = this
    if (!socket.writable) return
    if (socket.writableCorked === 0) {
      socket.cork()
      process.nextTick(uncork, socket)
    }
    const parts = cipher === undefined ? [bytes] : cipher.seal(bytes)
    const length = Buffer.allocUnsafe(lengthBytes)
    length.writeUInt32BE(bytes.length + (parts[1]?.length ?? 0))
    socket.write(Buffer.concat([length, ...parts]))
  }

  /** Sends the last frame, and receives nothing further. */
  end(bytes: Uint8Array): void {
    this.receive = constVoid
    this.send(bytes)
    this.socket.destroySoon()
  }

  #add(chunk: Buffer): void {
    const pending = this.#pending
    let bytes = chunk
    if (pending.size > 0) {
      pending.add(chunk)
      bytes = Buffer.from(pending.bytes.buffer, pending.bytes.byteOffset, pending.size)
    }
    let at = 0
    while (bytes.length - at >= lengthBytes && !this.socket.destroyed) {
      const start = at + lengthBytes
      const length = bytes.readUInt32BE(at)
      if (length > this.maxBytes) return void this.socket.destroy()
      if (bytes.length - start < length) break
      at = start + length
      const frame = bytes.subarray(start, at)
      const opened = this.cipher === undefined ? frame : this.cipher.open(frame)
      if (opened === undefined) return void this.socket.destroy()
      this.receive(opened)
    }
    if (at === 0 && pending.size > 0) return
    // The frames that were received refer to its memory.
    pending.clear(0)
    pending.add(bytes.subarray(at))
  }
}

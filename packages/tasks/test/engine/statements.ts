/**
 * Intercepts statements on their way to PostgreSQL, in the bytes that a client sends: in PostgreSQL's protocol
 * (https://www.postgresql.org/docs/current/protocol-message-formats.html).
 */
import * as Effect from "effect/Effect"
import { Socket } from "node:net"

type Write = (this: Socket, ...args: [chunk: unknown, ...rest: Array<unknown>]) => boolean

interface Interceptor {
  readonly like: RegExp
  readonly sends: (socket: Socket, send: () => void) => void
}

const interceptors = new Set<Interceptor>()

/** The texts of the prepared statements of each connection, by name. */
const prepared = new WeakMap<Socket, Map<string, string>>()

/** Returns the text of the statement that a chunk executes, or `undefined`. */
const statementIn = (socket: Socket, chunk: unknown): string | undefined => {
  if (!(chunk instanceof Uint8Array)) return undefined
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const texts = prepared.get(socket) ?? new Map<string, string>()
  prepared.set(socket, texts)
  let text: string | undefined
  for (let start = 0; start + 5 <= bytes.length;) {
    const end = start + 1 + bytes.readUInt32BE(start + 1)
    const [first = "", second = ""] = bytes.toString("utf8", start + 5, end).split("\0", 2)
    const type = String.fromCharCode(bytes[start]!)
    if (type === "P") texts.set(first, second)
    if (type === "B") text = texts.get(second)
    if (type === "Q") text = first
    start = end
  }
  return text
}

// From the start, since a prepared statement is sent with its text only once.
const prototype = Socket.prototype as unknown as { write: Write }
const { write } = prototype
prototype.write = function(...args) {
  const text = statementIn(this, args[0])
  const interceptor = text === undefined ? undefined : [...interceptors].find(({ like }) => like.test(text))
  if (interceptor === undefined) return write.apply(this, args)
  interceptors.delete(interceptor)
  interceptor.sends(this, () => void write.apply(this, args))
  return true
}

/** Intercepts the first statement that matches, while the scope is open. */
export const first = (like: RegExp, sends: Interceptor["sends"]) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const interceptor = { like, sends }
      interceptors.add(interceptor)
      return interceptor
    }),
    (interceptor) => Effect.sync(() => interceptors.delete(interceptor))
  )

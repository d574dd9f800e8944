/**
 * The requests that other nodes of a fleet have passed on to this one, and its answers.
 */
import type { Principal } from "@skein/runtime/Connection"
import type * as Context from "effect/Context"
import type { Body, BodyCounter, Headers, HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { PassedHead } from "../sessions/nodeRequests.ts"
import { BodyCollector } from "./bodyCollector.ts"
import { decode } from "./node.ts"
import type { LinkStream, StreamHandler } from "./nodeLink.ts"
import { highWaterMark, largeAnswer, StreamingAnswer } from "./streamingAnswer.ts"

/** The head of an answer. */
interface AnswerHead {
  readonly status: number
  readonly headers: Headers
}

// The milliseconds in which the body of a request must arrive.
const bodyTimeout = 60_000

/** A request that another node has passed on. */
export class PassedRequest implements HttpRequest {
  readonly isPassed = true
  size = 0
  context: Context.Context<never> | undefined = undefined
  readonly principal: Principal | undefined
  readonly method: string
  readonly path: string
  readonly query: string | undefined
  readonly address: string | undefined
  readonly headers: Headers
  readonly #stream: Pick<LinkStream, "take">
  #parts: Array<readonly [bytes: Buffer, isLast: boolean]> = []
  #bytes = 0
  #isAborted = false
  #body: BodyCollector | undefined = undefined

  constructor(head: PassedHead, stream: Pick<LinkStream, "take">) {
    this.principal = head.principal
    this.method = head.method
    this.path = head.path
    this.query = head.query
    this.address = head.address
    this.headers = head.headers
    this.#stream = stream
  }

  get params(): ReadonlyArray<string> | undefined {
    const names = Object.keys(this.headers).filter((name) => name.startsWith("mcp-param-"))
    return names.length === 0 ? undefined : names
  }

  header(name: string): string | undefined {
    return Object.hasOwn(this.headers, name) ? this.headers[name] : undefined
  }

  read(limit: number, done: (body: Body) => void, counter: BodyCounter): void {
    this.#body = new BodyCollector(this, limit, done, counter)
    for (const [bytes, isLast] of this.#parts.splice(0)) this.add(bytes, isLast)
    if (this.#isAborted) this.abort()
  }

  /** Adds a part of the body. */
  add(bytes: Buffer, isLast: boolean): void {
    if (this.#body === undefined) return void this.#parts.push([bytes, isLast])
    this.#bytes += bytes.length
    this.#body.add(bytes, isLast ? this.#bytes : Number.NaN)
    if (isLast) this.#body.complete(decode)
    else if (!this.#body.isOver) this.#stream.take(bytes.length)
  }

  /** The rest of the body will not arrive. */
  abort(): void {
    this.#isAborted = true
    this.#body?.end({ fault: "Aborted" })
  }
}

const encoder = /* @__PURE__ */ new TextEncoder()

const nothing = new Uint8Array(0)

/** The answer to it. */
class LinkAnswer extends StreamingAnswer implements HttpAnswer {
  readonly #stream: LinkStream

  constructor(stream: LinkStream) {
    super()
    this.#stream = stream
  }

  get slow(): boolean {
    return !this.isClosed && this.unsent >= highWaterMark
  }

  get unsent(): number {
    return this.#stream.unsent
  }

  reply(status: number, headers: Headers, body: string): void {
    if (this.isClosed) return
    if (body.length > largeAnswer) return this.replyInParts(status, headers, body)
    this.#complete()
    this.#stream.send(this.#head(status, headers), encoder.encode(body), true)
  }

  open(status: number, headers: Headers): void {
    if (!this.isClosed) this.#stream.send(this.#head(status, headers), nothing, false)
  }

  #head(status: number, headers: Headers): string {
    return JSON.stringify({ status, headers: this.withAdded(headers) } satisfies AnswerHead)
  }

  protected enqueue(bytes: Uint8Array): void {
    this.#stream.send("", bytes, false)
  }

  end(): void {
    if (this.isClosed) return
    this.#complete()
    this.#stream.send("", nothing, true)
    this.took()
  }

  abort(): void {
    this.#complete()
    this.#stream.end(false)
    this.took()
  }

  onClose(left: () => void): void {
    if (!this.isClosed) this.closeListener = left
  }

  /** A part that waited was sent. */
  sent(): void {
    if (!this.slow) this.took()
  }

  /** The other node has given the answer up. */
  left(): void {
    const onClose = this.closeListener
    this.#complete()
    this.took()
    onClose?.()
  }

  #complete(): void {
    this.isClosed = true
    this.closeListener = undefined
  }
}

/** Parses the head of a request or an answer. One that is not valid has no members. */
export const parseHead = (text: string): Partial<PassedHead & AnswerHead> => {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

/** Handles a stream of another node as a request. */
export const receive = (
  stream: LinkStream,
  handle: (request: HttpRequest, answer: HttpAnswer) => void
): StreamHandler => {
  const answer = new LinkAnswer(stream)
  let request: PassedRequest | undefined
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => {
    clearTimeout(timer)
    request?.abort()
    answer.left()
  }
  return {
    received: (text, bytes, isLast) => {
      if (request !== undefined) {
        if (isLast) clearTimeout(timer)
        return request.add(bytes, isLast)
      }
      const { headers, method, path, ...head } = parseHead(text)
      if (method === undefined || path === undefined || headers === undefined) return stream.end(false)
      request = new PassedRequest({ ...head, headers, method, path }, stream)
      request.add(bytes, isLast)
      if (!isLast) {
        timer = setTimeout(() => {
          stream.end(false)
          stop()
        }, bodyTimeout)
      }
      handle(request, answer)
    },
    closed: stop,
    sent: () => answer.sent()
  }
}

/** An adapter without sockets, for tests that need exact counts. */
import type { Body, Headers, HttpAnswer, HttpRequest } from "@skein/server/Http"
import * as Effect from "effect/Effect"

/** The headers of every request. */
const always: Headers = {
  host: "localhost",
  "content-type": "application/json",
  accept: "application/json, text/event-stream"
}

export class FakeRequest implements HttpRequest {
  size = 0
  readonly path = "/mcp"
  readonly params = undefined
  readonly method: string
  readonly #headers: { readonly [name: string]: string | undefined }
  readonly address: string | undefined
  #text: string

  constructor(
    method: string,
    headers: { readonly [name: string]: string | undefined },
    body?: unknown,
    address?: string
  ) {
    this.method = method
    this.address = address
    this.#headers = headers
    this.#text = body === undefined ? "" : JSON.stringify(body)
  }

  header(name: string): string | undefined {
    return this.#headers[name] ?? always[name]
  }

  read(_limit: number, done: (body: Body) => void): void {
    const text = this.#text
    this.#text = ""
    done({ text })
  }
}

export class FakeAnswer implements HttpAnswer {
  isClosed = false
  slow = false
  status = 0
  headers: Headers = {}
  text = ""
  drained = Effect.void
  left: (() => void) | undefined = undefined

  addHeaders(): void {}

  reply(status: number, headers: Headers, body: string): void {
    if (this.isClosed) return
    this.status = status
    this.headers = headers
    this.text = body
    this.isClosed = true
  }

  open(status: number, headers: Headers): void {
    this.status = status
    this.headers = headers
  }

  write(chunk: string): boolean {
    if (!this.isClosed) this.text += chunk
    return !this.slow
  }

  end(): void {
    this.isClosed = true
  }

  abort(): void {
    this.isClosed = true
  }

  onClose(left: () => void): void {
    this.left = left
  }

  /** Disconnects the client. */
  leave(): void {
    this.isClosed = true
    this.left?.()
  }
}

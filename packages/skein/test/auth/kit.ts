/** A protected server with a real authorization server, and clients that sign in at it. */
import { AsyncServer, type Definition } from "skein"
import { AsyncClient } from "skein/client"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import {
  type Credentials,
  DevServer,
  type DevServerOptions,
  protect,
  type ProtectOptions,
  TokenVerifier
} from "skein/auth"

/** A port that was free a moment ago: the resource of a server names its port before it listens. */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

/** The values that a test works with. They are closed together. */
export class Started implements AsyncDisposable {
  readonly dev: DevServer
  readonly url: string
  readonly #closed: Array<() => Promise<unknown>> = []

  constructor(dev: DevServer, url: string) {
    this.dev = dev
    this.url = url
  }

  closeFirst(close: () => Promise<unknown>): void {
    this.#closed.unshift(close)
  }

  /** Connects a client with these credentials, or with a token for these scopes. */
  async connect(by: Credentials | ReadonlyArray<string>): Promise<AsyncClient> {
    const options = Array.isArray(by)
      ? { headers: { authorization: `Bearer ${await this.dev.issueToken({ resource: this.url, scopes: by })}` } }
      : { credentials: by as Credentials }
    const client = await AsyncClient.connect({ url: this.url, ...options })
    this.closeFirst(() => client.close())
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closed) await close()
  }
}

export interface StartOptions {
  readonly dev?: DevServerOptions
  readonly verify?: (issuer: string) => TokenVerifier.TokenVerifier
  readonly protect?: Partial<ProtectOptions>
  readonly definitions?: ReadonlyArray<Definition>
}

/** Starts both servers. `whoami` returns the id of the principal. */
export const start = async ({ definitions = [], dev: devOptions, protect: options, verify }: StartOptions = {}) => {
  const dev = await DevServer.start(devOptions)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/mcp`
  const protection = protect({
    resource: url,
    verify: verify === undefined ? TokenVerifier.jwt({ issuer: dev.issuer }) : verify(dev.issuer),
    maxFailures: 0,
    ...options
  })
  const server = new AsyncServer({ name: "tea", version: "1.0.0" })
    .tool("whoami", {}, (_, { principal }) => principal!.id)
    .use(...definitions)
  const { close } = await server.listen({ port, protection })
  const started = new Started(dev, url)
  started.closeFirst(() => dev.close())
  started.closeFirst(close)
  return started
}

/** The text of the result of a tool. */
export const textOf = ({ content }: { readonly content: ReadonlyArray<object> }): unknown =>
  content.map((block) => (block as { readonly text?: string }).text).join()

/** The error that a promise rejects with. */
export const errorOf = async <E extends Error = Error>(promise: Promise<unknown>): Promise<E> =>
  promise.then(() => {
    throw new Error("the promise resolved")
  }, (error: E) => error)

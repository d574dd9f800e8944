/**
 * The HTTP client over `node:http`, the cheapest way to make a request on Node: no `fetch`, no web streams, one write
 * per request.
 */
import { clip } from "@skein/protocol/Text"
import { ByteBuffer } from "@skein/runtime/ByteBuffer"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type * as Http from "node:http"
import type * as Https from "node:https"
import type { Socket } from "node:net"
import { connectionLost, openFailed } from "../base/errors.ts"
import { bodyTooLong, type HttpClient, type HttpRequest, type HttpResponse, withoutBom } from "./httpClient.ts"

/** The options of the connections. */
export interface Options {
  /**
   * The agent that opens the sockets, for a proxy or for client certificates:
   * `new https.Agent({ ca, cert, key, keepAlive: true })`. The transport does not close it. By default each connection
   * has an agent of its own, with at most 256 sockets and idle ones closed after 4 seconds. Give one with other bounds
   * for more requests at the same time. A stream of a subscription or of a session holds a socket while it is open.
   *
   * An agent of a connection's own uses the proxy of Node's global agent: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, if
   * `NODE_USE_ENV_PROXY` is `1` (Node 22.21, 24.5 and later). It trusts the certificates that Node trusts, those of
   * `NODE_EXTRA_CA_CERTS` included.
   */
  readonly agent?: Http.Agent | Https.Agent | undefined
}

/** The bounds of an agent of a connection's own. */
const agentBounds = {
  /** How many sockets it has at most. A request beyond them waits for one, within its timeout. */
  maxSockets: 256,
  /**
   * How long an idle socket stays open, in milliseconds: less than the 5 seconds after which many servers close theirs.
   * Where the server announces its own time (`Keep-Alive: timeout=…`), one second less than that, if it is shorter.
   */
  idleTimeout: 4_000
}

/** The bounds of an agent, with these or other values. */
export type AgentBounds = Readonly<typeof agentBounds>

const text = (cause: unknown): string => cause instanceof Error && cause.message !== "" ? cause.message : String(cause)

const brokenOff = (cause: unknown): TransportError =>
  connectionLost(`The response body broke off: ${text(cause)}`, cause)

/** The target of a URL in the form that `node:http` takes. */
const targetOf = (url: URL) => {
  const { host, hostname, pathname, port, protocol, search } = url
  const secure = protocol === "https:"
  return {
    url,
    // Loaded on first use, since loading TLS takes time. It is not imported: an import reads all exports of
    // `node:http`, and one of them loads the whole of `fetch`.
    module: process.getBuiltinModule(secure ? "node:https" : "node:http"),
    secure,
    hostname: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname,
    port: port === "" ? (secure ? 443 : 80) : Number(port),
    path: pathname + search,
    /** The value of the header `Host`. */
    host
  }
}

type Target = ReturnType<typeof targetOf>

/**
 * Resumes a fiber in the next tick after the end of a body. Node returns the connection to the agent in that tick: a
 * fiber that resumed earlier and sent another request would open a second connection.
 */
const resumeAfterBody = <A>(resume: (effect: A) => void, effect: A): void => process.nextTick(resume, effect)

class NodeResponse implements HttpResponse {
  readonly status: number
  readonly #body: Http.IncomingMessage

  constructor(body: Http.IncomingMessage) {
    this.status = body.statusCode!
    this.#body = body
  }

  header(name: string): string | undefined {
    const value = this.#body.headers[name]
    return typeof value === "object" ? value.join(", ") : value
  }

  /** The error if the body cannot be read; `undefined` if it can be. */
  get #broken(): TransportError | undefined {
    const body = this.#body
    const coding = body.headers["content-encoding"]
    if (coding !== undefined && coding !== "" && coding !== "identity") {
      return connectionLost(`The response body has the content coding ${clip(coding, 32)}, which was not requested`)
    }
    return body.destroyed ? connectionLost("The response body broke off, or was read before") : undefined
  }

  /** Passes the chunks of the body on, and resumes with the result at its end, or with the first error. */
  #read<A>(
    onChunk: (chunk: Buffer) => TransportError | undefined,
    result: () => Effect.Effect<A>
  ): Effect.Effect<A, TransportError> {
    return Effect.callback((resume) => {
      const body = this.#body
      const broken = this.#broken
      if (broken !== undefined) return resume(Effect.fail(broken))
      body.on("data", (chunk: Buffer) => {
        let wrong: Effect.Effect<never, TransportError> | undefined
        try {
          const error = onChunk(chunk)
          if (error !== undefined) wrong = Effect.fail(error)
        } catch (defect) {
          wrong = Effect.die(defect)
        }
        if (wrong === undefined) return
        body.removeAllListeners("data").removeAllListeners("end")
        resume(wrong)
      })
      body.on("end", () => resumeAfterBody(resume, result()))
      body.on("error", (cause) => resume(Effect.fail(brokenOff(cause))))
    })
  }

  text(maxBytes: number): Effect.Effect<string, TransportError> {
    if (Number(this.header("content-length")) > maxBytes) return Effect.fail(bodyTooLong(maxBytes))
    const buffer = new ByteBuffer()
    return this.#read((chunk) => {
      if (buffer.size + chunk.length > maxBytes) return bodyTooLong(maxBytes)
      buffer.add(chunk, true)
      return undefined
    }, () => Effect.succeed(withoutBom(buffer.text)))
  }

  chunks(onChunk: (chunk: Uint8Array) => TransportError | undefined): Effect.Effect<void, TransportError> {
    return this.#read(onChunk, () => Effect.void)
  }
}

/**
 * Whether the request was not sent completely although there was a connection. Then the server has certainly not begun
 * to handle it.
 *
 * This holds if a write failed: bytes reach the kernel in order, so at least the last of them were not sent, and no
 * server handles an incomplete request. A reused connection that the server had already closed completely fails in this
 * way.
 *
 * It does not hold if a reused connection ends without a byte of a response. Most often the server closed it because it
 * was idle, while the request was on its way. But the same happens if the server received the request and crashed. To
 * make this rare, idle connections are closed earlier than servers close them.
 */
const isUnfinished = (cause: unknown): boolean | undefined =>
  (cause as NodeJS.ErrnoException).syscall === "write" || undefined

/** For a name with several addresses Node tries them all, and the `AggregateError` has no message. */
const unreachable = (host: string, cause: unknown): string =>
  `No connection to ${host}: ${text(cause instanceof AggregateError ? cause.errors.at(-1) : cause)}`

/** One request, from opening its socket to the end of the response body. */
class Exchange {
  readonly #target: Target
  readonly #httpRequest: HttpRequest
  readonly #client: NodeClient
  #request: Http.ClientRequest | undefined = undefined
  #incoming: Http.IncomingMessage | undefined = undefined
  #connected = false

  constructor(target: Target, request: HttpRequest, client: NodeClient) {
    this.#target = target
    this.#httpRequest = request
    this.#client = client
  }

  readonly response: Effect.Effect<NodeResponse, TransportError> = Effect.callback((resume) => {
    const { host, hostname, module, path, port } = this.#target
    const agent = this.#client.agentFor(this.#target)
    const { body, headers, method } = this.#httpRequest
    // Node writes a list of headers as it is. From an object it would build a map first.
    const list = headers["host"] === undefined ? ["Host", host] : []
    for (const name in headers) list.push(name, headers[name]!)
    if (body !== undefined) list.push("Content-Length", String(Buffer.byteLength(body)))
    const isProxied = proxyOf(agent) !== undefined
    let request: Http.ClientRequest
    try {
      // To a proxy, Node changes the path and adds headers, which it cannot do with a list.
      const given = isProxied ? pairsOf(list) : list
      request = module.request({ agent, host: hostname, port, path, method, headers: given })
    } catch (cause) {
      return resume(Effect.fail(openFailed(`The request could not be made: ${text(cause)}`, cause)))
    }
    this.#request = request
    const fail = (cause: unknown) => {
      // Once there is a response, the reader of its body receives the error.
      if (this.#incoming !== undefined) return
      resume(Effect.fail(
        this.#connected
          ? connectionLost(`No response from ${host}: ${text(cause)}`, cause, undefined, isUnfinished(cause))
          : openFailed(unreachable(host, cause), cause, true)
      ))
    }
    request.on("socket", (socket) => {
      const { connecting, encrypted, secureConnecting } = socket as typeof socket & {
        readonly encrypted?: boolean | undefined
        readonly secureConnecting?: boolean | undefined
      }
      if (!connecting && secureConnecting !== true) {
        this.#connected = !socket.destroyed
        return
      }
      this.#client.onSocket(socket)
      socket.once(encrypted === true ? "secureConnect" : "connect", () => {
        this.#connected = true
      })
    })
    request.on("response", (reply) => {
      this.#incoming = reply
      resume(Effect.succeed(new NodeResponse(reply)))
    })
    request.on("error", fail)
    // The request closes without an error if the server switches to another protocol.
    request.on("close", () => {
      if (this.#incoming === undefined) fail(new Error("the connection was closed"))
    })
    request.end(body)
  })

  /**
   * Ends the exchange. A body that has already arrived is discarded, so that the connection can be reused. Otherwise
   * the connection is destroyed.
   */
  readonly finish = (): Effect.Effect<void> | undefined => {
    const reply = this.#incoming
    if (reply === undefined) {
      this.#request?.destroy()
    } else if (!reply.readableEnded && !reply.destroyed) {
      // The reader of the body must receive nothing from now on.
      if (reply.listenerCount("data") > 0) reply.removeAllListeners("data").destroy()
      else reply.resume()
      // The headers and the end of a short body arrive in one chunk, but Node emits them one after the other. The next
      // tick shows whether the body is complete.
      if (!reply.complete && !reply.destroyed) process.nextTick(() => void (reply.complete || reply.destroy()))
    }
    return undefined
  }
}

/**
 * The proxy settings of Node's global agent. Node 22.21 and 24.5 take them from the environment, with
 * `NODE_USE_ENV_PROXY=1` or `--use-env-proxy`, and apply them to the global agent only.
 */
const proxyOf = (agent: Http.Agent): Http.AgentOptions["proxyEnv"] =>
  (agent as { readonly options?: Http.AgentOptions | undefined }).options?.proxyEnv

const pairsOf = (list: ReadonlyArray<string>): Readonly<Record<string, string>> => {
  const pairs: Record<string, string> = {}
  for (let at = 0; at < list.length; at += 2) pairs[list[at]!] = list[at + 1]!
  return pairs
}

const isUnused = ({ freeSockets, requests, sockets }: Http.Agent): boolean =>
  [sockets, freeSockets, requests].every((held) => Object.keys(held).length === 0)

class NodeClient implements HttpClient {
  readonly #given: Http.Agent | undefined
  readonly #bounds: AgentBounds
  #target: Target | undefined = undefined
  #agent: Http.Agent | undefined = undefined
  // The agent for TLS is kept while it is unused, since it caches TLS sessions.
  #tlsAgent: Https.Agent | undefined = undefined

  constructor({ agent }: Options, bounds: AgentBounds) {
    this.#given = agent
    this.#bounds = bounds
  }

  /** The agent for a target. */
  agentFor({ module, secure }: Target): Http.Agent {
    const known = this.#given ?? (secure ? this.#tlsAgent : this.#agent)
    if (known !== undefined) return known
    // The timeout closes idle connections only: Node ignores it on a connection in use.
    const { idleTimeout, maxSockets } = this.#bounds
    const made = new module.Agent({
      keepAlive: true,
      maxSockets,
      timeout: idleTimeout,
      proxyEnv: proxyOf(module.globalAgent)
    })
    if (secure) this.#tlsAgent = made as Https.Agent
    else this.#agent = made
    return made
  }

  /** The target of a URL. The first one is cached, since nearly all requests have the same URL. */
  #targetOf(url: URL): Target {
    if (this.#target?.url === url) return this.#target
    const target = targetOf(url)
    this.#target ??= target
    return target
  }

  exchange<A, E>(
    request: HttpRequest,
    use: (reply: HttpResponse) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | TransportError> {
    return Effect.suspend(() => {
      const exchange = new Exchange(this.#targetOf(request.url), request, this)
      return Effect.onExitPrimitive(Effect.flatMap(exchange.response, use), exchange.finish)
    })
  }

  /**
   * Watches a new socket. When the last one closes, the agent is dropped, since it takes more memory than the rest of
   * an idle HTTP client.
   */
  onSocket(socket: Socket): void {
    // The listener is made here, because its closure would otherwise keep the request alive as long as the socket.
    socket.once("close", () => {
      if (this.#agent !== undefined && isUnused(this.#agent)) this.#agent = undefined
    })
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.#agent?.destroy()
      this.#tlsAgent?.destroy()
    })
  }
}

/** Makes an HTTP client with its own connections. `close` closes them all. Tests give other bounds. */
export const make = (options: Options = {}, bounds = agentBounds): HttpClient => new NodeClient(options, bounds)

/**
 * A load balancer, for the example only: each request goes to the next node, whatever its session. It asks `/readyz` of
 * each node, and repeats a request at another node only if it could not connect.
 */
import { type IncomingMessage, request as send, type ServerResponse } from "node:http"

/** How often nodes are asked whether they are ready, in milliseconds. */
const probeInterval = 200

/** How many answers the page shows. */
const maxAnswers = 24

/** A node, as the balancer sees it. */
export interface Target {
  readonly name: string
  readonly port: number
  isReady: boolean
  answers: number
}

/** An answer of a node. */
export interface Answer {
  readonly at: number
  readonly node: string
  /** The method of HTTP, or the method and the tool of a message. */
  readonly what: string
  /** The first characters of the session; undefined without one. */
  readonly session: string | undefined
  readonly status: number
}

/** The name of the tool that a message calls, or its method. */
const nameOf = ({ method }: IncomingMessage, body: Buffer): string => {
  if (body.length === 0) return method!
  try {
    const { method, params, result } = JSON.parse(body.toString())
    return result !== undefined ? "an answer of the client" : method === "tools/call" ? `call ${params.name}` : method
  } catch {
    return method!
  }
}

export class Balancer {
  readonly #targets = new Map<string, Target>()
  readonly answers: Array<Answer> = []
  readonly #probe = setInterval(() => void this.#askAll(), probeInterval)
  #next = 0

  get targets(): ReadonlyArray<Target> {
    return [...this.#targets.values()]
  }

  /** Sends requests to a node once it is ready. */
  async add(name: string, port: number): Promise<void> {
    const target: Target = { name, port, isReady: false, answers: 0 }
    this.#targets.set(name, target)
    while (!target.isReady) {
      await this.#ask(target)
      if (!target.isReady) await new Promise((resolve) => setTimeout(resolve, probeInterval))
    }
  }

  remove(name: string): void {
    this.#targets.delete(name)
  }

  close(): void {
    clearInterval(this.#probe)
  }

  async #ask(target: Target): Promise<void> {
    const ready = fetch(`http://127.0.0.1:${target.port}/readyz`, { signal: AbortSignal.timeout(1_000) })
    target.isReady = await ready.then(({ status }) => status === 200, () => false)
  }

  async #askAll(): Promise<void> {
    await Promise.all(this.targets.map((target) => this.#ask(target)))
  }

  /** Passes a request on. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Array<Buffer> = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      // The client has gone.
      return
    }
    this.#pass(request, response, Buffer.concat(chunks), this.targets.length)
  }

  #pass(request: IncomingMessage, response: ServerResponse, body: Buffer, attempts: number): void {
    const ready = this.targets.filter(({ isReady }) => isReady)
    // If none has answered in time, any may be busy.
    const among = ready.length > 0 ? ready : this.targets
    const target = among[this.#next++ % among.length]
    if (target === undefined || attempts === 0) {
      response.writeHead(503, { "retry-after": "1" }).end()
      return
    }
    const { headers, method, url: path } = request
    const session = headers["mcp-session-id"]
    const sent = send({ host: "127.0.0.1", port: target.port, method, path, headers, agent: false })
    sent.once("response", (answer) => {
      const { statusCode: status = 502 } = answer
      target.answers++
      const { "mcp-session-id": opened = session } = answer.headers
      this.answers.unshift({
        at: Date.now(),
        node: target.name,
        what: nameOf(request, body),
        session: typeof opened === "string" ? opened.slice(-6) : undefined,
        status
      })
      this.answers.length = Math.min(this.answers.length, maxAnswers)
      // They describe the connection to the node, which stays open longer than that of the client.
      const { connection: _, "keep-alive": __, ...rest } = answer.headers
      response.writeHead(status, rest)
      response.flushHeaders()
      answer.on("error", () => response.destroy())
      answer.pipe(response)
    })
    sent.on("error", (error: NodeJS.ErrnoException) => {
      if (response.headersSent) response.destroy()
      else if (error.code === "ECONNREFUSED") {
        target.isReady = false
        this.#pass(request, response, body, attempts - 1)
      } // The node has the request, and may have handled it: to repeat it could run a tool twice.
      else response.writeHead(502).end()
    })
    response.once("close", () => sent.destroy())
    sent.end(body)
  }
}

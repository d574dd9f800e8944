/**
 * A client with a session of 2025-11-25, which records what it is sent. It sends a request once, except where a client must
 * send it again: a GET after its stream has ended, and a POST that a node has refused.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { type Event, exchange, type Json, type Reply } from "./exchange.ts"
import type { Records } from "./records.ts"

const revision = "2025-11-25"

/** The levels that clients set. The tool `log` sends a message of level `error`: with `false` the client does not want it. */
export const levels = { info: true, error: true, critical: false, emergency: false } as const
export type Level = keyof typeof levels

/** Milliseconds after which a request that is not answered is a problem, and those before it is sent again. */
const answerTimeout = 60_000
const retryDelay = 200

/** How often a stream is resumed that ends without the answer of its call. */
const maxResumptions = 60

export interface Outcome {
  /** The text of the result. */
  readonly text: string | undefined
  /** The reason for a missing result. */
  readonly why: string
  /** Whether the call has not run. */
  readonly isRefused: boolean
  /** How many log messages preceded the result. */
  readonly logs: number
}

const place = (id: string): readonly [stream: string, event: number] => {
  const [stream, event] = id.split("-")
  return [stream!, Number(event)]
}

export class Session {
  readonly name: string
  readonly #port: number
  readonly #records: Records
  #id = ""
  #requests = 0
  #isOver = false
  /** Disconnects from the stream of the session, which the client opens again. */
  leave: () => void = () => {}
  /** The URIs by whether they are subscribed to; undefined while that is unknown. */
  readonly subscriptions = new Map<string, boolean | undefined>()
  /** The level that was acknowledged; undefined while it is unknown. */
  level: Level | undefined

  /** `name` is that of no other session. */
  constructor(name: string, port: number, records: Records) {
    this.name = name
    this.#port = port
    this.#records = records
  }

  get id(): string {
    return this.#id
  }

  /** Whether its client has begun to end it. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether its client waits for no notification. */
  get isQuiet(): boolean {
    return [...this.subscriptions.keys()].every((uri) => !this.#records.touches.has(uri))
  }

  get #headers() {
    return { "mcp-session-id": this.#id, "mcp-protocol-version": revision }
  }

  uri(number: number): string {
    return `walk://${this.name}/${number}`
  }

  /** Opens the session. An `initialize` that fails may leave a record whose id no client knows. */
  async open(): Promise<void> {
    const body = {
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: {
        protocolVersion: revision,
        capabilities: { elicitation: {} },
        clientInfo: { name: this.name, version: "1" }
      }
    }
    for (;;) {
      const from = this.#records.now
      const reply = await exchange(this.#port, { method: "POST", body })
      const id = reply.headers["mcp-session-id"]
      if (reply.status === 200 && typeof id === "string") {
        this.#id = id
        break
      }
      this.#records.count("initialize without an answer")
      this.#records.unexpected(`status ${reply.status} of initialize`, from)
      await sleep(retryDelay)
    }
    await this.#notify({ jsonrpc: "2.0", method: "notifications/initialized" })
    void this.listen()
  }

  /** Posts a message without an answer until a node has accepted it. */
  async #notify(body: Json): Promise<void> {
    for (;;) {
      const from = this.#records.now
      const { status } = await this.#exchange(this.#port, body)
      if (status === 202 || status === 404) return
      this.#records.unexpected(`status ${status} of a POST without a request`, from)
      await sleep(retryDelay)
    }
  }

  async #exchange(port: number, body: Json, onEvent: (event: Event) => void = () => {}): Promise<Reply> {
    const from = this.#records.now
    const signal = AbortSignal.timeout(answerTimeout)
    const reply = await exchange(port, { method: "POST", headers: this.#headers, body, onEvent, signal })
    if (signal.aborted) {
      this.#records.problem(`${body.method ?? "an answer"} was not answered since ${from.toFixed(0)} ms`)
    }
    this.#check(body.method ?? "an answer", reply.status)
    return reply
  }

  /** 404 means that the session has ended, and 400 that the client has made a mistake. */
  #check(what: string, status: number): void {
    if (status === 404 && !this.#isOver) this.#records.problem(`404 for the live session ${this.name}: ${what}`)
    if (status === 400) this.#records.problem(`400 for ${what} of session ${this.name}`)
  }

  /**
   * Sends a request, and returns its response. With `leaves` it disconnects after the first event, and resumes.
   */
  async request(
    method: string,
    params: Json,
    { leaves = false, port = this.#port }: { readonly leaves?: boolean; readonly port?: number } = {}
  ): Promise<Outcome & { readonly response: Json }> {
    const id = ++this.#requests
    let response: Json
    let last: string | undefined
    let logs = 0
    const leaving = new AbortController()
    const onEvent = (event: Event): void => {
      const { json } = event
      if (json !== undefined && last !== undefined && event.id !== undefined) this.#checkOrder(last, event.id)
      last = event.id ?? last
      if (json === undefined) return
      if (json.method === "elicitation/create") {
        const name = String(json.params.message).toUpperCase()
        void this.#notify({ jsonrpc: "2.0", id: json.id, result: { action: "accept", content: { name } } })
      } else if (json.method === "notifications/message") logs++
      else if (json.id === id && json.method === undefined) {
        if (response !== undefined) this.#records.problem(`request ${id} of session ${this.name} was answered twice`)
        response = json
      }
      if (leaves) leaving.abort()
    }
    const body = { jsonrpc: "2.0", id, method, params: { ...params, _meta: { progressToken: id } } }
    const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(answerTimeout)])
    const reply = await exchange(port, { method: "POST", headers: this.#headers, body, onEvent, signal })
    this.#check(method, reply.status)
    response ??= reply.json
    for (let attempt = 0; response === undefined && last !== undefined; attempt++) {
      if (attempt === maxResumptions) {
        this.#records.problem(`request ${id} of session ${this.name} has no answer, and its stream has no end`)
        break
      }
      await sleep(retryDelay)
      const headers = { ...this.#headers, "last-event-id": last }
      const timeout = AbortSignal.timeout(answerTimeout)
      const { status } = await exchange(port, { method: "GET", headers, onEvent, signal: timeout })
      this.#records.count("streams of calls resumed")
      if (status === 404) this.#check("a GET that resumes a call", status)
      if (status !== 200 && status !== 503 && status !== 502 && status !== 0) {
        return { response: undefined, text: undefined, logs, isRefused: false, why: `resumed with status ${status}` }
      }
    }
    const text = response?.result === undefined ? undefined : response.result.content?.[0]?.text ?? ""
    const isRefused = reply.status === 503
    const why = response?.error === undefined || isRefused
      ? `status ${reply.status}${reply.isComplete ? "" : ", incomplete"}`
      : `error ${response.error.code}: ${response.error.message}`
    return { response, text: response?.result?.isError === true ? undefined : text, logs, isRefused, why }
  }

  /** Calls a tool with a key, and records the outcome. Returns the text. */
  async call(
    name: string,
    args: { readonly key: string; readonly milliseconds?: number },
    expected: string,
    options: { readonly leaves?: boolean; readonly port?: number } = {}
  ): Promise<void> {
    const from = this.#records.now
    const { isRefused, text, why } = await this.request("tools/call", { name, arguments: args }, options)
    const { answered, failures } = this.#records
    if (text === undefined) {
      failures.push({ key: args.key, why: `${name}: ${why}`, isRefused, from, to: this.#records.now })
      return
    }
    answered.set(args.key, (answered.get(args.key) ?? 0) + 1)
    if (text !== expected) this.#records.problem(`call ${args.key} returned ${text} instead of ${expected}`)
  }

  /** Subscribes to a resource, or ends that. Returns whether it was acknowledged. */
  async subscribe(uri: string, isWanted: boolean): Promise<boolean> {
    this.subscriptions.set(uri, undefined)
    const { response } = await this.request(isWanted ? "resources/subscribe" : "resources/unsubscribe", { uri })
    if (response?.result === undefined) return false
    this.subscriptions.set(uri, isWanted)
    return true
  }

  async setLevel(level: Level): Promise<boolean> {
    this.level = undefined
    const { response } = await this.request("logging/setLevel", { level })
    if (response?.result === undefined) return false
    this.level = level
    return true
  }

  /** Opens the stream of the session, and opens it again when it ends. */
  async listen(): Promise<void> {
    let last: string | undefined
    const onEvent = (event: Event): void => {
      const { id, json } = event
      if (last !== undefined && id !== undefined) {
        if (place(last)[0] !== place(id)[0]) this.#records.count("streams of sessions begun again")
        else if (json !== undefined) this.#checkOrder(last, id)
      }
      last = id ?? last
      if (json?.method === "notifications/resources/updated") this.#records.heard(json.params.uri)
      if (json?.id !== undefined) this.#records.problem(`session ${this.name} got a message on its stream: ${json.id}`)
    }
    while (!this.#isOver) {
      const leaving = new AbortController()
      const headers = { ...this.#headers, ...(last === undefined ? {} : { "last-event-id": last }) }
      this.leave = () => leaving.abort()
      const reply = await exchange(this.#port, { method: "GET", headers, onEvent, signal: leaving.signal })
      this.#check("GET", reply.status)
      if (reply.status === 200 && reply.headers["content-type"] !== "text/event-stream") {
        this.#records.problem(`session ${this.name} got a response without events for GET`)
      }
      this.#records.count("streams of sessions ended")
      await sleep(retryDelay)
    }
  }

  /** The events of a stream arrive once, and none is missing. */
  #checkOrder(last: string, next: string): void {
    const [[stream, event], [nextStream, nextEvent]] = [place(last), place(next)]
    if (stream === nextStream && nextEvent !== event + 1) {
      this.#records.problem(`session ${this.name} got event ${next} after ${last}`)
    }
  }

  /** Ends the session. Then all requests of it are answered with 404. */
  async end(): Promise<void> {
    this.#isOver = true
    this.leave()
    for (let isFirst = true;; isFirst = false) {
      const from = this.#records.now
      const signal = AbortSignal.timeout(answerTimeout)
      const { status } = await exchange(this.#port, { method: "DELETE", headers: this.#headers, signal })
      // An earlier attempt may have ended it.
      if (status === 204 || (status === 404 && !isFirst)) return
      this.#records.unexpected(`status ${status} of DELETE`, from)
      await sleep(retryDelay)
    }
  }

  /** Returns the status of a request at a node. */
  async statusAt(port: number): Promise<number> {
    const body = { jsonrpc: "2.0", id: ++this.#requests, method: "ping" }
    return (await exchange(port, { method: "POST", headers: this.#headers, body })).status
  }
}

/** JSON-RPC between a page and its parent window: requests, their answers, and notifications. */
import { ViewError } from "./ViewError.ts"
import type { MessageEvent, Window } from "../shared/dom.ts"

/** The params of a message, or a result. */
export type Params = { readonly [key: string]: unknown }

/** Takes the messages of the host. */
export interface Receiver {
  readonly notified: (method: string, params: Params) => void
  /** Returns the result, or `undefined` for an unknown method. */
  readonly requested: (method: string, params: Params) => Promise<Params | undefined>
}

/** How long the host may take to answer `ui/initialize`. Other requests wait for it without a limit. */
const connectTimeoutMs = 10_000

interface Pending {
  readonly resolve: (result: Params) => void
  readonly reject: (error: unknown) => void
}

const isParams = (value: unknown): value is Params =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The connection of a page to its host. */
export class ViewPort {
  readonly #window: Window
  readonly #maxPending: number
  readonly #receiver: Receiver
  readonly #pending = new Map<number, Pending>()
  // The origin that has answered. Later messages go to it alone, unless it has no name.
  #origin = "*"
  #nextId = 0
  #isClosed = false

  constructor(window: Window, maxPending: number, receiver: Receiver) {
    this.#window = window
    this.#maxPending = maxPending
    this.#receiver = receiver
  }

  /** Listens to the host. */
  open(): void {
    if ((this.#window as unknown) === this.#window.parent) {
      throw new ViewError("Unsupported", "The page is not in the frame of a host")
    }
    this.#window.addEventListener("message", this.#onMessage)
  }

  /** Stops listening. Waiting requests reject. */
  close(): void {
    this.#isClosed = true
    this.#window.removeEventListener("message", this.#onMessage)
    for (const { reject } of this.#pending.values()) {
      reject(new ViewError("Closed", "The connection to the host is closed"))
    }
    this.#pending.clear()
  }

  notify(method: string, params: Params): void {
    if (!this.#isClosed) this.#post({ method, params })
  }

  request(method: string, params: Params, signal?: AbortSignal): Promise<Params> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      if (this.#isClosed) throw new ViewError("Closed", "The connection to the host is closed")
      if (this.#pending.size >= this.#maxPending) {
        throw new ViewError("LimitExceeded", `${this.#maxPending} calls wait for the host`)
      }
      const id = ++this.#nextId
      const isHandshake = method === "ui/initialize"
      const cancel = (reason: string, error: unknown): void => {
        if (!this.#pending.delete(id)) return
        if (!isHandshake) this.notify("notifications/cancelled", { requestId: id, reason })
        settle()
        reject(error)
      }
      const abort = (): void => cancel("aborted by the page", signal!.reason)
      const late = `The host did not answer ${method} within ${connectTimeoutMs} ms`
      const timer = isHandshake
        ? setTimeout(() => cancel("timeout", new ViewError("Timeout", late)), connectTimeoutMs)
        : undefined
      const settle = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener("abort", abort)
      }
      signal?.addEventListener("abort", abort)
      this.#pending.set(id, {
        resolve: (result) => (settle(), resolve(result)),
        reject: (error) => (settle(), reject(error))
      })
      try {
        this.#post({ id, method, params })
      } catch (error) {
        // The params have no structured clone: a function, for example.
        this.#pending.delete(id)
        settle()
        throw error
      }
    })
  }

  /** Sends a request whose result may have `isError`, which SDKs send in the place of an error. */
  async accepted(method: string, params: Params, signal?: AbortSignal): Promise<void> {
    const result = await this.request(method, params, signal)
    if (result["isError"] === true) throw new ViewError("Refused", `The host refused ${method}`)
  }

  #post(message: Params): void {
    this.#window.parent.postMessage({ jsonrpc: "2.0", ...message }, this.#origin)
  }

  readonly #onMessage = ({ data, origin, source }: MessageEvent): void => {
    // Other windows can send messages too: frames inside of this page, for example.
    if (source !== this.#window.parent || !isParams(data) || data["jsonrpc"] !== "2.0") return
    const { error, id, method, result } = data
    const params = isParams(data["params"]) ? data["params"] : {}
    if (typeof method !== "string") this.#settle(id, origin, result, error)
    else if (id === undefined) this.#receiver.notified(method, params)
    else void this.#answer(id, method, params)
  }

  #settle(id: unknown, origin: string, result: unknown, error: unknown): void {
    const pending = this.#pending.get(id as number)
    if (pending === undefined) return
    this.#pending.delete(id as number)
    if (origin !== "null" && origin !== "") this.#origin = origin
    if (!isParams(error)) return pending.resolve(isParams(result) ? result : {})
    const { code, data, message } = error
    pending.reject(
      new ViewError("Refused", typeof message === "string" ? message : "The host refused the request", {
        code: typeof code === "number" ? code : undefined,
        data
      })
    )
  }

  async #answer(id: unknown, method: string, params: Params): Promise<void> {
    const result = await this.#receiver.requested(method, params)
    this.#post(
      result === undefined ? { id, error: { code: -32601, message: `Method not found: ${method}` } } : { id, result }
    )
  }
}

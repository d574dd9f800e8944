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
export const makeViewPort = (window: Window, maxPending: number, receiver: Receiver) => {
  const pending = new Map<number, Pending>()
  // The origin that has answered. Later messages go to it alone, unless it has no name.
  let origin = "*"
  let nextId = 0
  let isClosed = false

  const onMessage = ({ data, origin: from, source }: MessageEvent): void => {
    // Other windows can send messages too: frames inside of this page, for example.
    if (source !== window.parent || !isParams(data) || data["jsonrpc"] !== "2.0") return
    const { error, id, method, result } = data
    const params = isParams(data["params"]) ? data["params"] : {}
    if (typeof method !== "string") settle(id, from, result, error)
    else if (id === undefined) receiver.notified(method, params)
    else void answer(id, method, params)
  }

  /** Listens to the host. */
  const open = (): void => {
    if ((window as unknown) === window.parent) {
      throw new ViewError("Unsupported", "The page is not in the frame of a host")
    }
    window.addEventListener("message", onMessage)
  }

  /** Stops listening. Waiting requests reject. */
  const close = (): void => {
    isClosed = true
    window.removeEventListener("message", onMessage)
    for (const { reject } of pending.values()) {
      reject(new ViewError("Closed", "The connection to the host is closed"))
    }
    pending.clear()
  }

  const notify = (method: string, params: Params): void => {
    if (!isClosed) post({ method, params })
  }

  const request = (method: string, params: Params, signal?: AbortSignal): Promise<Params> =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      if (isClosed) throw new ViewError("Closed", "The connection to the host is closed")
      if (pending.size >= maxPending) {
        throw new ViewError("LimitExceeded", `${maxPending} calls wait for the host`)
      }
      const id = ++nextId
      const isHandshake = method === "ui/initialize"
      const cancel = (reason: string, error: unknown): void => {
        if (!pending.delete(id)) return
        if (!isHandshake) notify("notifications/cancelled", { requestId: id, reason })
        release()
        reject(error)
      }
      const abort = (): void => cancel("aborted by the page", signal!.reason)
      const late = `The host did not answer ${method} within ${connectTimeoutMs} ms`
      const timer = isHandshake
        ? setTimeout(() => cancel("timeout", new ViewError("Timeout", late)), connectTimeoutMs)
        : undefined
      const release = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener("abort", abort)
      }
      signal?.addEventListener("abort", abort)
      pending.set(id, {
        resolve: (result) => (release(), resolve(result)),
        reject: (error) => (release(), reject(error))
      })
      try {
        post({ id, method, params })
      } catch (error) {
        // The params have no structured clone: a function, for example.
        pending.delete(id)
        release()
        throw error
      }
    })

  /** Sends a request whose result may have `isError`, which SDKs send in the place of an error. */
  const accepted = async (method: string, params: Params, signal?: AbortSignal): Promise<void> => {
    const result = await request(method, params, signal)
    if (result["isError"] === true) throw new ViewError("Refused", `The host refused ${method}`)
  }

  const post = (message: Params): void => {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, origin)
  }

  const settle = (id: unknown, from: string, result: unknown, error: unknown): void => {
    const request = pending.get(id as number)
    if (request === undefined) return
    pending.delete(id as number)
    if (from !== "null" && from !== "") origin = from
    if (!isParams(error)) return request.resolve(isParams(result) ? result : {})
    const { code, data, message } = error
    request.reject(
      new ViewError("Refused", typeof message === "string" ? message : "The host refused the request", {
        code: typeof code === "number" ? code : undefined,
        data
      })
    )
  }

  const answer = async (id: unknown, method: string, params: Params): Promise<void> => {
    const result = await receiver.requested(method, params)
    post(
      result === undefined ? { id, error: { code: -32601, message: `Method not found: ${method}` } } : { id, result }
    )
  }

  return { open, close, notify, request, accepted }
}

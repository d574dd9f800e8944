/**
 * Why a call of a page failed.
 */

/**
 * - `Refused`: the host answered with an error. `code` and `data` are those of the error.
 * - `ToolFailed`: the result of the tool has `isError`. The message is its text, and `result` is the result.
 * - `Timeout`: the host did not answer `ui/initialize` within 10 seconds.
 * - `Unsupported`: the host does not offer it, or the page is not in a host. Nothing was sent.
 * - `LimitExceeded`: 256 calls are waiting. Nothing was sent.
 * - `Closed`: the host has closed the page, or the page has called `close`.
 */
export type ViewErrorReason = "Refused" | "ToolFailed" | "Timeout" | "Unsupported" | "LimitExceeded" | "Closed"

/** The details of an error. */
export interface ViewErrorDetails {
  /** The code of a JSON-RPC error. */
  readonly code?: number | undefined
  /** The data of a JSON-RPC error. */
  readonly data?: unknown
  /** The result of a tool that failed. */
  readonly result?: unknown
}

/**
 * A call of a page failed. The promises of `View` reject with it, or with the reason of an abort signal.
 *
 * @example
 * try {
 *   await view.call("add_sale", { month, amount })
 * } catch (error) {
 *   if (error instanceof ViewError && error.reason === "ToolFailed") note.textContent = error.message
 *   else throw error
 * }
 */
export class ViewError extends Error {
  override readonly name = "ViewError"
  readonly reason: ViewErrorReason
  readonly code: number | undefined
  readonly data: unknown
  readonly result: unknown

  constructor(reason: ViewErrorReason, message: string, { code, data, result }: ViewErrorDetails = {}) {
    super(message)
    this.reason = reason
    this.code = code
    this.data = data
    this.result = result
  }
}

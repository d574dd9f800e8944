/**
 * Webhooks: requests with which another service reports events, signed as Standard Webhooks describes.
 */
import * as Webhook from "@skein/server/Webhook"
import type { Awaitable, Duration } from "../base/types.ts"

/** How webhooks are verified. */
export interface WebhookOptions {
  /**
   * The secret that the service shows: `whsec_` and base64 of 24 to 64 bytes. Several ones while the service changes to a new
   * one.
   */
  readonly secrets: string | ReadonlyArray<string>
  /** How far `webhook-timestamp` may be from the clock of the server, before and after: 5 minutes by default. */
  readonly tolerance?: Duration | undefined
  /** Bytes of a body: 1,048,576 by default. */
  readonly maxBodyBytes?: number | undefined
}

/** A webhook whose signature is verified. */
export interface ReceivedWebhook {
  /** The id of the event that it reports, up to 512 characters. It is the same when the service sends it again. */
  readonly id: string
  /** When the service sent it, in milliseconds of Unix time. */
  readonly timestamp: number
  /** The body as text, mostly JSON. */
  readonly body: string
}

/**
 * Makes the handler of a route for webhooks, `POST`, that are signed as [Standard Webhooks](https://www.standardwebhooks.com)
 * describes. The response is 204 after the function. It is 401 if no signature matches or the time is too far away, 400 for
 * malformed headers and a body that is not UTF-8, and 413 above `maxBodyBytes`. If the function throws, the route gets 500, and
 * the service sends the webhook again. Throws for invalid secrets.
 *
 * @example
 * server.route("POST", "/webhooks/payments", webhook({ secrets }, async ({ body, id }) => {
 *   const { receipt, reference } = JSON.parse(body)
 *   await shop.send(reference, "paid", { receipt }, { key: id })
 * }))
 */
export const webhook = (
  options: WebhookOptions,
  handle: (webhook: ReceivedWebhook) => Awaitable<unknown>
): (request: Request) => Promise<Response> => Webhook.handler(options, handle)

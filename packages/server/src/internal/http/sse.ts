/**
 * The text of Server-Sent Events. JSON text has no line breaks of its own, so that each message is one line of data.
 */

/** The headers of a stream. */
export const headers = {
  "content-type": "text/event-stream",
  // Not `no-cache`: browsers would keep what comes on a stream, and repeat a DELETE to the same address when that is given up.
  "cache-control": "no-store, no-transform",
  // "Servers SHOULD include the `X-Accel-Buffering: no` header" (2026-07-28, streamable HTTP, receiving messages).
  "x-accel-buffering": "no"
} as const

/** A message, with the id under which a client can resume after it. */
export const message = (data: string, id?: string): string =>
  id === undefined ? `data: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`

/** An event with a name. */
export const named = (event: string, data: string): string => `event: ${event}\ndata: ${data}\n\n`

/** An event with an id and no data: after it a client can resume ("prime the client to reconnect", 2025-11-25, transports). */
export const prime = (id: string, retry?: number): string =>
  retry === undefined ? `id: ${id}\ndata:\n\n` : `id: ${id}\nretry: ${retry}\ndata:\n\n`

/** How many milliseconds a client should wait before it reconnects. */
export const retry = (millis: number): string => `retry: ${millis}\n\n`

/** A comment: keeps a quiet connection from being closed on its way. */
export const keepAlive = ":\n\n"

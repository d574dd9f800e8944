/**
 * The clients of the tests of attacks: one that takes all it can, from 127.0.0.1, and one with an address of its own.
 */
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as kit from "../kit.ts"
import { initialize, notification } from "../session/kit.ts"

export const polite = "127.0.0.2"
export const hello = { ...kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } }), localAddress: polite }
export const mebibyte = 1024 * 1024

export const head = (length: string): string =>
  `POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${length}\r\n\r\n`

/** The bytes of a request, for a bare connection. */
export const bytesOf = ({ body, headers }: kit.Request): string => {
  const text = JSON.stringify(body)
  const lines = Object.entries(headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
  return `POST /mcp HTTP/1.1\r\nhost: localhost\r\n${lines}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

export type Port = { readonly port: number }

export const inSession = (id: string, body: unknown, localAddress?: string): kit.Request => ({
  headers: { ...kit.posting, "mcp-session-id": id },
  body,
  ...(localAddress === undefined ? {} : { localAddress })
})

/** Opens a session, and returns its id. */
export const enter = (
  at: Port,
  localAddress: string,
  initialized = true,
  info: object = {},
  capabilities: object = {},
  revision = "2025-11-25"
): Effect.Effect<string> =>
  Effect.gen(function*() {
    const body = initialize(revision)
    Object.assign(body.params.clientInfo, info)
    Object.assign(body.params.capabilities, capabilities)
    const { headers, json, status } = yield* kit.send(at, { headers: kit.posting, body, localAddress })
    expect([json?.error?.message, status]).toEqual([undefined, 200])
    const id = headers["mcp-session-id"] as string
    if (initialized) yield* kit.send(at, inSession(id, notification("notifications/initialized"), localAddress))
    return id
  })

export const served = (at: Port, request: kit.Request = hello): Effect.Effect<void> =>
  Effect.map(kit.send(at, request), ({ json, status }) => {
    expect([status, json?.error, json?.result?.isError]).toEqual([200, undefined, undefined])
  })

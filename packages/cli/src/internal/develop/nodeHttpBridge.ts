/**
 * Serves servers of stdio over Streamable HTTP on the loopback interface, for development: sessions (2025-03-26 to
 * 2025-11-25), each with a server of its own, and stateless requests (2026-07-28), which share one server. It does not
 * authenticate, and has few options of HTTP: use `skein run --http` for those.
 */
import type { Connection } from "@skein/runtime/Connection"
import * as NodeBridge from "@skein/server/NodeBridge"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import type * as Scope from "effect/Scope"
import { type CommandFailed, failed, logLine } from "../base/process.ts"

/** The bounds of a bridge, which the command line has options for. */
export interface BridgeBounds {
  /** The number of sessions. Beyond it, the session that was used least recently ends. */
  readonly maxSessions: number
  /** The number of bytes in the body of a request. A larger one is answered with 413. */
  readonly maxBodyBytes: number
}

/** Options of {@link serveBridge}. */
export interface BridgeOptions extends BridgeBounds {
  readonly host: string
  readonly port: number
  /** Opens the connection to a server, which the scope closes. */
  readonly connect: Effect.Effect<Connection, { readonly message: string }, Scope.Scope>
  /** Receives the warnings of the endpoint, such as that of the first message that is dropped. */
  readonly warn: (line: string) => void
}

/** The logger of the endpoint. */
const logger = (warn: BridgeOptions["warn"]) =>
  Logger.layer([Logger.make<unknown, void>(({ logLevel, message }) => {
    if (logLevel === "Warn" || logLevel === "Error" || logLevel === "Fatal") warn(logLine(message))
  })])

/** Serves until the scope closes. Returns the URL. */
export const serveBridge = (
  { connect, host, maxBodyBytes, maxSessions, port, warn }: BridgeOptions
): Effect.Effect<string, CommandFailed, Scope.Scope> =>
  NodeBridge.serve({
    connect,
    host,
    port,
    maxServers: maxSessions,
    limits: { maxMessageBytes: maxBodyBytes, idleTimeout: "1 day" },
    // The servers end with the command, so no request could finish.
    shutdownTimeout: 0
  }).pipe(
    Effect.provide(logger(warn)),
    Effect.mapBoth({
      onFailure: ({ message }) => failed(3, `${message}${message.includes("EADDRINUSE") ? " (--port)" : ""}`),
      onSuccess: ({ url }) => url
    })
  )

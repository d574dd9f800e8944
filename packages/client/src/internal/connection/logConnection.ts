/**
 * Logs the result of the negotiation, for debugging. If a host has forgotten to provide the services for input
 * requests, the line shows that the client declares none of them.
 */
import type { ClientCapabilities } from "@skein/protocol/Capabilities"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import { printable } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import { type NegotiatedConnection, serverOf } from "./connection.ts"

// The bound of a name or a version that the server sent.
const maxName = 128

const textOf = (
  connection: NegotiatedConnection,
  { tasks, ...declared }: ClientCapabilities,
  label: string
): string => {
  const { httpMode, isAssumed, revision } = connection
  const server = serverOf(connection)
  const name = server === undefined
    ? "a server without a name"
    : `${printable(server.name, maxName)} ${printable(server.version, maxName)}`
  // In the stateless revision, the capabilities that each request declares. In the others those of the newest revision,
  // except that only one revision has tasks.
  const own = connection.isStateless
    ? (connection.stamp({})["_meta"] as JsonObject | undefined)?.[RequestMeta.clientCapabilities]
    : tasks !== undefined && revision === "2025-11-25"
    ? { ...declared, tasks }
    : declared
  const how = `${revision}${isAssumed === true ? " (assumed)" : ""}${httpMode === undefined ? "" : ` over ${httpMode}`}`
  return `connected to ${label}: ${how}, ${name}, client capabilities ${JSON.stringify(own)}`
}

/** Logs the line, unless its level is disabled. */
export const logConnection = (
  connection: NegotiatedConnection,
  declared: ClientCapabilities,
  label = "the server"
): Effect.Effect<void> =>
  Effect.withFiber((fiber) =>
    LogLevel.isGreaterThan(fiber.getRef(References.MinimumLogLevel), "Debug")
      ? Effect.void
      : Effect.logDebug(textOf(connection, declared, label))
  )

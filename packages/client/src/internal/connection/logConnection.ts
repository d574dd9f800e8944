/**
 * One line of the log, for debugging, about what a client and its server have agreed on: a host that has forgotten to
 * provide what answers questions sees there that it has declared none of it.
 */
import type { ClientCapabilities } from "@skein/protocol/Capabilities"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import { type NegotiatedConnection, serverOf } from "./connection.ts"
import { printable } from "../text.ts"

// Of a name or a version that the server gives itself.
const maxName = 128

const textOf = (
  connection: NegotiatedConnection,
  { tasks, ...declared }: ClientCapabilities,
  label: string
): string => {
  const { isAssumed: assumed, connection: { httpMode: variant }, revision } = connection
  const server = serverOf(connection)
  const speaks = `${label} ${assumed === true ? "is taken to speak" : "speaks"} ${revision}`
  const called = server === undefined
    ? "does not say its name"
    : `calls itself ${printable(server.name, maxName)} ${printable(server.version, maxName)}`
  // In the request era as each request says it. Before, as the newest one has it; but tasks are of one revision alone.
  const own = connection.isRequestEra
    ? (connection.stamp({})["_meta"] as JsonObject | undefined)?.[RequestMeta.clientCapabilities]
    : tasks !== undefined && revision === "2025-11-25"
    ? { ...declared, tasks }
    : declared
  const over = variant === undefined ? "" : ` (${variant})`
  return `${speaks}${over} and ${called}; this client declares ${JSON.stringify(own)}`
}

/** Writes the line, where somebody reads such lines: otherwise it costs nothing. */
export const logConnection = (
  connection: NegotiatedConnection,
  declared: ClientCapabilities,
  label = "The server"
): Effect.Effect<void> =>
  Effect.withFiber((fiber) =>
    LogLevel.isGreaterThan(fiber.getRef(References.MinimumLogLevel), "Debug")
      ? Effect.void
      : Effect.logDebug(textOf(connection, declared, label))
  )

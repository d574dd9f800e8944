/**
 * The warning about variables of the environment whose name is not known, such as `SKEIN_POTR`: without it, the option has its
 * default, and the operator does not learn why. This module is loaded when the environment has a variable with the prefix.
 */
import { nearest, printable } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"

/** The variables of servers, without the prefix. A server over stdio ignores those of HTTP. */
export const ofServers = [
  "PORT",
  "HOST",
  "PATH",
  "ALLOWED_HOSTS",
  "ALLOWED_ORIGINS",
  "CORS",
  "TRUSTED_PROXIES",
  "STATELESS",
  "SESSIONS",
  "STATE_KEYS",
  "LEGACY_SSE",
  "ALWAYS_STREAM",
  "STREAM_AFTER",
  "REQUIRE_MCP_HEADERS",
  "EXPIRED_STREAMS",
  "KEEP_ALIVE_INTERVAL",
  "HEALTH",
  "DRAIN_DELAY",
  "SHUTDOWN_TIMEOUT",
  "WORKERS",
  "LOG_FORMAT",
  "LOG_LEVEL",
  "NODE_REQUESTS_KEYS",
  "NODE_REQUESTS_TLS_FOLDER",
  "NODE_REQUESTS_TLS_NAME",
  "NODE_REQUESTS_HOST",
  "NODE_REQUESTS_PORT",
  "NODE_REQUESTS_ADVERTISED_HOST",
  "MAX_MESSAGE_BYTES",
  "MAX_RETAINED_BYTES",
  "MAX_IN_FLIGHT_REQUESTS",
  "MAX_STREAMS",
  "MAX_SESSIONS",
  "MAX_SESSIONS_PER_PRINCIPAL",
  "IDLE_TIMEOUT",
  "REQUEST_TIMEOUT",
  "KEEP_ALIVE_TIMEOUT",
  "MAX_CONNECTIONS"
]

/** The variables of created projects, of the examples and guides, of the command line, and of the repository's scripts. */
export const ofOthers = [
  "CLIENT_SECRET",
  "CONSOLE_PASSWORD",
  "DEVELOPMENT",
  "PICTURES",
  "TASKS",
  "TASK_KEYS",
  "TOKEN_KEYS",
  "PUBLISHED",
  "ROTATION_ROUNDS",
  "SEED",
  "SITE_BASE",
  "SPEC_DIR"
]

/** The most names in the warning, which may come from the environment of a whole system. */
const maxNames = 10

/** Logs the variables with the prefix whose names are not known, in one line. `names` are the names of all variables. */
export const warnUnknown = (names: ReadonlyArray<string>, prefix: string): Effect.Effect<void> => {
  const known = ofServers.map((name) => prefix + name)
  const others = new Set([...known, ...ofOthers.map((name) => prefix + name)])
  const unknown = names.filter((name) => name.startsWith(prefix) && !others.has(name)).slice(0, maxNames)
  if (unknown.length === 0) return Effect.void
  const texts = unknown.map((name) => {
    const meant = nearest(name, known)
    return `${printable(name, 128)}${meant === undefined ? "" : ` (did you mean ${meant}?)`}`
  })
  return Effect.logWarning(`Unknown variables, which have no effect: ${texts.join(", ")}`)
}

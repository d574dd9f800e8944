import * as McpError from "@skein/server/McpError"
import * as AuditLog from "@skein/server/AuditLog"
import * as Concurrency from "@skein/server/Concurrency"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as RateLimit from "@skein/server/RateLimit"
import * as MaxResponseSize from "@skein/server/MaxResponseSize"
import * as Timeout from "@skein/server/Timeout"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

export const entries: Array<AuditLog.Entry> = []
const write = (entry: AuditLog.Entry) => Effect.sync(() => void entries.push(entry))

const ping = Tool.layer(Tool.make("ping"), () => Effect.succeed("pong"))
const report = Tool.layer(Tool.make("report"), () => Effect.succeed("Nothing was sold"))
const slow = Tool.layer(Tool.make("slow"), () => Effect.as(Effect.sleep("1 hour"), "At last"))
const large = Tool.layer(Tool.make("large"), () => Effect.succeed("x".repeat(10_000)))

// #region middleware
const closedAtNight = Middleware.layer((next) => (request) =>
  request.method === "tools/call" && request.caller.principal?.id === "night-owl"
    ? Effect.fail(McpError.other(-31_000, "Closed at night"))
    : next(request)
)

// The first one is the outermost: it sees the requests that the others reject.
export const Careful = McpServer.layer(
  { name: "careful", version: "1.0.0" },
  AuditLog.layer({ methods: ["tools/call"], sink: write }),
  RateLimit.layer({ limit: 10, interval: "1 minute" }),
  Concurrency.layer({ limit: 4, maxQueuedRequests: 16, waitTimeout: "5 seconds" }),
  Timeout.layer({ timeout: "10 seconds", tools: { report: "5 minutes" } }),
  MaxResponseSize.layer({ maxBytes: 4_096 }),
  closedAtNight,
  ping,
  report,
  slow,
  large
)
// #endregion

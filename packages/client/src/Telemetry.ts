/**
 * Spans for the requests of a client, with the names of the OpenTelemetry semantic conventions for MCP.
 *
 * Without telemetry, the `_meta` of a request has the caller's span (`traceparent`). With telemetry, it has the span of
 * the request. Effect's `Tracer` decides where spans are exported: `effect/observability/Otlp`, for instance.
 *
 * - Each request has a span `{method} {target}` of kind `client`, a child of the caller's span. A call that the server
 *   answers with input requests consists of several requests.
 * - The attributes are `mcp.method.name`, `mcp.protocol.version`, `network.transport`, `gen_ai.tool.name` and
 *   `gen_ai.operation.name`, `gen_ai.prompt.name` or `mcp.resource.uri`, and, for a failure, `error.type` and
 *   `rpc.response.status_code`. `error.type` is the code of the JSON-RPC error, `tool_error` for a tool's `isError`, or
 *   the reason of the `ClientError`. An interrupted request has none.
 * - The handshake has no span. Neither has `subscriptions/listen`, which does not end.
 *
 * @example
 * ```ts
 * const telemetry = Telemetry.make({ attributes: { "server.address": "mcp.example.com" } })
 * const client = Client.make(transport, { telemetry })
 * ```
 */
import { serverErrorOf } from "./internal/base/errors.ts"
import * as Conventions from "@skein/protocol/Conventions"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { Revision } from "@skein/protocol/Revision"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { ClientError } from "./ClientError.ts"
import { clip } from "@skein/protocol/Text"

/** The options of the telemetry. */
export interface Options {
  /** The attribute `network.transport` of requests that are not sent over HTTP: `pipe` for stdio. Default: not set. */
  readonly transport?: "pipe" | "unix" | "tcp" | undefined
  /** Attributes of every span: `server.address`, for instance. */
  readonly attributes?: Readonly<Record<string, unknown>> | undefined
}

/** One request, as it is sent. */
export interface Sent {
  readonly method: string
  readonly params: JsonObject
  readonly revision: Revision
  /** Whether it is sent over HTTP. */
  readonly http: boolean
}

/** Wraps each request that a client sends. */
export interface Telemetry {
  readonly around: (
    sent: Sent,
    answer: Effect.Effect<JsonObject, ClientError>
  ) => Effect.Effect<JsonObject, ClientError>
}

const maxName = 128
const maxUri = 1024

/** The attributes of a failure; none if the caller was interrupted before the end. */
const failureOf = (exit: Exit.Exit<JsonObject, ClientError>, revision: Revision): Record<string, string> => {
  if (Exit.isSuccess(exit)) return Conventions.isToolError(exit.value) ? { "error.type": Conventions.toolError } : {}
  const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
  if (failure === undefined) return {}
  const error = serverErrorOf(failure)
  if (error === undefined) return { "error.type": failure.reason._tag }
  const code = String(McpError.codeOf(error, revision))
  return { "error.type": code, "rpc.response.status_code": code }
}

// A tool's failure is a result of the request, but an error of its span.
const toolFailed = Exit.fail(
  Object.assign(new Error("The tool failed"), { name: Conventions.toolError, stack: undefined })
)

/**
 * Records the requests of each client that has it as its option `telemetry`.
 *
 * @example
 * const client = yield* Client.make(transport, { telemetry: Telemetry.make() })
 */
export const make = (options: Options = {}): Telemetry => {
  const attributesOf = ({ http, method, revision }: Sent, target: string | undefined) => ({
    ...options.attributes,
    "mcp.method.name": clip(method, maxName),
    "mcp.protocol.version": revision,
    ...(http
      ? { "network.transport": "tcp", "network.protocol.name": "http" }
      : options.transport === undefined
      ? undefined
      : { "network.transport": options.transport }),
    ...(target === undefined ? undefined : Conventions.about(method, target))
  })
  const around: Telemetry["around"] = (sent, answer) =>
    Effect.suspend(() => {
      const { method, params, revision } = sent
      if (method === "subscriptions/listen") return answer
      const whole = Conventions.targetOf(method, params)
      const target = whole === undefined ? undefined : clip(whole, Conventions.isNamed(method) ? maxName : maxUri)
      const made = Effect.makeSpan(Conventions.spanName(clip(method, maxName), target), {
        kind: "client",
        attributes: attributesOf(sent, target)
      })
      return Effect.flatMap(made, (span) =>
        Effect.onExit(Effect.withParentSpan(answer, span), (exit) =>
          Effect.map(Clock.currentTimeNanos, (now) => {
            const failure = failureOf(exit, revision)
            for (const [key, value] of Object.entries(failure)) {
              span.attribute(key, value)
            }
            span.end(now, failure["error.type"] === Conventions.toolError ? toolFailed : exit)
          })))
    })
  return { around }
}

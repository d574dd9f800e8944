/**
 * Spans for the requests of a client, with the names of the OpenTelemetry semantic conventions for MCP.
 *
 * Without them, a request says in its `_meta` which span of the host it comes from (`traceparent`); with them it says its own. Where
 * spans go is decided by what Effect's `Tracer` is given: `effect/observability/Otlp`, for instance.
 *
 * - A span for each request that is sent, `{method} {target}`, of kind `client`, a child of the span that the caller is in. A call that
 *   the server answers with questions is several requests.
 * - `mcp.method.name`, `mcp.protocol.version`, `network.transport`, `gen_ai.tool.name` and `gen_ai.operation.name`, `gen_ai.prompt.name`
 *   or `mcp.resource.uri`, and, where it failed, `error.type` and `rpc.response.status_code`. `error.type` is the code of the JSON-RPC
 *   error, `tool_error` for a tool's `isError`, or the reason of the `ClientError`. An interrupted request has none.
 * - The handshake has no span, and neither has `subscriptions/listen`, which has no end.
 *
 * @example
 * const client = Client.make(transport, { telemetry: Telemetry.make({ attributes: { "server.address": "mcp.example.com" } }) })
 */
import { serverErrorOf } from "./internal/errors.ts"
import * as Conventions from "@skein/protocol/Conventions"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { Revision } from "@skein/protocol/Revision"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ClientError } from "./ClientError.ts"
import { clip } from "./internal/text.ts"

/** What is recorded. */
export interface Options {
  /** `network.transport` of what does not go by HTTP: `pipe` for stdio. Not said by default. */
  readonly transport?: "pipe" | "unix" | "tcp" | undefined
  /** Attributes for every span: `server.address`, for instance. */
  readonly attributes?: Readonly<Record<string, unknown>> | undefined
}

/** One request, as it is sent. */
export interface Sent {
  readonly method: string
  readonly params: JsonObject
  readonly revision: Revision
  /** Whether it goes by HTTP. */
  readonly http: boolean
}

/** What stands around each request that a client sends. */
export interface Telemetry {
  readonly around: (
    sent: Sent,
    answer: Effect.Effect<JsonObject, ClientError>
  ) => Effect.Effect<JsonObject, ClientError>
}

const maxName = 128
const maxUri = 1024

const codeOf = (failure: ClientError, revision: Revision): string | undefined => {
  const error = serverErrorOf(failure)
  return error === undefined ? undefined : String(McpError.codeOf(error, revision))
}

/** The attributes of a failure; none where the caller did not wait for the end. */
const failureOf = (exit: Exit.Exit<JsonObject, ClientError>, revision: Revision): Record<string, string> => {
  if (Exit.isSuccess(exit)) return Conventions.isToolError(exit.value) ? { "error.type": Conventions.toolError } : {}
  for (const reason of exit.cause.reasons) {
    if (reason._tag !== "Fail") continue
    const code = codeOf(reason.error, revision)
    return code === undefined
      ? { "error.type": reason.error.reason._tag }
      : { "error.type": code, "rpc.response.status_code": code }
  }
  return {}
}

// A tool's failure is a result, but it is an error of the span.
const toolFailed = Exit.fail(
  Object.assign(new Error("The tool failed"), { name: Conventions.toolError, stack: undefined })
)

/** Records the requests of the clients that it is given to. */
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
      const said = Conventions.targetOf(method, params)
      const target = said === undefined ? undefined : clip(said, Conventions.isNamed(method) ? maxName : maxUri)
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

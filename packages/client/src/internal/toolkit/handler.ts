/**
 * What runs when a model calls a remote tool.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import { isObject } from "@skein/protocol/JsonRpc"
import type { Tool } from "@skein/protocol/Tool"
import type { Progress } from "@skein/runtime/Exchange"
import type { FailureMode } from "effect/ai/Tool"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { ClientError } from "../../ClientError.ts"
import type { RequestOptions } from "../requestOptions.ts"
import { ofArguments, ofError, ofResult, type ToolFailure } from "./failure.ts"
import type { ToolClient } from "./source.ts"

/** A remote tool and the way to it. */
export interface Remote {
  readonly server: string | undefined
  readonly tool: Tool
  readonly client: Effect.Effect<ToolClient, ClientError>
}

interface HandlerContext {
  readonly preliminary: (result: CallToolResult) => Effect.Effect<void>
}

const preliminary = (report: Progress): CallToolResult => {
  const { message, progress, total } = report
  const text = message ?? (total === undefined ? String(progress) : `${progress} of ${total}`)
  return { content: [{ type: "text", text }], structuredContent: { ...report } }
}

/** Makes a call, and tells of its progress in the order in which it was reported, all of it before the result. */
const reported = <A, E>(
  { preliminary: tell }: HandlerContext,
  maxReports: number,
  call: (options: RequestOptions) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.scoped(Effect.gen(function*() {
    const reports = yield* Queue.make<Progress, Cause.Done>({ capacity: maxReports, strategy: "sliding" })
    const telling = yield* Effect.forkScoped(
      Stream.runForEach(Stream.fromQueue(reports), (report) => tell(preliminary(report)))
    )
    const result = yield* call({ onProgress: (report) => void Queue.offerUnsafe(reports, report) })
    yield* Queue.end(reports)
    yield* Fiber.join(telling)
    return result
  }))

/** How calls are made. */
export interface Manner {
  readonly failureMode: FailureMode
  readonly progress: boolean
  /** How many reports wait for a model's stream that is slow to take them; the oldest are dropped. */
  readonly maxReports: number
  readonly request: RequestOptions | undefined
}

/** The handler of one tool. */
export const handler = ({ client, server, tool }: Remote, { failureMode, maxReports, progress, request }: Manner) => {
  const named = { server, tool: tool.name }
  return (args: unknown, context: HandlerContext): Effect.Effect<CallToolResult, ToolFailure> => {
    if (!isObject(args)) return Effect.fail(ofArguments(named))
    const call = (options?: RequestOptions) =>
      Effect.flatMap(client, ({ callTool }) => callTool(tool.name, args, { ...request, ...options }))
    return Effect.matchEffect(progress ? reported(context, maxReports, call) : call(), {
      onFailure: (error) => Effect.fail(ofError(named, error)),
      onSuccess: (result) =>
        result.isError === true && failureMode === "return"
          ? Effect.fail(ofResult(named, result))
          : Effect.succeed(result)
    })
  }
}

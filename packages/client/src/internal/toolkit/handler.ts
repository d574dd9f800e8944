/**
 * The handler of a remote tool, which runs when a model calls the tool.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import { isObject } from "@skein/protocol/JsonRpc"
import type { Tool } from "@skein/protocol/Tool"
import type { Progress } from "@skein/runtime/RequestContext"
import type { FailureMode } from "effect/ai/Tool"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { ClientError } from "../../ClientError.ts"
import type { PoolError } from "../../PoolError.ts"
import type { RemoteTask } from "../../RemoteTask.ts"
import type { CallToolOptions, RequestOptions } from "../base/callOptions.ts"
import { ofArguments, ofError, ofResult, type ToolFailure } from "./failure.ts"
import type { ToolClient } from "./source.ts"

/** The server and the tool of a name in a toolkit. */
export interface Origin {
  readonly server: string | undefined
  readonly tool: Tool
}

/** A remote tool and the client that calls it. */
export interface Remote extends Origin {
  readonly client: Effect.Effect<ToolClient, ClientError | PoolError>
}

/** A remote tool whose schema was fitted to a provider. */
export interface Callable extends Remote {
  /** Replaces the names of properties that were changed for the provider by those of the server. */
  readonly restore: (args: object) => object
}

interface HandlerContext {
  readonly preliminary: (result: CallToolResult) => Effect.Effect<void>
}

const textResult = (text: string): CallToolResult => ({ content: [{ type: "text", text }] })

const preliminary = (report: Progress): CallToolResult => {
  const { message, progress, total } = report
  const text = message ?? (total === undefined ? String(progress) : `${progress} of ${total}`)
  return { ...textResult(text), structuredContent: { ...report } }
}

/** The status messages of a running task, as they change. */
const statusMessages = ({ states }: RemoteTask): Stream.Stream<string> =>
  states.pipe(
    Stream.filterMap(({ status, statusMessage }) =>
      status === "working" && statusMessage !== undefined ? Result.succeed(statusMessage) : Result.failVoid
    ),
    Stream.changes,
    // The call itself reports why the task cannot be followed.
    Stream.catch(() => Stream.empty)
  )

/** How many reports are buffered for a slow reader of the model's stream. Beyond that the oldest one is dropped. */
const maxBufferedReports = 16

/** Makes a call and passes its progress reports on in order, all of them before the result. */
const withProgress = <A, E>(
  { preliminary: publish }: HandlerContext,
  call: (options: CallToolOptions) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.scoped(Effect.gen(function*() {
    const reports = yield* Queue.make<CallToolResult | RemoteTask, Cause.Done>({
      capacity: maxBufferedReports,
      strategy: "sliding"
    })
    const publishing = yield* Effect.forkScoped(
      Stream.runForEach(Stream.fromQueue(reports), (report) =>
        "states" in report
          ? Effect.forkScoped(
            Stream.runForEach(statusMessages(report), (text) => Queue.offer(reports, textResult(text)))
          )
          : publish(report))
    )
    const result = yield* call({
      onProgress: (report) => void Queue.offerUnsafe(reports, preliminary(report)),
      task: { onTask: (task) => void Queue.offerUnsafe(reports, task) }
    })
    yield* Queue.end(reports)
    yield* Fiber.join(publishing)
    return result
  }))

/** The options of calls. */
export interface CallSettings {
  readonly failureMode: FailureMode
  /** Whether the structured content of a failed call follows its other content. */
  readonly isBeside: boolean
  readonly progress: boolean
  readonly request: RequestOptions | undefined
}

/** The handler of one tool. */
export const handler = (
  { client, restore, server, tool }: Callable,
  { failureMode, isBeside, progress, request }: CallSettings
) => {
  const named = { server, tool: tool.name }
  return (args: unknown, context: HandlerContext): Effect.Effect<CallToolResult, ToolFailure> => {
    if (!isObject(args)) return Effect.fail(ofArguments(named))
    const call = (options?: CallToolOptions) =>
      Effect.flatMap(client, ({ callTool }) => callTool(tool.name, restore(args), { ...request, ...options }))
    return Effect.matchEffect(progress ? withProgress(context, call) : call(), {
      onFailure: (error) => Effect.fail(ofError(named, error)),
      onSuccess: (result) =>
        result.isError === true && failureMode === "return"
          ? Effect.fail(ofResult(named, result, isBeside))
          : Effect.succeed(result)
    })
  }
}

/**
 * Remote tools for a language model: a toolkit of `effect/ai` whose handlers call the tools of MCP servers.
 *
 * `Client.toolkit` is the same and loads this module, and `effect/ai` with it, only when it is run.
 *
 * - **Names.** Those of a single client's tools are their own; with several servers they are `<server>_<tool>`. Providers take
 *   `^[a-zA-Z0-9_-]{1,64}$`: other characters become `_`, and where a name is too long or means several tools, a digest of
 *   the exact names ends it. The names do not depend on the order of servers and tools. `origins` says what a name stands for.
 * - **Arguments.** The model is shown the server's JSON Schema as it is. Its arguments are sent as they are, if they are an
 *   object: the server validates them.
 * - **Results.** A tool's result is the `CallToolResult`, with all that is in it. The model is shown its content block by block:
 *   text as text; images, audio and binary resources as files; and where there is no content, the structured content as text.
 * - **Failures** are {@link ToolFailure}s: what the tool says by `isError` has the reason `ToolFailed`, everything else that of the
 *   `ClientError`, which the failure holds for the host. By default the model sees both (`failureMode`).
 * - **Progress** comes as preliminary results, where the model's answer is a stream: their text is the message, and their
 *   structured content is the notice itself. So does what a server says of the task that a call has become, as text alone.
 *
 * **Gotchas.** A toolkit is what the servers offered when it was made. Make it anew for each conversation, or when something
 * changes: `client.changes({ tools: true })` begins with `Subscribed` and tells of each change, so that
 * `Stream.mapEffect(() => Client.toolkit(client))` gives the toolkits one after another. What a remote tool says about itself is
 * not to be trusted, nor are its annotations: ask people (`needsApproval`) before what matters.
 *
 * ```ts
 * const toolkit = yield* Client.toolkit({ files, search }, { include: (server, tool) => tool.name !== "delete" })
 * const { text } = yield* LanguageModel.generateText({ prompt: "What is new?", toolkit })
 * ```
 */
import type { Tool as RemoteTool } from "@skein/protocol/Tool"
import { CallToolResult } from "@skein/protocol/CallTool"
import * as AiTool from "effect/ai/Tool"
import * as AiToolkit from "effect/ai/Toolkit"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as JsonSchema from "effect/JsonSchema"
import * as Result from "effect/Result"
import type { ClientError } from "./ClientError.ts"
import { partsOf } from "./internal/toolkit/content.ts"
import type { RequestOptions } from "./internal/calls/options.ts"
import { ToolFailure } from "./internal/toolkit/failure.ts"
import { handler } from "./internal/toolkit/handler.ts"
import { uniqueNames } from "./internal/toolkit/names.ts"
import { listAll, type Listed, type ToolClient, type ToolPool, type ToolSource } from "./internal/toolkit/source.ts"

export type { ToolClient, ToolPool, ToolSource }
export { ToolFailure }

/** How a toolkit is made. Every member is optional; the defaults stand beside it. */
export interface Options<Mode extends AiTool.FailureMode = AiTool.FailureMode> {
  /** Which tools the model gets: all by default. The server is `undefined` for the tools of a single client. */
  readonly include?: ((server: string | undefined, tool: RemoteTool) => boolean) | undefined
  /**
   * How many tools the model gets: 512 by default. The others are left out, in the order of the servers and of their lists; the
   * log says so, and `omitted` says which. Some providers take no more than 128.
   */
  readonly maxTools?: number | undefined
  /**
   * `return` (the default): the model sees each failure. `error`: what the server or the connection could not do fails the
   * generation with a {@link ToolFailure}; what the tool says by `isError` reaches the model as a result.
   */
  readonly failureMode?: Mode | undefined
  /** How long a call may take, instead of the limits of the client. */
  readonly request?: Pick<RequestOptions, "timeout" | "maxTimeout"> | undefined
  /** Whether tools are asked for progress: true by default. */
  readonly progress?: boolean | undefined
  /** How many reports of progress wait for a model's stream: 16 by default. The oldest is dropped for the newest, never the result. */
  readonly maxBufferedReports?: number | undefined
  /** Which calls wait for the host's approval: none by default. See `effect/ai`. */
  readonly needsApproval?: ((server: string | undefined, tool: RemoteTool) => boolean) | undefined
  /** How long the lists of servers are waited for that are given by name: 30 seconds by default. A pool has its own timeout. */
  readonly listTimeout?: Duration.Input | undefined
}

/** A remote tool, as `effect/ai` knows it. */
export type Dynamic<Mode extends AiTool.FailureMode = "return"> = AiTool.Dynamic<string, {
  readonly parameters: JsonSchema.JsonSchema
  readonly success: typeof CallToolResult
  readonly failure: typeof ToolFailure
  readonly failureMode: Mode
}>

/** What a name of a toolkit stands for. */
export interface Origin {
  readonly server: string | undefined
  readonly tool: RemoteTool
}

/** Remote tools with their handlers. See the module's text. */
export interface Toolkit<Mode extends AiTool.FailureMode = "return">
  extends AiToolkit.WithHandler<Record<string, Dynamic<Mode>>>
{
  /** What each name stands for. */
  readonly origins: ReadonlyMap<string, Origin>
  /** What was left out because of `maxTools`. */
  readonly omitted: ReadonlyArray<Origin>
  /** The servers whose tools could not be listed, and why. */
  readonly missing: ReadonlyArray<{ readonly server: string; readonly error: ClientError }>
}

const annotated = <T extends AiTool.Any>(tool: T, { _meta, annotations = {}, title }: RemoteTool): T => {
  const { destructiveHint, idempotentHint, openWorldHint, readOnlyHint } = annotations
  const shown = title ?? annotations.title
  let result: AiTool.Any = tool
  if (shown !== undefined) result = result.annotate(AiTool.Title, shown)
  if (_meta !== undefined) result = result.annotate(AiTool.Meta, _meta)
  if (readOnlyHint !== undefined) result = result.annotate(AiTool.Readonly, readOnlyHint)
  if (destructiveHint !== undefined) result = result.annotate(AiTool.Destructive, destructiveHint)
  if (idempotentHint !== undefined) result = result.annotate(AiTool.Idempotent, idempotentHint)
  if (openWorldHint !== undefined) result = result.annotate(AiTool.OpenWorld, openWorldHint)
  return result as T
}

interface Offered extends Origin {
  readonly client: Listed["client"]
}

const offers = (listed: ReadonlyArray<Listed>, options: Options): ReadonlyArray<Offered> =>
  listed.flatMap(({ client, server, tools }) =>
    Result.getOrElse(tools, () => [])
      .filter((tool) => options.include?.(server, tool) ?? true)
      .map((tool) => ({ server, tool, client }))
  )

/**
 * Makes a toolkit of what a client, several of them by name, or a pool have to offer now.
 *
 * Fails when a single client's tools cannot be listed. Of several servers each is asked in parallel, and one that cannot list its
 * tools is in `missing`.
 */
export const make = <Mode extends AiTool.FailureMode = "return">(
  source: ToolSource,
  options: Options<Mode> = {}
): Effect.Effect<Toolkit<Mode>, ClientError> =>
  Effect.gen(function*() {
    const { maxBufferedReports = 16, maxTools = 512, needsApproval, progress = true, request } = options
    const { failureMode = "return" } = options as Options
    const listed = yield* listAll(source, options.listTimeout ?? "30 seconds")
    const missing: Array<{ readonly server: string; readonly error: ClientError }> = []
    for (const { server, tools } of listed) {
      if (Result.isSuccess(tools)) continue
      if (server === undefined) return yield* tools.failure
      missing.push({ server, error: tools.failure })
    }
    const all = offers(listed, options)
    const omitted = all.slice(maxTools)
    if (omitted.length > 0) {
      yield* Effect.logWarning(`${omitted.length} tools of ${all.length} were left out of a toolkit (maxTools)`)
    }
    const offered = all.slice(0, maxTools)
    const names = uniqueNames(offered.map(({ server, tool }) => ({ server, tool: tool.name })))
    const tools = offered.map(({ server, tool }, at): Dynamic =>
      annotated(
        AiTool.dynamic(names[at]!, {
          description: tool.description,
          parameters: tool.inputSchema as JsonSchema.JsonSchema,
          success: CallToolResult,
          failure: ToolFailure,
          failureMode,
          needsApproval: needsApproval?.(server, tool),
          toModelOutput: partsOf
        }) as Dynamic,
        tool
      )
    )
    const kit: AiToolkit.Toolkit<Record<string, Dynamic>> = AiToolkit.make(...tools)
    // By entries, so that a tool that is called `__proto__` stays one.
    const handlers = yield* kit.toHandlers(Object.fromEntries(
      offered.map((origin, at) => [names[at]!, handler(origin, { failureMode, maxBufferedReports, progress, request })])
    ))
    const { handle, tools: byName } = yield* Effect.provideContext(kit, handlers)
    const toolkit: Toolkit = {
      tools: byName,
      handle,
      origins: new Map(offered.map(({ server, tool }, at) => [names[at]!, { server, tool }])),
      omitted: omitted.map(({ server, tool }) => ({ server, tool })),
      missing
    }
    // The mode is a type here only: what a tool does with it was decided above.
    return toolkit as Toolkit<Mode>
  })

/**
 * Tools of MCP servers for a language model: a toolkit of `effect/ai` whose handlers call the tools.
 *
 * `Client.toolkit` is the same function. It loads this module, and `effect/ai` with it, only when it runs.
 *
 * - **Names.** The tools of a single client have their own names. With several servers the names are `<server>_<tool>`.
 *   Providers accept `^[a-zA-Z0-9_-]{1,64}$`: other characters become `_`. A name that is too long, or that several
 *   tools would have, ends with a digest of the exact names. Names do not depend on the order of servers and tools.
 *   `origins` maps each name to its server and tool.
 * - **Arguments.** The model receives the server's JSON Schema unchanged. Its arguments are sent unchanged if they are
 *   an object: the server validates them.
 * - **Results.** The result of a tool is the whole `CallToolResult`. The model receives its content block by block:
 *   text as text; images, audio and binary resources as files. Without content it receives the structured content as
 *   text.
 * - **Failures** are {@link ToolFailure}s. A result with `isError` has the reason `ToolFailed`; other failures have the
 *   reason of their `ClientError`, which is the member `error`. By default the model receives both kinds
 *   (`failureMode`).
 * - **Progress** becomes preliminary results if the model's response is a stream. Their text is the message, and their
 *   structured content is the report. The status messages of a task become preliminary results with text alone.
 *
 * **Gotchas.** A toolkit has the tools that the servers had when it was made. Make a new one for each conversation, or
 * after a change: `client.changes({ tools: true })` begins with `Subscribed`, so
 * `Stream.mapEffect(() => Client.toolkit(client))` gives the toolkits one after another. Do not trust the descriptions
 * and annotations of remote tools: ask the user (`needsApproval`) before an important call.
 *
 * @example
 * const toolkit = yield* Client.toolkit({ files, search }, { include: (server, tool) => tool.name !== "delete" })
 * const { text } = yield* LanguageModel.generateText({ prompt: "What is new?", toolkit })
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
import { handler, type Remote } from "./internal/toolkit/handler.ts"
import { uniqueNames } from "./internal/toolkit/names.ts"
import { listAll, type Listed, type ToolClient, type ToolPool, type ToolSource } from "./internal/toolkit/source.ts"

export type { ToolClient, ToolPool, ToolSource }
export { ToolFailure }

/** The options of a toolkit. */
export interface Options<Mode extends AiTool.FailureMode = AiTool.FailureMode> {
  /** Selects the tools: all by default. The server is `undefined` for the tools of a single client. */
  readonly include?: ((server: string | undefined, tool: RemoteTool) => boolean) | undefined
  /**
   * How many tools the toolkit has at most: 512 by default. The tools beyond that, in the order of the servers and of
   * their lists, are left out and logged, and listed in `omitted`. Some providers accept at most 128 tools.
   */
  readonly maxTools?: number | undefined
  /**
   * `return` (the default): the model receives each failure. `error`: a failure of the server or of the connection
   * fails the generation with a {@link ToolFailure}, and a result with `isError` reaches the model as a result.
   */
  readonly failureMode?: Mode | undefined
  /** The timeouts of a call: those of the client by default. */
  readonly request?: Pick<RequestOptions, "timeout" | "maxTimeout"> | undefined
  /** Whether calls request progress reports: true by default. */
  readonly progress?: boolean | undefined
  /**
   * How many progress reports are buffered for a slow reader of the model's stream: 16 by default. Beyond that the
   * oldest report is dropped. The result is never dropped.
   */
  readonly maxBufferedReports?: number | undefined
  /** Selects the calls that need approval: none by default. See `needsApproval` of `effect/ai`. */
  readonly needsApproval?: ((server: string | undefined, tool: RemoteTool) => boolean) | undefined
  /**
   * How long each client of a record may take to list its tools: 30 seconds by default. A pool has a timeout of its
   * own.
   */
  readonly listTimeout?: Duration.Input | undefined
}

/** A remote tool as a tool of `effect/ai`. */
export type Dynamic<Mode extends AiTool.FailureMode = "return"> = AiTool.Dynamic<string, {
  readonly parameters: JsonSchema.JsonSchema
  readonly success: typeof CallToolResult
  readonly failure: typeof ToolFailure
  readonly failureMode: Mode
}>

/** The server and the tool of a name in a toolkit. */
export interface Origin {
  readonly server: string | undefined
  readonly tool: RemoteTool
}

/** Remote tools with their handlers, for the option `toolkit` of `LanguageModel.generateText` and its variants. */
export interface Toolkit<Mode extends AiTool.FailureMode = "return">
  extends AiToolkit.WithHandler<Record<string, Dynamic<Mode>>>
{
  /** The server and the tool of each name. */
  readonly origins: ReadonlyMap<string, Origin>
  /** The tools that were left out because of `maxTools`. */
  readonly omitted: ReadonlyArray<Origin>
  /** The servers whose tools could not be listed, with their errors. */
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

const offers = (listed: ReadonlyArray<Listed>, options: Options): ReadonlyArray<Remote> =>
  listed.flatMap(({ client, server, tools }) =>
    Result.getOrElse(tools, () => [])
      .filter((tool) => options.include?.(server, tool) ?? true)
      .map((tool) => ({ server, tool, client }))
  )

/**
 * Makes a toolkit of the present tools of a client, of several clients by name, or of a pool.
 *
 * Fails when the tools of a single client cannot be listed. With several servers all lists are requested in parallel,
 * and a server whose tools cannot be listed is in `missing`.
 *
 * @example
 * const toolkit = yield* Toolkit.make({ files, search }, { maxTools: 128 })
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
      yield* Effect.logWarning(`${omitted.length} of ${all.length} tools were left out of a toolkit (maxTools)`)
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
    // `fromEntries` defines own members, so that a tool named `__proto__` stays a member.
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
    // The mode is only a type here: the handlers above were made for it.
    return toolkit as Toolkit<Mode>
  })

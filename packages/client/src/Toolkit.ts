/**
 * Tools of MCP servers for a language model: a toolkit of `effect/ai` whose handlers call the tools.
 *
 * `Client.toolkit` is the same function. It loads this module, and `effect/ai` with it, only when it runs.
 *
 * - **Names.** The tools of a single client have their own names. With several servers the names are `<server>_<tool>`.
 *   Providers accept `^[a-zA-Z0-9_-]{1,64}$`: other characters become `_`. A name that is too long, or that several
 *   tools would have, ends with a digest of the exact names. Names do not depend on the order of servers and tools.
 *   `origins` maps each name to its server and tool.
 * - **Arguments.** Providers refuse parts of JSON Schema, and then the whole request. The model receives the schema in a
 *   form that all providers accept, or in that of one provider (`schemas`), and the description says what it no longer
 *   says. Its arguments are sent if they are an object, with the names of the server: the server validates them.
 * - **Results.** The result of a tool is the whole `CallToolResult`. The model receives its content block by block:
 *   text as text; images, audio and binary resources as files. Without content it receives the structured content as
 *   text.
 * - **Failures** are {@link ToolFailure}s. A result with `isError` has the reason `ToolFailed`; other failures have the
 *   reason of their `ClientError`, which is the member `error`. By default the model receives both kinds
 *   (`failureMode`).
 * - **Progress** becomes preliminary results if the model's response is a stream. Their text is the message, and their
 *   structured content is the report. The status messages of a task become preliminary results with text alone.
 * - **Pools.** The toolkit of a pool has the tools of the servers that are ready now. `pending` has the others. Pass the
 *   effect, not its result, as the `toolkit` of a generation: then each generation has the tools that are ready at its
 *   start. The pool stores the lists of servers that report changes, so that they are not requested each time.
 *
 * **Gotchas.** A toolkit has the tools that the servers had when it was made. With a single client, make a new one for
 * each conversation, or after a change: `client.changes({ tools: true })` begins with `Subscribed`, so
 * `Stream.mapEffect(() => Client.toolkit(client))` gives the toolkits one after another. Do not trust the descriptions
 * and annotations of remote tools: ask the user (`needsApproval`) before an important call.
 *
 * @example
 * const toolkit = Client.toolkit(pool, { include: (server, tool) => tool.name !== "delete" })
 * const { text } = yield* LanguageModel.generateText({ prompt: "What is new?", toolkit })
 */
import type { Tool as RemoteTool } from "@skein/protocol/Tool"
import { CallToolResult } from "@skein/protocol/CallTool"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Awaitable from "@skein/runtime/Awaitable"
import * as AiTool from "effect/ai/Tool"
import * as AiToolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as JsonSchema from "effect/JsonSchema"
import type { ClientError } from "./ClientError.ts"
import { partsOf } from "./internal/toolkit/content.ts"
import type { RequestOptions } from "./internal/base/callOptions.ts"
import { ToolFailure } from "./internal/toolkit/failure.ts"
import { type Callable, handler, type Origin } from "./internal/toolkit/handler.ts"
import { type ChooseOptions, chooseTools, type Override, type Summary, type Warned } from "./internal/toolkit/choose.ts"
import type { Form as SchemaForm } from "./internal/toolkit/providerRules.ts"
import { fitSchema, type Fitted as FittedSchema } from "./internal/toolkit/providerSchemas.ts"
import type { Change as SchemaChange } from "./internal/toolkit/schemaWork.ts"
import { estimateTokens, type Omitted, type ShownTool } from "./internal/toolkit/selection.ts"
import type { ToolClient, ToolPool, ToolSource } from "./internal/toolkit/source.ts"

export type { ChooseOptions, Omitted, Origin, Override, ShownTool, Summary, ToolClient, ToolPool, ToolSource }
export type { FittedSchema, SchemaChange, SchemaForm }
export { estimateTokens, fitSchema, ToolFailure }

/** The options of a toolkit: those that choose its tools, and these. */
export interface Options<Mode extends AiTool.FailureMode = AiTool.FailureMode> extends ChooseOptions {
  /**
   * Whether the model receives the structured content of a result beside other content. `fallback` (the default): only
   * if there is no other content. `beside`: also after other content, unless a text contains the same JSON. This applies
   * to results with `isError` as well.
   */
  readonly structuredContent?: "beside" | "fallback" | undefined
  /**
   * `return` (the default): the model receives each failure. `error`: a failure of the server or of the connection
   * fails the generation with a {@link ToolFailure}, and a result with `isError` reaches the model as a result.
   */
  readonly failureMode?: Mode | undefined
  /** The timeouts of a call: those of the client by default. */
  readonly request?: Pick<RequestOptions, "timeout" | "maxTimeout"> | undefined
  /**
   * Whether calls request progress reports: true by default. At most 16 are buffered for a slow reader of the model's
   * stream. Beyond that the oldest report is dropped. The result is never dropped.
   */
  readonly progress?: boolean | undefined
  /**
   * Selects the calls that need approval, by their arguments as well: none by default. See `needsApproval` of
   * `effect/ai`. The arguments are those of the model, unchecked, with the names of the server. A function that throws, or whose promise rejects or
   * effect fails, counts as one that needs approval, and is logged.
   *
   * @example
   * needsApproval: (server, { name }, args) => name === "write" && !String(args["path"]).startsWith("/tmp/")
   */
  readonly needsApproval?:
    | ((
      server: string | undefined,
      tool: RemoteTool,
      args: JsonObject
    ) => Awaitable.Awaitable<boolean, unknown>)
    | undefined
}

/** A remote tool as a tool of `effect/ai`. */
export type Dynamic<Mode extends AiTool.FailureMode = "return"> = AiTool.Dynamic<string, {
  readonly parameters: JsonSchema.JsonSchema
  readonly success: typeof CallToolResult
  readonly failure: typeof ToolFailure
  readonly failureMode: Mode
}>

/** Remote tools with their handlers, for the option `toolkit` of `LanguageModel.generateText` and its variants. */
export interface Toolkit<Mode extends AiTool.FailureMode = "return">
  extends AiToolkit.WithHandler<Record<string, Dynamic<Mode>>>, Summary
{
  /** The server and the tool of each name. */
  readonly origins: ReadonlyMap<string, Origin>
}

const annotated = <T extends AiTool.Any>(
  tool: T,
  { _meta, annotations = {}, title }: RemoteTool,
  isFitted: boolean
): T => {
  const { destructiveHint, idempotentHint, openWorldHint, readOnlyHint } = annotations
  const shown = title ?? annotations.title
  let result: AiTool.Any = tool
  // In the strict mode of OpenAI all properties are required, which few schemas of servers do.
  if (isFitted) result = result.annotate(AiTool.Strict, false)
  if (shown !== undefined) result = result.annotate(AiTool.Title, shown)
  if (_meta !== undefined) result = result.annotate(AiTool.Meta, _meta)
  if (readOnlyHint !== undefined) result = result.annotate(AiTool.Readonly, readOnlyHint)
  if (destructiveHint !== undefined) result = result.annotate(AiTool.Destructive, destructiveHint)
  if (idempotentHint !== undefined) result = result.annotate(AiTool.Idempotent, idempotentHint)
  if (openWorldHint !== undefined) result = result.annotate(AiTool.OpenWorld, openWorldHint)
  return result as T
}

/** Makes toolkits. Only the toolkit of a single client can fail. */
export interface Make {
  <Mode extends AiTool.FailureMode = "return">(
    source: ToolPool | Readonly<Record<string, ToolClient>>,
    options?: Options<Mode>
  ): Effect.Effect<Toolkit<Mode>>
  <Mode extends AiTool.FailureMode = "return">(
    source: ToolSource,
    options?: Options<Mode>
  ): Effect.Effect<Toolkit<Mode>, ClientError>
}

/** Whether a call needs approval. A decision that fails must not let the call through. */
const approvalOf = (
  needsApproval: NonNullable<Options["needsApproval"]>,
  { restore, server, tool }: Callable
) =>
(args: unknown): Effect.Effect<boolean> =>
  // The handler rejects arguments that are not an object.
  !isObject(args) ?
    Effect.succeed(false) :
    Awaitable.call(() => needsApproval(server, tool, restore(args) as JsonObject)).pipe(
      Effect.catchCause((cause) =>
        Effect.as(Effect.logWarning(`needsApproval failed, so that ${quote(tool.name)} needs approval`, cause), true)
      )
    )

const makeAny = Effect.fnUntraced(function*<Mode extends AiTool.FailureMode>(
  source: ToolSource,
  options: Options<Mode>,
  warned: Warned
): Effect.fn.Return<Toolkit<Mode>, ClientError> {
  const { needsApproval, progress = true, request } = options
  const { failureMode = "return" } = options as Options
  const isBeside = options.structuredContent === "beside"
  const { chosen, ...rest } = yield* chooseTools(source, options, warned)
  const toModelOutput = (result: CallToolResult) => partsOf(result, isBeside)
  const tools = chosen.map(({ description, inputSchema, name, remote }): Dynamic =>
    annotated(
      AiTool.dynamic(name, {
        description,
        parameters: inputSchema as JsonSchema.JsonSchema,
        success: CallToolResult,
        failure: ToolFailure,
        failureMode,
        needsApproval: needsApproval === undefined
          ? undefined
          : approvalOf(needsApproval, remote),
        toModelOutput
      }) as Dynamic,
      remote.tool,
      options.schemas !== "none"
    )
  )
  const kit: AiToolkit.Toolkit<Record<string, Dynamic>> = AiToolkit.make(...tools)
  const settings = { failureMode, isBeside, progress, request }
  // `fromEntries` defines own members, so that a tool named `__proto__` stays a member.
  const handlers = yield* kit.toHandlers(Object.fromEntries(
    chosen.map(({ name, remote }) => [name, handler(remote, settings)])
  ))
  const { handle, tools: byName } = yield* Effect.provideContext(kit, handlers)
  const toolkit: Toolkit = {
    ...rest,
    tools: byName,
    handle,
    origins: new Map(chosen.map(({ name, remote: { server, tool } }) => [name, { server, tool }]))
  }
  // The mode is only a type here: the handlers above were made for it.
  return toolkit as Toolkit<Mode>
})

/**
 * Makes a toolkit of the present tools of a client, of several clients by name, or of a pool.
 *
 * Fails when the tools of a single client cannot be listed. With several servers all lists are requested in parallel,
 * and a server whose tools cannot be listed is in `missing`. A server of a pool that is not ready within `readyTimeout`
 * is in `pending`, and in a toolkit that is made later.
 *
 * @example
 * const toolkit = yield* Toolkit.make({ files, search }, { maxTools: 128 })
 */
export const make: Make = <Mode extends AiTool.FailureMode = "return">(
  source: ToolSource,
  options: Options<Mode> = {}
): Effect.Effect<Toolkit<Mode>, never> =>
  // The failure is that of a single client, for which the type has it.
  makeAny(source, options, { about: "" }) as Effect.Effect<Toolkit<Mode>>

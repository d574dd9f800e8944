/**
 * Tools: functions that a model can call.
 *
 * A definition is a value. It has a name, a description, a schema for the arguments, and optionally a schema for the
 * result. `Tool.layer` registers the definition with its handler; `Tool.add` and `Tool.replace` do so while the server
 * runs. The handler receives the decoded arguments. The services that it needs are captured when the layer is built.
 * The request is available as the service `McpRequest`.
 *
 * @example
 * const add = Tool.make("add", {
 *   description: "Adds two numbers",
 *   input: { a: Schema.Finite, b: Schema.Finite },
 *   output: { sum: Schema.Finite }
 * })
 * const live = Tool.layer(add, ({ a, b }) => Effect.succeed({ sum: a + b }))
 *
 * // A schema of another library, and JSON Schema:
 * const search = Tool.make("search", { input: z.object({ query: z.string(), limit: z.int().default(10) }) })
 * const legacy = Tool.make("legacy", { input: JsonSchema.make<{ readonly id: string }>(schemaFromAFile) })
 *
 * // A handler returns text, numbers, objects (sent as their JSON), content blocks, or a whole result:
 * const plot = Tool.layer(Tool.make("plot"), () =>
 *   Effect.succeed([Content.text("Sales"), Content.image(png, "image/png")]))
 */
import type { Icon } from "@skein/protocol/BaseMetadata"
import type { Meta } from "@skein/protocol/Message"
import type { Caller } from "@skein/runtime/RequestContext"
import type * as WireTool from "@skein/protocol/Tool"
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { Catalog, HandlerServices } from "./Catalog.ts"
import type * as Content from "./Content.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { AsyncHandler, HandlerContext } from "./HandlerContext.ts"
import type { HandlerError } from "./HandlerError.ts"
import { toEffect } from "./internal/handlers/asyncHandler.ts"
import type { AsyncMistake, EffectMistake } from "./internal/handlers/handlerMistake.ts"
import { registerLayer, registerScoped } from "./internal/handlers/captureServices.ts"
import * as inputSchema from "./internal/schema/inputSchema.ts"
import type { AnySchema, Checked, Codec } from "./internal/schema/inputSchema.ts"
import type { Data } from "./internal/handlers/toolAnswer.ts"
import { registerTool } from "./internal/handlers/registerTool.ts"
import * as toolCall from "./internal/handlers/toolCall.ts"
import type { Visible } from "./Registry.ts"

export type { AnySchema, Codec } from "./internal/schema/inputSchema.ts"
export type { AsyncMistake, EffectMistake } from "./internal/handlers/handlerMistake.ts"
export type { ResultOptions, ToolResult as Result } from "./internal/handlers/toolCall.ts"

/** The arguments that a handler receives for a schema. */
export type InputOf<S extends AnySchema> = inputSchema.TypeOf<S>

/** The structured content that a handler returns for a schema. */
export type OutputOf<S extends AnySchema> = S extends Codec ? S["Type"]
  : S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S>
  : S extends Schema.Struct.Fields ? Schema.Struct.Type<S>
  : never

/**
 * The description of a tool. Clients receive its schemas as JSON Schema 2020-12, which is the dialect if `$schema` is
 * absent. A raw JSON Schema may be of draft-07 with the `$schema` of that draft.
 */
export interface Options<Input extends AnySchema, Output extends AnySchema> {
  /** A name for people. */
  readonly title?: string | undefined
  /** The purpose of the tool, for the model. */
  readonly description?: string | undefined
  /**
   * The arguments: a schema of an object, or its fields; a schema of another library (`z.object({ … })`); or JSON
   * Schema from `JsonSchema.make`. Without it the tool has no arguments.
   *
   * A schema of another library reads at most 100,000 values, nested ones included. More are refused before validation:
   * most libraries look for every fault, and need seconds for a million invalid values. An Effect Schema validates without
   * a pause, a million values in about 0.1 s; `JsonSchema` yields to the event loop.
   *
   * Clients of 2026-07-28 copy a field with the annotation `"x-mcp-header": "Region"` into the HTTP header
   * `Mcp-Param-Region`, so that gateways can route by it. Such a field must be a string, an integer or a boolean,
   * nested in objects only, and the name of the header must be unique in the tool.
   */
  readonly input?: Input | undefined
  /**
   * The structured content of the result, with a schema of the same kinds. Without it the tool returns content only.
   *
   * The schema may describe any JSON value since 2026-07-28. In earlier revisions it must describe an object. Clients
   * of those revisions do not receive a schema or a value of another type. They receive the JSON of the value as text.
   */
  readonly output?: Output | undefined
  /** Hints about the behavior of the tool. Clients must not trust them. */
  readonly annotations?: WireTool.ToolAnnotations | undefined
  /**
   * Whether a call may, must, or must not (the default) become a task. Only clients of 2025-11-25 receive it. It has an
   * effect only if `Tasks.layer` of `@skein/tasks` is among the definitions of the server. Otherwise leave it out,
   * because no call becomes a task.
   */
  readonly execution?: WireTool.ToolExecution | undefined
  /**
   * Which callers may see and call the tool. All callers by default. For other callers the tool does not exist. It must
   * be fast.
   */
  readonly visible?: Visible | undefined
  /**
   * Changes the tool as `tools/list` returns it to a caller, for one that lacks an extension, for example. By default all
   * callers receive the same. It runs for each list, must be fast, and must not change the name or the schemas.
   */
  readonly listedAs?: ((tool: WireTool.Tool, caller: Caller) => WireTool.Tool) | undefined
  /**
   * Labels by which the author of a server selects tools, as with `Transform.tools`. Clients do not receive them: list
   * them in `_meta` for clients that read them there.
   */
  readonly tags?: ReadonlyArray<string> | undefined
  readonly icons?: ReadonlyArray<Icon> | undefined
  /**
   * The version of the tool, such as `2.1` or `2026-01-31`. Clients receive it in `_meta`, as
   * `io.github.skein-mcp/version`. `ToolVersions` serves several versions under one name.
   */
  readonly version?: string | undefined
  readonly _meta?: Meta | undefined
  /** Values for the extensions of this server, as a `Context`. Clients never receive them. */
  readonly metadata?: Context.Context<never> | undefined
}

/** Makes a mistake in the schemas of a tool a type error that names it. */
export interface CheckedSchemas<Input extends AnySchema, Output extends AnySchema> {
  readonly input?: Checked<Input, "input"> | undefined
  readonly output?: Checked<Output, "output"> | undefined
  // The names of other libraries.
  readonly inputSchema?: "It is named `input` here"
  readonly outputSchema?: "It is named `output` here"
  readonly parameters?: "It is named `input` here"
}

/**
 * A tool's definition. `Input` is the type that its handler receives. `Output` is the type that it returns, or `never`
 * without an output schema.
 */
export interface Tool<Name extends string, Input, Output> {
  readonly name: Name
  readonly options: Omit<Options<never, never>, "input" | "output">
  readonly input: inputSchema.Reader<Input> | undefined
  readonly output: inputSchema.Writer<Output> | undefined
}

/**
 * The value that a handler returns. With an output schema it is the structured content or a `result`. Without one it is:
 *
 * - text, one content block, or several;
 * - a number, a boolean or a bigint, which is sent as its text;
 * - other data (an object, an array or `null`), which is sent as its JSON, in one text block. An empty array is data: the
 *   model reads `[]`;
 * - a `result`;
 * - nothing (`undefined`), which is sent without content.
 *
 * A value that has no JSON, such as a function, a `Map` or an effect that did not run, is not sent. Neither is an object
 * with the `type` of a content block but without its members, or a whole `{ content: [ … ] }`. The model receives a
 * result with `isError` that names the tool and the value, and the log has the same message.
 */
export type Answer<Output> = [Output] extends [never] ? AnyAnswer : Output | toolCall.ToolResult<Output>

/** The value that the handler of a tool without an output schema returns: see `Answer`. */
export type AnyAnswer = Content.Input | number | boolean | bigint | null | Data | toolCall.ToolResult<undefined> | void

/**
 * Defines a tool. The name should be 1 to 128 characters of `A-Z a-z 0-9 _ - .` (2025-11-25, "Tool Names"). Another
 * name is accepted, with a warning in the log, but clients and models may not handle it.
 *
 * @example
 * const forecast = Tool.make("forecast", {
 *   description: "Returns the forecast for a city",
 *   input: {
 *     city: Schema.String.annotate({ description: "The name of the city" }),
 *     days: Schema.optionalKey(Schema.Int)
 *   }
 * })
 */
export const make = <const Name extends string, Input extends AnySchema = {}, Output extends AnySchema = never>(
  name: Name,
  options: Options<Input, Output> & CheckedSchemas<Input, Output> = {} as never
): Tool<Name, InputOf<Input>, [Output] extends [never] ? never : OutputOf<Output>> => {
  const { input, output, ...rest } = options
  return {
    name,
    options: rest,
    input: input === undefined
      ? undefined
      : inputSchema.reader(input) as inputSchema.Reader<InputOf<Input>>,
    output: output === undefined ? undefined : inputSchema.writer(output)
  }
}

/**
 * Makes a result with both structured content and content blocks, or one that reports a failure with `isError`. A tool
 * with an output schema must give `structured`, unless it failed (2025-06-18, "Output Schema").
 *
 * @example
 * const live = Tool.layer(search, ({ query }) =>
 *   Effect.map(find(query), (hits) =>
 *     Tool.result({ structured: { hits }, content: `${hits.length} results for ${query}` })))
 */
export const result: {
  <Output>(answer: toolCall.ResultOptions & { readonly structured: Output }): toolCall.ToolResult<Output>
  (answer: toolCall.ResultOptions & { readonly isError: true }): toolCall.ToolResult<never>
  (answer: toolCall.ResultOptions): toolCall.ToolResult<undefined>
} = (answer: toolCall.Parts<unknown>): toolCall.ToolResult<never> =>
  new toolCall.ToolResult(answer) as toolCall.ToolResult<never>

/**
 * Registers a tool with its handler.
 *
 * - Arguments that do not match the input schema never reach the handler. The caller receives the message of the
 *   validation: as a tool result with `isError` since 2025-11-25, and as `-32602` before, where invalid arguments were
 *   protocol errors.
 * - A failure of the handler becomes a result with `isError` and the error's `message` as text. An `McpError` becomes a
 *   JSON-RPC error. A defect becomes a result with `isError` and a reference, and is logged: see
 *   `HandlerError.Development`.
 * - Structured content is encoded by the output schema before it is sent. A value that does not match is a defect.
 *
 * A handler that acquires resources needs a scope of its own: wrap its effect in `Effect.scoped`. Otherwise the layer
 * requires `Catalog.UnscopedHandler`, which nothing provides.
 *
 * Fails with `DefinitionError`: `DuplicateName`; `InvalidSchema` if a schema has no JSON Schema or an `x-mcp-header`
 * breaks its rules; `InvalidValue`. One failing tool fails the whole server.
 *
 * @example
 * const live = Tool.layer(forecast, ({ city, days = 1 }) =>
 *   Effect.flatMap(Weather, (weather) => weather.forecast(city, days)))
 */
export const layer = <Name extends string, Input, Output, R = never, A = never>(
  tool: Tool<Name, Input, Output>,
  // `NoInfer`: inferred from the handler, the output of a tool without an output schema would be the type that the
  // handler returns.
  handler: (
    input: Input
  ) => Effect.Effect<Answer<NoInfer<Output>>, HandlerError, R> | (EffectMistake<A, "Tool", Output> & A)
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  registerLayer(registerTool("add", tool, handler as Handler<Input, NoInfer<Output>, HandlerError, R>))

/**
 * Registers a tool with a handler that returns a value or a promise, in the place of an effect. Everything else is as in
 * `layer`. The second argument of the handler has the abort signal, the caller, and functions that ask the client, report
 * progress and log: see `HandlerContext`, which also lists the errors that a model sees.
 *
 * @example
 * const live = Tool.async(forecast, async ({ city }, { signal }) => {
 *   const response = await fetch(`https://weather.example/${encodeURIComponent(city)}`, { signal })
 *   if (response.status === 404) throw new VisibleError(`There is no city ${city}`)
 *   return response.text()
 * })
 */
const async_ = <Name extends string, Input, Output, R = never, A = never>(
  tool: Tool<Name, Input, Output>,
  handler: (
    input: Input,
    context: HandlerContext<R>
  ) => Answer<NoInfer<Output>> | Promise<Answer<NoInfer<Output>>> | (AsyncMistake<A, Output> & A)
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> =>
  layer(tool, toEffect(handler as AsyncHandler<Input, Answer<NoInfer<Output>>, R>))
export { async_ as async }

/**
 * Registers a tool with its handler until the scope closes, while the server runs. Fails as `layer` does. The name of a
 * disabled tool is taken.
 *
 * @example
 * Effect.scoped(Effect.andThen(Tool.add(forecast, handler), Effect.never))
 */
export const add = <Name extends string, Input, Output, R = never, A = never>(
  tool: Tool<Name, Input, Output>,
  handler: (
    input: Input
  ) => Effect.Effect<Answer<NoInfer<Output>>, HandlerError, R> | (EffectMistake<A, "Tool", Output> & A)
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | HandlerServices<R>> =>
  registerScoped(registerTool("add", tool, handler as Handler<Input, NoInfer<Output>, HandlerError, R>))

/**
 * Replaces the tool of the same name until the scope closes. Fails with `DefinitionError` `NotFound` if no tool has the
 * name, and otherwise as `layer` does.
 */
export const replace: typeof add = <Name extends string, Input, Output, R>(
  tool: Tool<Name, Input, Output>,
  handler: unknown
) => registerScoped(registerTool("replace", tool, handler as Handler<Input, Output, HandlerError, R>))

type Handler<Input, Output, E, R> = (input: Input) => Effect.Effect<Answer<Output>, E, R>

/**
 * Tools: what a model can call.
 *
 * A definition is a value: a name, what describes it, and a schema for what goes in and, if one is given, for what comes out.
 * `Tool.layer` binds it to its handler; `Tool.add` and `Tool.replace` do so while the server runs. The handler gets the decoded
 * arguments; the services that it needs are captured when the layer is built, and the request itself is the service `McpRequest`.
 *
 * @example
 * const add = Tool.make("add", {
 *   description: "Adds two numbers",
 *   input: { a: Schema.Finite, b: Schema.Finite },
 *   output: { sum: Schema.Finite }
 * })
 * const live = Tool.layer(add, ({ a, b }) => Effect.succeed({ sum: a + b }))
 *
 * // A schema of another library, and JSON Schema as it is:
 * const search = Tool.make("search", { input: z.object({ query: z.string(), limit: z.int().default(10) }) })
 * const legacy = Tool.make("legacy", { input: JsonSchema.make<{ readonly id: string }>(schemaFromAFile) })
 *
 * // Text, blocks of content, or a result that has all of it:
 * const plot = Tool.layer(Tool.make("plot"), () => Effect.succeed([Content.text("Sales"), Content.image(png, "image/png")]))
 */
import type * as Common from "@skein/protocol/Common"
import type * as WireTool from "@skein/protocol/Tool"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { Catalog, ToolEntry } from "./Catalog.ts"
import type * as Content from "./Content.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { HandlerError } from "./HandlerError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { quoted } from "./internal/text.ts"
import * as jsonSchema from "./internal/definitions/jsonSchema.ts"
import * as shape from "./internal/definitions/inputSchema.ts"
import * as toolCall from "./internal/definitions/toolCall.ts"
import type { Visible } from "./Registry.ts"
import { omitUndefined } from "./internal/json.ts"

/** An Effect Schema that reads or writes JSON and needs no services. */
export type Codec = Schema.ConstraintCodec<unknown, unknown>

/**
 * What describes arguments or structured content: an Effect Schema, the fields of a struct, a schema of another library that is a
 * Standard Schema and tells its JSON Schema (see `StandardSchema`), or JSON Schema itself (see `JsonSchema.make`).
 */
export type Shape = Codec | StandardSchemaV1 | { readonly [name: string]: Codec }

/** What a handler gets of arguments of a shape. */
export type InputOf<S extends Shape> = S extends Codec ? S["Type"]
  : S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S>
  : S extends Schema.Struct.Fields ? Schema.Struct.Type<S>
  : never

/** What a handler answers for structured content of a shape. */
export type OutputOf<S extends Shape> = S extends Codec ? S["Type"]
  : S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S>
  : S extends Schema.Struct.Fields ? Schema.Struct.Type<S>
  : never

/**
 * What describes a tool. Its schemas are told as JSON Schema 2020-12, which is meant where `$schema` is absent; a raw one may be
 * of draft-07 and say so.
 */
export interface Options<Input extends Shape, Output extends Shape> {
  /** A name for people. */
  readonly title?: string | undefined
  /** What the tool does, for the model. */
  readonly description?: string | undefined
  /**
   * The arguments: a schema of an object, or its fields; a schema of another library (`z.object({ … })`); or JSON Schema, given with
   * `JsonSchema.make`. None by default.
   *
   * A field that is annotated with `"x-mcp-header": "Region"` is mirrored by clients of 2026-07-28 into the HTTP header
   * `Mcp-Param-Region`, for gateways to route by. It is a string, an integer or a boolean, within nothing but objects, and the
   * name is unique.
   */
  readonly input?: Input | undefined
  /**
   * How many values the arguments may hold, all in all, where a schema of another library validates them; 100,000 by default.
   * More are refused unread: most libraries look for every fault, which takes some of them seconds for a million.
   */
  readonly maxValues?: number | undefined
  /**
   * The structured content of the result, described in the same ways. Without it the tool answers with content alone.
   *
   * Any JSON value since 2026-07-28. Before, it must be an object: of what is not one, clients of those revisions see neither the
   * schema nor the value, and read it as text.
   */
  readonly output?: Output | undefined
  /** Hints about what the tool does. Clients must not trust them. */
  readonly annotations?: WireTool.ToolAnnotations | undefined
  /**
   * Whether a call may be a task, must be one, or must not (the default). It is told to clients of 2025-11-25 alone, and does
   * something with `Tasks.layer` of `@skein/tasks` among the definitions of the server: without, no call is a task, and the
   * tool should not say so.
   */
  readonly execution?: WireTool.ToolExecution | undefined
  /** Who may see it, and so call it; everybody by default. To others there is no such tool. It must be quick. */
  readonly visible?: Visible | undefined
  readonly icons?: ReadonlyArray<Common.Icon> | undefined
  readonly _meta?: Common.Meta | undefined
  /** What extensions of this server have to know of it: never told to clients. */
  readonly extensions?: Context.Context<never> | undefined
}

/** A tool's definition. `Input` is what its handler gets; `Output` is what it answers, or `never` without an output schema. */
export interface Tool<Name extends string, Input, Output> {
  readonly name: Name
  readonly options: Omit<Options<never, never>, "input" | "maxValues" | "output">
  readonly input: shape.Reader<Input> | undefined
  readonly output: shape.Writer<Output> | undefined
}

/** Structured content together with content of the author's own, or with `isError`. Made by `result`. */
export interface Result<out Output> extends toolCall.ToolResult<Output> {}

/** What a handler may answer. With an output schema: its value, or a `result`. Without: text, blocks, or a `result`. */
export type Answer<Output> = [Output] extends [never] ? Content.Input | Result<undefined> | void
  : Output | Result<Output>

/**
 * Defines a tool. The name should be 1 to 128 characters of `A-Z a-z 0-9 _ - .` (2025-11-25, "Tool Names"). One that is not is
 * offered all the same, and the log says so: clients and models may stumble over it.
 */
export const make = <const Name extends string, Input extends Shape = {}, Output extends Shape = never>(
  name: Name,
  options: Options<Input, Output> = {}
): Tool<Name, InputOf<Input>, [Output] extends [never] ? never : OutputOf<Output>> => {
  const { input, maxValues = 100_000, output, ...rest } = options
  return {
    name,
    options: rest,
    input: input === undefined ? undefined : shape.reader(input, maxValues) as shape.Reader<InputOf<Input>>,
    output: output === undefined ? undefined : shape.writer(output)
  }
}

/** What an answer may have besides structured content. */
export interface Extras extends toolCall.Extras {}

/**
 * Answers with structured content *and* content of one's own, or says that the tool failed. A tool with an output schema gives
 * `structured`, unless it failed (2025-06-18, "Output Schema").
 */
export const result: {
  <Output>(answer: Extras & { readonly structured: Output }): Result<Output>
  (answer: Extras & { readonly isError: true }): Result<never>
  (answer: Extras): Result<undefined>
} = (answer: toolCall.Parts<unknown>): Result<never> => new toolCall.ToolResult(answer) as Result<never>

/** What the layer of a handler needs for it: all that the request does not bring. */
export type Needed<R> = captured.Required<R>

/**
 * Offers a tool with its handler.
 *
 * - Arguments that do not fit the input schema never reach the handler: the caller gets the validation's message, as a tool
 *   result with `isError` since 2025-11-25, and as `-32602` before (where "Invalid arguments" was a protocol error).
 * - What the handler fails with becomes a result with `isError` whose text is the error's `message`; an `McpError` becomes a
 *   JSON-RPC error instead. A defect is answered `-32603` and a reference, and logged.
 * - A structured answer is encoded by the output schema before it is sent; one that does not fit is a defect.
 *
 * What the handler acquires needs a scope of its own: wrap it in `Effect.scoped`. Without, nobody can build the layer.
 *
 * Fails with `DefinitionError` when the name is taken, a schema cannot be said as JSON Schema or used, or an `x-mcp-header` breaks
 * its rules. One tool that fails so never hides the others: the server is not built.
 */
export const layer = <Name extends string, Input, Output, E extends HandlerError = never, R = never>(
  tool: Tool<Name, Input, Output>,
  // What a tool answers is what its definition says: inferred from here, a tool without an output schema would take anything.
  handler: (input: Input) => Effect.Effect<Answer<NoInfer<Output>>, E, R>
): Layer.Layer<never, DefinitionError, Catalog | captured.Required<R>> => captured.layer(offer("add", tool, handler))

/**
 * Offers a tool with its handler until the scope closes, while the server runs. Fails as `layer` does; a name that is taken by
 * one that is disabled is taken.
 */
export const add = <Name extends string, Input, Output, E extends HandlerError = never, R = never>(
  tool: Tool<Name, Input, Output>,
  handler: (input: Input) => Effect.Effect<Answer<NoInfer<Output>>, E, R>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | captured.Required<R>> =>
  captured.effect(offer("add", tool, handler))

/** The same in the stead of the tool that has the name, which is back when the scope closes. Fails with `Unknown` without one. */
export const replace = <Name extends string, Input, Output, E extends HandlerError = never, R = never>(
  tool: Tool<Name, Input, Output>,
  handler: (input: Input) => Effect.Effect<Answer<NoInfer<Output>>, E, R>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | captured.Required<R>> =>
  captured.effect(offer("replace", tool, handler))

const offer = <Name extends string, Input, Output, E extends HandlerError, R>(
  how: "add" | "replace",
  tool: Tool<Name, Input, Output>,
  handler: (input: Input) => Effect.Effect<Answer<Output>, E, R>
): captured.Register<R> =>
(catalog, provide) =>
  Effect.flatMap(describe(tool), ({ definition, headers }) =>
    catalog.tools[how](tool.name, {
      definition,
      visible: tool.options.visible,
      extensions: tool.options.extensions,
      headers,
      call: toolCall.make(tool, (input) => provide(handler(input)))
    }))

/** "Tool names SHOULD be between 1 and 128 characters", of these and no others (2025-11-25, "Tool Names"). */
const advise = (name: string): Effect.Effect<void> =>
  /^[\w.-]{1,128}$/.test(name)
    ? Effect.void
    : Effect.logWarning(
      `The tool name ${quoted(name)} should be 1 to 128 characters of A-Z a-z 0-9 _ - .`
    )

/** The tool as `tools/list` shows it, and the arguments that clients mirror into headers. */
const describe = <Name extends string, Input, Output>(
  { input, name, options, output }: Tool<Name, Input, Output>
): Effect.Effect<Pick<ToolEntry, "definition" | "headers">, DefinitionError> =>
  Effect.gen(function*() {
    yield* advise(name)
    const named = { kind: "tool", definition: name } as const
    const { extensions: _, visible: __, ...said } = options
    const inputSchema = input === undefined
      ? jsonSchema.none
      : yield* jsonSchema.attempt("input schema", named, input.jsonSchema)
    const outputSchema = output === undefined
      ? undefined
      : yield* jsonSchema.attempt("output schema", named, output.jsonSchema)
    const headers = yield* jsonSchema.attempt("input schema", named, () => jsonSchema.headers(inputSchema))
    return {
      definition: {
        name,
        ...omitUndefined(said),
        inputSchema,
        ...(outputSchema === undefined ? undefined : { outputSchema })
      },
      headers
    }
  })

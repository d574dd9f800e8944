/**
 * Tools: what a model can call.
 *
 * A definition is a value: a name, what describes it, and a schema for what goes in and, if one is given, for what comes out.
 * `Tool.layer` binds it to its handler. The handler gets the decoded arguments; the services that it needs are captured when
 * the layer is built, and the request itself is the service `McpRequest`.
 *
 * @example
 * const add = Tool.make("add", {
 *   description: "Adds two numbers",
 *   input: { a: Schema.Finite, b: Schema.Finite },
 *   output: { sum: Schema.Finite }
 * })
 * const live = Tool.layer(add, ({ a, b }) => Effect.succeed({ sum: a + b }))
 */
import type * as Common from "@skein/protocol/Common"
import type * as WireTool from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Catalog } from "./Catalog.ts"
import type * as Content from "./Content.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { HandlerError } from "./HandlerError.ts"
import * as captured from "./internal/captured.ts"
import { clip } from "./internal/clip.ts"
import * as jsonSchema from "./internal/jsonSchema.ts"
import * as toolCall from "./internal/toolCall.ts"

/** A schema that reads or writes JSON and needs no services. */
export type Codec = Schema.ConstraintCodec<unknown, unknown>

/** A schema, or the fields of a struct. */
export type Shape = Codec | { readonly [name: string]: Codec }

/** What a shape decodes to. */
export type TypeOf<S extends Shape> = S extends Codec ? S["Type"]
  : S extends Schema.Struct.Fields ? Schema.Struct.Type<S>
  : never

/** What describes a tool. Its schemas are told as JSON Schema 2020-12, which is meant where `$schema` is absent. */
export interface Options<Input extends Shape, Output extends Shape> {
  /** A name for people. */
  readonly title?: string
  /** What the tool does, for the model. */
  readonly description?: string
  /** The arguments: a schema of an object, or its fields. None by default. */
  readonly input?: Input
  /** The structured content of the result. Without it the tool answers with content alone. */
  readonly output?: Output
  /** Hints about what the tool does. Clients must not trust them. */
  readonly annotations?: WireTool.ToolAnnotations
  readonly icons?: ReadonlyArray<Common.Icon>
  readonly _meta?: Common.Meta
}

/** A tool's definition. `Input` is what its handler gets; `Output` is what it answers, or `never` without an output schema. */
export interface Tool<Name extends string, Input, Output> {
  readonly name: Name
  readonly options: Omit<Options<never, never>, "input" | "output">
  readonly input: Schema.ConstraintCodec<Input, unknown> | undefined
  readonly output: Schema.ConstraintCodec<Output, unknown> | undefined
}

/** Structured content together with content of the author's own, or with `isError`. Made by `result`. */
export interface Result<out Output> extends toolCall.ToolResult<Output> {}

/** What a handler may answer. With an output schema: its value, or a `result`. Without: text, blocks, or a `result`. */
export type Answer<Output> = [Output] extends [never] ? Content.Input | Result<undefined> | void
  : Output | Result<Output>

const schemaOf = (shape: Shape): Codec =>
  Schema.isSchema(shape) ? shape as Codec : Schema.Struct(shape as Schema.Struct.Fields) as unknown as Codec

/**
 * Defines a tool. The name should be 1 to 128 characters of `A-Z a-z 0-9 _ - .` (2025-11-25, "Tool Names"). One that is not is
 * offered all the same, and the log says so: clients and models may stumble over it.
 */
export const make = <const Name extends string, Input extends Shape = {}, Output extends Shape = never>(
  name: Name,
  options: Options<Input, Output> = {}
): Tool<Name, TypeOf<Input>, [Output] extends [never] ? never : TypeOf<Output>> => {
  const { input, output, ...rest } = options
  return {
    name,
    options: rest,
    input: input === undefined ? undefined : schemaOf(input) as Schema.ConstraintCodec<TypeOf<Input>, unknown>,
    output: output === undefined ? undefined : schemaOf(output) as never
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
 * Fails with `DefinitionError` when the name is taken or a schema cannot be said as JSON Schema.
 */
export const layer = <Name extends string, Input, Output, E extends HandlerError = never, R = never>(
  tool: Tool<Name, Input, Output>,
  // What a tool answers is what its definition says: inferred from here, a tool without an output schema would take anything.
  handler: (input: Input) => Effect.Effect<Answer<NoInfer<Output>>, E, R>
): Layer.Layer<never, DefinitionError, Catalog | captured.Needed<R>> =>
  captured.layer<R>((catalog, provide) =>
    Effect.flatMap(
      describe(tool),
      (definition) =>
        catalog.tools.add(tool.name, { definition, call: toolCall.make(tool, (input) => provide(handler(input))) })
    )
  )

/** "Tool names SHOULD be between 1 and 128 characters", of these and no others (2025-11-25, "Tool Names"). */
const advise = (name: string): Effect.Effect<void> =>
  /^[\w.-]{1,128}$/.test(name)
    ? Effect.void
    : Effect.logWarning(
      `The tool name ${JSON.stringify(clip(name))} should be 1 to 128 characters of A-Z a-z 0-9 _ - .`
    )

/** The tool as `tools/list` shows it. */
const describe = <Name extends string, Input, Output>(
  { input, name, options, output }: Tool<Name, Input, Output>
): Effect.Effect<WireTool.Tool, DefinitionError> =>
  Effect.gen(function*() {
    yield* advise(name)
    const named = { kind: "tool", definition: name } as const
    const inputSchema = input === undefined ? jsonSchema.none : yield* jsonSchema.input(input, named)
    const outputSchema = output === undefined ? undefined : yield* jsonSchema.output(output, named)
    return { name, ...options, inputSchema, ...(outputSchema === undefined ? undefined : { outputSchema }) }
  })

/**
 * Definitions with async functions, for programs that do not use Effect: the methods of `AsyncServer` as functions. Each
 * returns a layer.
 *
 * A server starts sooner with them than with `Tool.async` and the like: the code of resources and prompts is loaded when
 * there is one, and a tool whose schemas are of another library does not load Effect's Schema.
 *
 * @example
 * const price = AsyncDefinition.tool("price", { input: z.object({ tea: z.string() }) }, ({ tea }) => prices[tea])
 * new AsyncServer({ name: "shop", version: "1.0.0" }).use(price).runStdio()
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { Catalog } from "./Catalog.ts"
import type * as Completion from "./Completion.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { AsyncHandler, HandlerContext } from "./HandlerContext.ts"
import { toEffect } from "./internal/handlers/asyncHandler.ts"
import { failureOf } from "./internal/handlers/handlerError.ts"
import { registerLayer } from "./internal/handlers/captureServices.ts"
import type { AsyncMistake } from "./internal/handlers/handlerMistake.ts"
import * as conversation from "./internal/input/conversation.ts"
import { registerTool } from "./internal/handlers/registerTool.ts"
import { type ResultOptions, ToolResult } from "./internal/handlers/toolCall.ts"
import type { AnySchema } from "./internal/schema/inputSchema.ts"
import { standardReader, standardWriter } from "./internal/schema/standardReader.ts"
import { isStandardSchema } from "./internal/schema/standardSchema.ts"
import { jsonCodec, makeState, standardCodec } from "./internal/state/makeState.ts"
import type * as Prompt from "./Prompt.ts"
import type * as Resource from "./Resource.ts"
import type * as ResourceTemplate from "./ResourceTemplate.ts"
import type * as State from "./State.ts"
import type * as Tool from "./Tool.ts"

/** A definition: a layer that registers an entry in the catalog of its server. */
export type Definition = Layer.Layer<never, DefinitionError, Catalog>

/** The structured content of a tool, or `never` without an output schema. */
export type OutputOf<Output extends AnySchema> = [Output] extends [never] ? never : Tool.OutputOf<Output>

/** The value that the handler of a tool returns: see `Tool.Answer`. */
export type ToolAnswer<Output extends AnySchema> = Tool.Answer<NoInfer<OutputOf<Output>>>

/** The variables that the reader of a template receives. */
export type TemplateVariables<T extends string, V extends ResourceTemplate.Variables> = [V] extends [never]
  ? ResourceTemplate.Matched<T>
  : ResourceTemplate.VariablesOf<V>

/** A definition whose module is loaded when the server is built. */
const loaded = <M>(load: () => Promise<M>, define: (module: M) => Layer.Layer<never, unknown, Catalog>): Definition =>
  Layer.unwrap(Effect.map(Effect.promise(load), define)) as Definition

/**
 * Whether a schema is one of another library, or absent. An Effect Schema that was also made a Standard Schema counts as an
 * Effect Schema, which has an `ast`.
 */
const isForeign = (schema: unknown): boolean =>
  schema === undefined || (isStandardSchema(schema) && !Predicate.hasProperty(schema, "ast"))

/** Refuses a definition of an untyped program that lacks a part. */
const requireParts = (name: unknown, handler: unknown, problem: string): void => {
  if (typeof name !== "string" || typeof handler !== "function") throw new TypeError(problem)
}

/**
 * Defines a tool: see `Tool.make` and `Tool.async`.
 *
 * @example
 * AsyncDefinition.tool("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b)
 */
export const tool = <Input extends AnySchema = {}, Output extends AnySchema = never, A = never>(
  name: string,
  options: Tool.Options<Input, Output> & Tool.CheckedSchemas<Input, Output>,
  // Not an alias: the compiler would show its name in the place of the mistake.
  handler: (
    input: Tool.InputOf<Input>,
    context: HandlerContext
  ) => ToolAnswer<Output> | Promise<ToolAnswer<Output>> | (AsyncMistake<A, OutputOf<Output>> & A)
): Definition => {
  requireParts(
    name,
    handler,
    "A tool needs a name, options and a handler: tool(\"name\", { input }, async ({ … }) => …)"
  )
  const run = handler as AsyncHandler<unknown, Tool.AnyAnswer, never>
  const { input, output, ...rest } = options
  if (!isForeign(input) || !isForeign(output)) {
    return loaded(() => import("./Tool.ts"), (Tool) => Tool.async(Tool.make(name, options as {}), run))
  }
  const definition = {
    name,
    options: rest,
    input: input === undefined ? undefined : standardReader(input as never),
    output: output === undefined ? undefined : standardWriter(output as never)
  }
  return registerLayer(registerTool("add", definition, toEffect(run) as never))
}

/** Makes a result with structured content, content blocks, or `isError`: see `Tool.result`. */
export const result = <Output>(
  answer: ResultOptions & { readonly structured?: Output | undefined }
): ToolResult<Output> => new ToolResult(answer)

/** Defines a resource: see `Resource.make` and `Resource.async`. */
export const resource = (
  uri: string,
  options: Resource.Options,
  read: (context: HandlerContext) => Resource.Answer | Promise<Resource.Answer>
): Definition => {
  requireParts(
    uri,
    read,
    "A resource needs a URI, options and a reader: resource(\"shop://menu\", {}, async () => …)"
  )
  return loaded(() => import("./Resource.ts"), (Resource) => Resource.async(Resource.make(uri, options), read))
}

/**
 * Defines a resource template: see `ResourceTemplate.make` and `ResourceTemplate.async`. `completion` has the
 * suggestions for variables: lists, or functions that return lists or promises.
 */
export const template = <
  const T extends string,
  V extends ResourceTemplate.Variables = never,
  C extends Completion.Sources<keyof TemplateVariables<T, V> & string> = {}
>(
  uriTemplate: T,
  options: ResourceTemplate.Options<V> & ResourceTemplate.CheckedVariables<T, V>,
  read: (
    variables: TemplateVariables<T, V>,
    uri: string,
    context: HandlerContext
  ) => ResourceTemplate.Answer | Promise<ResourceTemplate.Answer>,
  completion?: Completion.Options<keyof TemplateVariables<T, V> & string, C>
): Definition => {
  requireParts(
    uriTemplate,
    read,
    "A template needs a URI template, options and a reader: template(\"notes://{id}\", { name }, async ({ id }) => …)"
  )
  return loaded(
    () => import("./ResourceTemplate.ts"),
    (Template) =>
      Template.async(Template.make<T, V>(uriTemplate, options), read, completion) as Layer.Layer<
        never,
        unknown,
        Catalog
      >
  )
}

/**
 * Defines a prompt: see `Prompt.make` and `Prompt.async`. `completion` has the suggestions for arguments: lists, or
 * functions that return lists or promises.
 */
export const prompt = <
  A extends Prompt.Arguments = {},
  C extends Completion.Sources<keyof Prompt.ArgumentsOf<A> & string> = {}
>(
  name: string,
  options: Prompt.Options<A> & Prompt.CheckedArguments<A>,
  handler: AsyncHandler<Prompt.ArgumentsOf<A>, Prompt.Answer, never>,
  completion?: Completion.Options<keyof Prompt.ArgumentsOf<A> & string, C>
): Definition => {
  requireParts(
    name,
    handler,
    "A prompt needs a name, options and a handler: prompt(\"name\", { arguments }, async ({ … }) => …)"
  )
  return loaded(
    () => import("./Prompt.ts"),
    (Prompt) => Prompt.async(Prompt.make<A>(name, options), handler, completion) as Layer.Layer<never, unknown, Catalog>
  )
}

/** Defines a state whose schema, if there is one, is of another library: see `State.make`. */
export const state = <A, In = A>(
  name: string,
  options:
    & State.Options<A>
    & { readonly schema?: StandardSchemaV1<In, A> | undefined }
    & State.CheckedSchema<A, In>
): State.State<A> =>
  makeState<A>(name, options, options.schema === undefined ? jsonCodec() : standardCodec(name, options.schema))

/** Returns the failure behind a result with `isError`: see `Middleware.failureOf`. */
export const failureBehind: typeof failureOf = (result) => failureOf(result)

/** The functions of `Sampling` that make messages and read answers. */
export const samplingMessages = {
  assistant: conversation.assistant,
  text: conversation.text,
  toMessage: conversation.toMessage,
  toolResult: conversation.toolResult,
  toolUses: conversation.toolUses,
  user: conversation.user
}

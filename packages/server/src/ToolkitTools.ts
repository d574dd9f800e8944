/**
 * Toolkits of `effect/ai` as tools, and tools as a toolkit of `effect/ai`: the same tools for clients of this server, and
 * for a language model in this process.
 *
 * `layer` registers the tools of a toolkit, with the handlers of `toolkit.toLayer`:
 *
 * - **Schemas.** The parameters are the input schema, and the success is the output schema unless it is `Void`, `Unknown`
 *   or a stream of parts (`toModelOutput`). A dynamic tool keeps its JSON Schema, by which its arguments are validated.
 * - **Annotations.** `Title`, `Meta`, `Readonly`, `Destructive`, `Idempotent` and `OpenWorld` that a tool has become its
 *   title, `_meta` and hints.
 * - **Failures.** A declared failure of a handler is a result with `isError`, in both failure modes: its message, or the
 *   encoded failure if it has none. Invalid arguments are answered as those of other tools. A defect, a failure that the
 *   tool does not declare, and a result that does not match its schema, are a result with `isError` and a reference, and
 *   logged.
 * - **Preliminary results** are progress reports.
 * - **Approval.** A tool that needs approval asks the user before the call: see `approval`.
 * - **Provider-defined tools** run at the provider of a model. They fail the layer: leave them out with `exclude`.
 *
 * `make` is the other way. It calls the handlers directly, without a client, so it has neither the middleware nor the
 * requests of a server. Use `Client.toolkit` over `InMemoryTransport` for a whole server, with handlers that need
 * `McpRequest`.
 *
 * @example
 * const Server = McpServer.layer({ name: "dice", version: "1.0.0" }, ToolkitTools.layer(Dice)).pipe(
 *   Layer.provide(Dice.toLayer({ roll: ({ sides }) => Random.nextIntBetween(1, sides + 1) }))
 * )
 */
import type * as Wire from "@skein/protocol/CallTool"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import { clip, quote } from "@skein/protocol/Text"
import type { ToolAnnotations } from "@skein/protocol/Tool"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as AiError from "effect/ai/AiError"
import * as Prompt from "effect/ai/Prompt"
import * as AiTool from "effect/ai/Tool"
import * as AiToolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as JsonSchema from "effect/JsonSchema"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as Stream from "effect/Stream"
import type { Catalog, HandlerServices } from "./Catalog.ts"
import * as Content from "./Content.ts"
import { DefinitionError, InvalidValue } from "./DefinitionError.ts"
import * as Elicitation from "./Elicitation.ts"
import type { HandlerError } from "./HandlerError.ts"
import * as effectSchema from "./internal/schema/effectSchema.ts"
import * as inputSchema from "./internal/schema/inputSchema.ts"
import * as jsonSchema from "./internal/schema/jsonSchema.ts"
import * as toolCall from "./internal/handlers/toolCall.ts"
import { make as rawJsonSchema } from "./JsonSchema.ts"
import * as Progress from "./Progress.ts"
import * as Tool from "./Tool.ts"

/** The options of `layer`. */
export interface Options<Tools extends Record<string, AiTool.Any>> {
  /** The names of the tools that are not registered. None by default. */
  readonly exclude?: ReadonlyArray<keyof Tools & string> | undefined
  /** Names a tool. Its own name by default. */
  readonly name?: ((name: keyof Tools & string) => string) | undefined
  /**
   * The approval of a call of a tool that needs it (`needsApproval`). `"ask"` (the default): the user is asked
   * with a form, and a client that cannot show forms gets a failure. `"client"`: the call runs, for clients that ask
   * their users themselves.
   */
  readonly approval?: "ask" | "client" | undefined
}

type AnySchema = Schema.Codec<unknown, unknown, unknown, unknown>

// As for the arguments of other tools.
/** The annotations of a tool that are hints. */
const hintKeys = {
  readOnlyHint: AiTool.Readonly,
  destructiveHint: AiTool.Destructive,
  idempotentHint: AiTool.Idempotent,
  openWorldHint: AiTool.OpenWorld
}
const hints = /* @__PURE__ */ Object.entries(hintKeys) as ReadonlyArray<
  [keyof typeof hintKeys, typeof hintKeys[keyof typeof hintKeys]]
>

/** The hints that the author has set. Those that are not set have the defaults of the protocol, which are the same. */
const hintsOf = ({ annotations }: AiTool.Any): ToolAnnotations =>
  Object.fromEntries(
    hints
      .filter(([, key]) => annotations.mapUnsafe.has(key.key))
      .map(([hint, key]) => [hint, Context.get(annotations, key)])
  )

const isEmptyParameters = (schema: unknown): boolean => schema === AiTool.EmptyParams

/** The JSON Schema of the parameters, and its validation for a schema that `effect/ai` does not validate. */
const inputOf = (tool: AiTool.Any): inputSchema.Reader<JsonObject> | undefined => {
  if (AiTool.isDynamic(tool) && tool.jsonSchema !== undefined) {
    return inputSchema.reader(rawJsonSchema(tool.jsonSchema as JsonObject)) as inputSchema.Reader<JsonObject>
  }
  if (isEmptyParameters(tool.parametersSchema)) return undefined
  // The handler decodes the parameters, with the services that their schema may need.
  return {
    jsonSchema: () => effectSchema.input(tool.parametersSchema),
    compile: () => (value) => Result.succeed(value as JsonObject)
  }
}

/** The schema of the structured content: none for a success without a schema. */
const outputOf = ({ successSchema, toModelOutput }: AiTool.Any): inputSchema.Writer<unknown> | undefined => {
  const { ast } = successSchema
  const isSilent = AST.isVoid(ast) || AST.isUndefined(ast) || AST.isUnknown(ast) || AST.isAny(ast)
  if (isSilent || toModelOutput !== undefined) return undefined
  return { jsonSchema: () => effectSchema.output(successSchema), compile: () => Result.succeed }
}

const blockOf = (part: Prompt.ToolModelOutputPart): Content.ContentBlock => {
  if (part.type === "text") return Content.text(part.text)
  const { data, mediaType } = part
  if (data instanceof URL) return Content.text(data.href)
  if (mediaType.startsWith("image/")) return Content.image(data, mediaType)
  if (mediaType.startsWith("audio/")) return Content.audio(data, mediaType)
  const bytes = typeof data === "string" ? Uint8Array.from(atob(data), (character) => character.charCodeAt(0)) : data
  return Content.resource(`file:///${encodeURIComponent(part.fileName ?? "file")}`, bytes, { mimeType: mediaType })
}

/** The value that the toolkit has returned for a call. */
interface Returned {
  readonly result: unknown
  readonly isFailure: boolean
  readonly modelOutput?: ReadonlyArray<Prompt.ToolModelOutputPart> | undefined
  readonly preliminary: boolean
}

const failed = (content: string) => Tool.result({ isError: true, content })

/** The message of a failure for the model: its own, or its encoded form. */
const failureText = ({ failureSchema }: AiTool.Any, failure: unknown): Effect.Effect<string, never, unknown> => {
  if (failure instanceof Error && failure.message !== "") return Effect.succeed(failure.message)
  if (typeof failure === "string") return Effect.succeed(failure)
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(failureSchema) as AnySchema)
  return Effect.map(Effect.orDie(encode(failure)), (json) => JSON.stringify(json))
}

/**
 * Turns a failure into a result. Failures that the tool does not declare, and results that do not match their schema, are
 * defects: their messages are not for the model.
 */
const toFailure = Effect.fnUntraced(function*(tool: AiTool.Any, name: string, failure: unknown) {
  if (AiError.isAiError(failure) && failure.reason._tag === "ToolParameterValidationError") {
    return yield* invalidArguments(name, failure.reason.description)
  }
  if (AiError.isAiError(failure) && failure.reason._tag === "ToolResultEncodingError") {
    return yield* Effect.die(toolCall.outputMismatch(name, failure.reason.description))
  }
  if (!Schema.is(tool.failureSchema)(failure)) return yield* Effect.die(failure)
  return failed(yield* failureText(tool, failure))
})

/** Before 2025-11-25 invalid arguments are protocol errors, as for other tools. */
const invalidArguments = (name: string, problem: string) =>
  Effect.flatMap(
    McpRequest,
    ({ caller }) =>
      Effect.map(toolCall.refuseArguments(name, problem, caller.revision), (result) => Tool.result(result))
  )

/** The arguments of a call: decoded, and as the toolkit decodes them. */
interface Arguments {
  readonly decoded: unknown
  readonly encoded: unknown
}

/**
 * Makes the function that reads the arguments of a tool. The toolkit decodes the encoded form of the schema, which need not
 * be JSON: a `Date` stays a `Date` there.
 */
const argumentsOf = (tool: AiTool.Any): (args: JsonObject) => Effect.Effect<Arguments, string, unknown> => {
  if (AiTool.isDynamic(tool) && tool.jsonSchema !== undefined) {
    return (args) => Effect.succeed({ decoded: args, encoded: args })
  }
  const parameters = tool.parametersSchema as AnySchema
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(parameters))
  const encode = Schema.encodeUnknownEffect(parameters)
  return (args) =>
    Effect.mapError(decode(args, { errors: holdsFew(args) ? "all" : "first" }), ({ message }) => message).pipe(
      Effect.flatMap((decoded) => Effect.map(Effect.orDie(encode(decoded)), (encoded) => ({ decoded, encoded })))
    )
}

// In larger arguments only the first problem is searched for, as for other tools.
const holdsFew = (args: JsonObject): boolean => Nesting.holdsAtMost(args, 10_000)

/** Whether a call needs approval. */
const needsApproval = ({ needsApproval }: AiTool.Any, args: unknown): Effect.Effect<boolean> => {
  if (typeof needsApproval !== "function") return Effect.succeed(needsApproval === true)
  const decided = needsApproval(args, { toolCallId: "", messages: [] })
  return Effect.isEffect(decided) ? decided : Effect.succeed(decided)
}

const approve = Schema.Boolean.annotate({ title: "Allow the call" })

/** Asks the user. Returns why the call may not run, or `undefined`. */
const askForApproval = (name: string, args: JsonObject) =>
  Effect.map(
    Elicitation.form(`Allow the tool ${name} with these arguments? ${clip(JSON.stringify(args), 500)}`, { approve }),
    (answer) =>
      answer.action === "accept" && answer.content.approve ? undefined : `The user did not allow the tool ${name}`
  )

const refused = (name: string, message: string) =>
  new DefinitionError({ reason: new InvalidValue({ message }), kind: "tool", definition: name })

/**
 * Registers the tools of a toolkit. The handlers are those of the toolkit's own layer.
 *
 * Fails with `DefinitionError`: `InvalidValue` for a provider-defined tool; `DuplicateName`; `InvalidSchema` if a schema
 * has no JSON Schema.
 *
 * @example
 * const Tools = ToolkitTools.layer(Dice, { name: (name) => `dice_${name}` }).pipe(Layer.provide(DiceLive))
 */
export const layer = <Tools extends Record<string, AiTool.Any>>(
  toolkit: AiToolkit.Toolkit<Tools>,
  options: Options<Tools> = {}
): Layer.Layer<
  never,
  DefinitionError,
  Catalog | AiTool.HandlersFor<Tools> | HandlerServices<AiTool.HandlerServices<Tools[keyof Tools]>>
> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const { approval = "ask", exclude = [] } = options
    const names = Object.keys(toolkit.tools).filter((name) => !exclude.includes(name))
    for (const name of names) {
      if (!AiTool.isProviderDefined(toolkit.tools[name])) continue
      return yield* Effect.fail(refused(
        name,
        `The tool ${quote(name)} is defined by a provider of models, and only runs there: leave it out with exclude`
      ))
    }
    const { handle } = yield* AiToolkit.make(...names.map((name) => toolkit.tools[name]!)) as unknown as Effect.Effect<{
      readonly handle: (
        name: string,
        args: unknown
      ) => Effect.Effect<Stream.Stream<Returned, unknown, unknown>, AiError.AiError, unknown>
    }>
    for (const name of names) {
      const tool = toolkit.tools[name]!
      const shown = options.name?.(name) ?? name
      const output = outputOf(tool)
      const readArguments = argumentsOf(tool)
      const toJson = Schema.encodeUnknownEffect(Schema.toCodecJson(tool.successSchema) as AnySchema)
      const toSuccess = Effect.fnUntraced(function*({ modelOutput, result }: Returned) {
        if (modelOutput !== undefined) return Tool.result({ content: modelOutput.map(blockOf) })
        if (result === undefined) return Tool.result({ content: [] })
        const structured = yield* Effect.orDie(toJson(result))
        return output === undefined && typeof structured === "string"
          ? Tool.result({ content: structured })
          : Tool.result({ structured })
      })
      const call = Effect.fnUntraced(function*(args: JsonObject) {
        const read = yield* Effect.result(readArguments(args))
        if (Result.isFailure(read)) return yield* invalidArguments(shown, read.failure)
        const { decoded, encoded } = read.success
        if (approval === "ask" && (yield* needsApproval(tool, decoded))) {
          const problem = yield* askForApproval(shown, args)
          if (problem !== undefined) return failed(problem)
        }
        let last: Returned | undefined
        let reports = 0
        const ran = yield* Effect.result(
          Stream.runForEach(Stream.unwrap(handle(name, encoded)), (returned) => {
            if (returned.preliminary) return report(toJson, ++reports, returned.result)
            last = returned
            return Effect.void
          })
        )
        if (Result.isFailure(ran)) return yield* toFailure(tool, shown, ran.failure)
        if (last === undefined) return yield* Effect.die(new Error(`the handler of the tool ${name} has no result`))
        return last.isFailure ? yield* toFailure(tool, shown, last.result) : yield* toSuccess(last)
      })
      yield* Tool.add({
        name: shown,
        options: {
          title: Context.getOrUndefined(tool.annotations, AiTool.Title),
          description: AiTool.getDescription(tool),
          annotations: hintsOf(tool),
          _meta: Context.getOrUndefined(tool.annotations, AiTool.Meta)
        },
        input: inputOf(tool),
        output
      }, call as unknown as (args: JsonObject) => Effect.Effect<Tool.Result<unknown>, HandlerError>)
    }
  })) as never

/** Reports a preliminary result as progress. */
const report = (
  toJson: (value: unknown) => Effect.Effect<unknown, Schema.SchemaError, unknown>,
  progress: number,
  result: unknown
) =>
  Effect.flatMap(
    Effect.orDie(toJson(result)),
    (json) => Progress.report({ progress, message: typeof json === "string" ? json : JSON.stringify(json) })
  )

/** A failed call that a model makes: the text of the result with `isError`. */
export class ToolFailed extends Schema.TaggedError<ToolFailed>()("ToolFailed", {
  tool: Schema.String,
  message: Schema.String
}) {}

/** A tool with its handler, for `make`. */
export interface Bound<Name extends string, R> {
  readonly name: Name
  /** Makes the tool of `effect/ai`, and its handler. Throws if a schema has no JSON Schema. */
  readonly compile: () => {
    readonly tool: Dynamic<Name>
    readonly handler: (args: unknown) => Effect.Effect<unknown, ToolFailed, R>
  }
}

/** A tool of a server as a tool of `effect/ai`. Its success is the structured content, or the text of the result. */
export type Dynamic<Name extends string> = AiTool.Dynamic<Name, {
  readonly parameters: JsonSchema.JsonSchema
  readonly success: typeof Schema.Unknown
  readonly failure: typeof ToolFailed
  readonly failureMode: "return"
}>

/** The result of a call in this process: as in the newest revision. */
const inProcess = { caller: { revision: "2026-07-28" } } as unknown as RequestContext

const partOf = (block: Content.ContentBlock): Prompt.ToolModelOutputPart => {
  if (block.type === "text") return Prompt.textPart({ text: block.text })
  if (block.type === "image" || block.type === "audio") {
    return Prompt.filePart({ mediaType: block.mimeType, data: block.data })
  }
  return Prompt.textPart({ text: JSON.stringify(block) })
}

const textsOf = ({ content }: Wire.CallToolResult): string =>
  content.map((block) => block.type === "text" ? block.text : JSON.stringify(block)).join("\n")

/**
 * Binds a handler to a tool, as `Tool.layer` does, for a toolkit in this process. The handler cannot use `McpRequest`,
 * because there is no request.
 *
 * @example
 * const bound = ToolkitTools.bind(forecast, ({ city }) => Effect.flatMap(Weather, (weather) => weather.forecast(city)))
 */
export const bind = <Name extends string, Input, Output, E extends HandlerError = never, R = never>(
  { input, name, options, output }: Tool.Tool<Name, Input, Output>,
  handler: (input: Input) => Effect.Effect<Tool.Answer<NoInfer<Output>>, E, R>
): Bound<Name, R> => ({
  name,
  compile: () => {
    const run = toolCall.make({ name, input, output }, handler as (input: Input) => Effect.Effect<unknown, E>)
    const dynamic: Dynamic<Name> = AiTool.dynamic(name, {
      description: options.description,
      parameters: (input === undefined ? jsonSchema.none : input.jsonSchema()) as JsonSchema.JsonSchema,
      success: Schema.Unknown,
      failure: ToolFailed,
      failureMode: "return",
      toModelOutput: (result: unknown) =>
        Array.isArray(result) && result.every((each) => each instanceof BlockResult)
          ? result.map(({ block }: BlockResult) => partOf(block))
          : [Prompt.textPart({ text: typeof result === "string" ? result : JSON.stringify(result) })]
    })
    return { tool: annotated(dynamic, options), handler: (args) => callInProcess(name, run, args) as never }
  }
})

/** A block of a result without structured content that is not one text. */
class BlockResult {
  readonly block: Content.ContentBlock

  constructor(block: Content.ContentBlock) {
    this.block = block
  }

  toJSON(): unknown {
    return this.block
  }
}

const callInProcess = Effect.fnUntraced(function*(name: string, run: ReturnType<typeof toolCall.make>, args: unknown) {
  if (!isObject(args)) {
    return yield* new ToolFailed({ tool: name, message: "The arguments of a tool must be a JSON object" })
  }
  const result = yield* Effect.catch(
    run(args, inProcess),
    ({ message }) => Effect.fail(new ToolFailed({ tool: name, message }))
  )
  const { content, isError, structuredContent } = result
  if (isError === true) return yield* new ToolFailed({ tool: name, message: textsOf(result) })
  if (structuredContent !== undefined) return structuredContent
  return content.every(({ type }) => type === "text")
    ? textsOf(result)
    : content.map((block) => new BlockResult(block))
})

const annotated = <T extends AiTool.Any>(
  tool: T,
  { _meta, annotations = {}, title }: Tool.Tool<string, unknown, unknown>["options"]
): T => {
  const shown = title ?? annotations.title
  let result: AiTool.Any = tool
  if (shown !== undefined) result = result.annotate(AiTool.Title, shown)
  if (_meta !== undefined) result = result.annotate(AiTool.Meta, _meta)
  for (const [hint, key] of hints) {
    const value = annotations[hint]
    if (value !== undefined) result = result.annotate(key, value)
  }
  return result as T
}

type Services<B> = B extends Bound<string, infer R> ? R : never
type NameOf<B> = B extends Bound<infer Name, infer _R> ? Name : never

/**
 * Makes a toolkit of tools and their handlers, for the option `toolkit` of `LanguageModel.generateText`. A call is decoded,
 * handled and encoded as that of a client, in this process and without a server. Captures the services of the handlers.
 *
 * The model receives the structured content as JSON, or the content. A result with `isError`, and a failure of the
 * handler, reach it as `ToolFailed`. Fails with `DefinitionError` `InvalidSchema` if a schema has no JSON Schema.
 *
 * @example
 * const toolkit = yield* ToolkitTools.make(ToolkitTools.bind(add, addition), ToolkitTools.bind(search, find))
 * const { text } = yield* LanguageModel.generateText({ prompt: "What is 2 + 3?", toolkit })
 */
export const make = <const Tools extends ReadonlyArray<Bound<string, unknown>>>(
  ...tools: Tools
): Effect.Effect<
  AiToolkit.WithHandler<{ readonly [Name in NameOf<Tools[number]>]: Dynamic<Name> }>,
  DefinitionError,
  Services<Tools[number]>
> =>
  Effect.gen(function*() {
    const services = yield* Effect.context<never>()
    const compiled = yield* Effect.forEach(tools, ({ compile, name }) => jsonSchema.tryForTool(name, "input", compile))
    const kit = AiToolkit.make(...compiled.map(({ tool }) => tool))
    const handlers = yield* kit.toHandlers(Object.fromEntries(compiled.map(({ handler, tool }) => [
      tool.name,
      (args: unknown) => Effect.provideContext(handler(args), services)
    ])) as never)
    return yield* Effect.provideContext(kit, handlers)
  }) as never

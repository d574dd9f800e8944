/**
 * Prompts: messages that a user picks, with arguments filled in.
 *
 * An argument is text on the wire. Its schema decides what the handler receives. `Prompt.layer` registers a prompt with
 * its handler and with the completion of its arguments; `Prompt.add` and `Prompt.replace` do so while the server runs.
 *
 * @example
 * const review = Prompt.make("review", {
 *   description: "Reviews code",
 *   arguments: {
 *     code: Schema.String.annotate({ description: "The code to review" }),
 *     language: Schema.String,
 *     tone: Schema.optionalKey(Schema.Literals(["kind", "strict"]))
 *   }
 * })
 * const live = Prompt.layer(
 *   review,
 *   ({ code, tone = "kind" }) =>
 *     Effect.succeed([Prompt.user(`Be ${tone}. Please review this code:`), Prompt.user(code)]),
 *   { complete: { language: ["python", "rust", "typescript"] } }
 * )
 */
import type { Icon } from "@skein/protocol/BaseMetadata"
import type { Role } from "@skein/protocol/Content"
import type { Meta } from "@skein/protocol/Message"
import * as McpError from "@skein/protocol/McpError"
import type * as Wire from "@skein/protocol/Prompt"
import { clip } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as SchemaAST from "effect/SchemaAST"
import type { Catalog, HandlerServices } from "./Catalog.ts"
import type * as Completion from "./Completion.ts"
import * as Content from "./Content.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { AsyncHandler } from "./HandlerContext.ts"
import type { HandlerError } from "./HandlerError.ts"
import { toEffect } from "./internal/definitions/asyncHandler.ts"
import { textAnnotation } from "./internal/definitions/annotations.ts"
import { type Register, registerLayer, registerScoped } from "./internal/definitions/captureServices.ts"
import { checkBlocks } from "./internal/definitions/validateDefinition.ts"
import { failWithMcpError } from "./internal/definitions/handlerError.ts"
import { makeCompleters } from "./internal/methods/completion.ts"
import type { Visible } from "./Registry.ts"
import { decoder } from "./internal/definitions/inputSchema.ts"
import { omitUndefined } from "./internal/json.ts"
import { maxProblemChars } from "./internal/definitions/jsonSchema.ts"

/**
 * The schemas of the arguments. Each argument is a string on the wire. Annotate a schema with `title` and `description`
 * for clients.
 */
export type Arguments = { readonly [name: string]: Schema.ConstraintCodec<unknown, string | undefined> }

/** The description of a prompt. */
export interface Options<A extends Arguments> {
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** The arguments. Those with `Schema.optional`, `Schema.optionalKey` or a default may be absent. None by default. */
  readonly arguments?: A | undefined
  /**
   * Which callers may see and get the prompt. Everybody by default. For other callers it does not exist. It must be
   * fast.
   */
  readonly visible?: Visible | undefined
  readonly icons?: ReadonlyArray<Icon> | undefined
  readonly _meta?: Meta | undefined
}

/** A prompt's definition. `A` is the type of the arguments that its handler receives. */
export interface Prompt<A> {
  readonly name: string
  readonly options: Omit<Options<never>, "arguments">
  readonly arguments: Arguments
  readonly schema: Schema.ConstraintCodec<A, unknown>
}

/** One message of a prompt. */
export type Message = Wire.PromptMessage

/** The value that a handler returns: the text of one user message, messages, or the whole result. */
export type Answer = string | ReadonlyArray<Message> | Wire.GetPromptResult

/** Makes a message of the user. */
export const user = (content: string | Content.ContentBlock): Message => message("user", content)

/**
 * Makes a message of the assistant.
 *
 * @example
 * const messages = [Prompt.user("Review this code"), Prompt.assistant("Which file?")]
 */
export const assistant = (content: string | Content.ContentBlock): Message => message("assistant", content)

const message = (role: Role, content: string | Content.ContentBlock): Message => ({
  role,
  content: typeof content === "string" ? Content.text(content) : content
})

/**
 * Defines a prompt.
 *
 * @example
 * const greet = Prompt.make("greet", { arguments: { name: Schema.String } })
 */
export const make = <A extends Arguments = {}>(
  name: string,
  options: Options<A> = {}
): Prompt<Schema.Struct.Type<A>> => {
  const { arguments: args = {} as A, ...rest } = options
  return {
    name,
    options: rest,
    arguments: args,
    schema: Schema.Struct(args as Schema.Struct.Fields) as unknown as Schema.ConstraintCodec<
      Schema.Struct.Type<A>,
      unknown
    >
  }
}

/**
 * Registers a prompt with its handler and with the completion of its arguments. An argument whose schema consists of
 * literals is completed automatically.
 *
 * Missing or malformed arguments are answered with `-32602`. A failure of the handler becomes `-32603` with its
 * message; an `McpError` keeps its code. Fails with `DefinitionError`: `DuplicateName`, `InvalidValue`.
 *
 * @example
 * const live = Prompt.layer(greet, ({ name }) => Effect.succeed(`Greet ${name}`))
 */
export const layer = <
  A,
  E extends HandlerError = never,
  R = never,
  C extends Completion.Sources<keyof A & string> = {}
>(
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, E, R>,
  options?: Completion.Options<keyof A & string, C>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R | Completion.Services<C>>> =>
  registerLayer(register("add", prompt, handler, options?.complete))

/**
 * Registers a prompt with a handler that returns a value or a promise. Its errors reach the client by the rules of
 * `HandlerContext`.
 *
 * @example
 * const live = Prompt.async(greet, async ({ name }) => `Greet ${await nicknameOf(name)}`)
 */
const async_ = <A, R = never, C extends Completion.Sources<keyof A & string> = {}>(
  prompt: Prompt<A>,
  handler: AsyncHandler<A, Answer, R>,
  options?: Completion.Options<keyof A & string, C>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R | Completion.Services<C>>> =>
  layer(prompt, toEffect(handler), options)
export { async_ as async }

/** Registers a prompt with its handler until the scope closes, while the server runs. Fails as `layer` does. */
export const add = <
  A,
  E extends HandlerError = never,
  R = never,
  C extends Completion.Sources<keyof A & string> = {}
>(
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, E, R>,
  options?: Completion.Options<keyof A & string, C>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | HandlerServices<R | Completion.Services<C>>> =>
  registerScoped(register("add", prompt, handler, options?.complete))

/**
 * Replaces the prompt of the same name until the scope closes. Fails with `DefinitionError` `NotFound` if no prompt has
 * the name, and otherwise as `layer` does.
 */
export const replace: typeof add = (prompt, handler, options) =>
  registerScoped(register("replace", prompt, handler, options?.complete))

const register = <A, E extends HandlerError, R, C extends object>(
  how: "add" | "replace",
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, E, R>,
  complete: C | undefined
): Register<R | Completion.Services<C>> =>
(catalog, provide) => {
  const decode = decoder(prompt.schema)
  return catalog.prompts[how](prompt.name, {
    definition: describe(prompt),
    visible: prompt.options.visible,
    complete: makeCompleters(prompt.arguments, { ...complete }, provide),
    get: (args) => {
      const decoded = decode(args)
      if (Result.isFailure(decoded)) {
        const problem = `Invalid arguments for prompt ${prompt.name}: ${clip(decoded.failure, maxProblemChars)}`
        return Effect.fail(McpError.invalidParams(problem))
      }
      return Effect.map(
        Effect.catch(provide(handler(decoded.success)), failWithMcpError),
        (answer) => toResult(answer, prompt.options.description)
      )
    }
  })
}

const toResult = (answer: Answer, description: string | undefined): Wire.GetPromptResult => {
  const whole = typeof answer !== "string" && "messages" in answer
  const messages = whole ? answer.messages : typeof answer === "string" ? [user(answer)] : answer
  checkBlocks(messages.map(({ content }) => content))
  if (whole) return answer
  return description === undefined ? { messages } : { description, messages }
}

/** Makes the prompt as `prompts/list` returns it. */
const describe = <A>(prompt: Prompt<A>): Wire.Prompt => {
  const args = Object.entries(prompt.arguments).map(([name, { ast }]): Wire.PromptArgument =>
    omitUndefined({
      name,
      title: textAnnotation(ast, "title"),
      description: textAnnotation(ast, "description"),
      // The client sends the encoded side, in which an argument with a default is optional.
      required: !SchemaAST.isOptional(SchemaAST.toEncoded(ast))
    })
  )
  const { visible: _, ...rest } = prompt.options
  return { name: prompt.name, ...omitUndefined(rest), ...(args.length === 0 ? undefined : { arguments: args }) }
}

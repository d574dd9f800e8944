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
import { isObject } from "@skein/protocol/JsonRpc"
import type { Meta } from "@skein/protocol/Message"
import * as McpError from "@skein/protocol/McpError"
import type * as Wire from "@skein/protocol/Prompt"
import { clip } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Catalog, HandlerServices } from "./Catalog.ts"
import type * as Completion from "./Completion.ts"
import * as Content from "./Content.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { AsyncHandler } from "./HandlerContext.ts"
import type { HandlerError } from "./HandlerError.ts"
import { toEffect } from "./internal/handlers/asyncHandler.ts"
import type { EffectMistake } from "./internal/handlers/handlerMistake.ts"
import { type Register, registerLayer, registerScoped } from "./internal/handlers/captureServices.ts"
import { checkBlocks } from "./internal/catalog/validateDefinition.ts"
import { failWithMcpError } from "./internal/handlers/handlerError.ts"
import { makeCompleters } from "./internal/handlers/completers.ts"
import { refuseForeign } from "./internal/handlers/foreignOptions.ts"
import { effectOf, nameOf, refuseAnswer } from "./internal/handlers/wrongAnswer.ts"
import type { Visible } from "./Registry.ts"
import { omitUndefined } from "./internal/base/json.ts"
import { maxProblemChars } from "./internal/schema/jsonSchema.ts"
import { settle } from "./internal/schema/standardSchema.ts"
import type { TypeOf } from "./internal/schema/inputSchema.ts"
import {
  type AnyFields,
  type Checked,
  compileTexts,
  type TextField,
  type TextReader,
  textReader
} from "./internal/schema/textFields.ts"

/**
 * The schema of the arguments. Each argument is a string on the wire.
 *
 * - The fields of a struct: Effect Schemas that decode text. Or a struct, or a class.
 * - A schema of another library, of the whole object, such as `z.object({ … })`. It must have a JSON Schema: see
 *   `StandardSchema`.
 *
 * Annotate a schema with `title` and `description` for clients.
 */
export type Arguments = AnyFields

/** The arguments that a handler receives for a schema. */
export type ArgumentsOf<A extends Arguments> = TypeOf<A>

/** Makes a mistake in the schema of the arguments a type error that names it. */
export interface CheckedArguments<A extends Arguments> {
  readonly arguments?: Checked<A, "arguments", PropertyKey, string | undefined> | undefined
  // The names of other libraries, and an option that has another place.
  readonly input?: "It is named `arguments` here"
  readonly argsSchema?: "It is named `arguments` here"
  readonly complete?: "Pass { complete } after the handler"
}

/** The description of a prompt. */
export interface Options<A extends Arguments> {
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** The arguments. Optional ones, and those with a default, may be absent. None by default. */
  readonly arguments?: A | undefined
  /**
   * Which callers may see and get the prompt. All callers by default. For other callers it does not exist. It must be
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
  readonly arguments: TextReader<A>
}

/** One message of a prompt. */
export type Message = Wire.PromptMessage

/** The value that a handler returns: the text of one user message, one message, several, or the whole result. */
export type Answer = string | Message | ReadonlyArray<Message> | Wire.GetPromptResult

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
 * const praise = Prompt.make("praise", { arguments: z.object({ name: z.string() }) })
 */
export const make = <A extends Arguments = {}>(
  name: string,
  options: Options<A> & CheckedArguments<A> = {} as never
): Prompt<ArgumentsOf<A>> => {
  const { arguments: args = {} as A, ...rest } = options
  return { name, options: rest, arguments: textReader<A>(args) }
}

/**
 * Registers a prompt with its handler and with the completion of its arguments. An argument whose schema consists of
 * literals is completed automatically.
 *
 * Missing or malformed arguments are answered with `-32602`. A failure of the handler becomes `-32603` with its
 * message; an `McpError` keeps its code. Fails with `DefinitionError`: `DuplicateName`; `InvalidSchema` if the arguments
 * have no JSON Schema; `InvalidValue`.
 *
 * @example
 * const live = Prompt.layer(greet, ({ name }) => Effect.succeed(`Greet ${name}`))
 */
export const layer = <
  A,
  R = never,
  C extends Completion.Sources<keyof A & string> = {},
  B = never
>(
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, HandlerError, R> | (EffectMistake<B, "Prompt"> & B),
  options?: Completion.Options<keyof A & string, C>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R | Completion.Services<C>>> =>
  registerLayer(register("add", prompt, handler as Handler<A, HandlerError, R>, options?.complete))

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
  R = never,
  C extends Completion.Sources<keyof A & string> = {},
  B = never
>(
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, HandlerError, R> | (EffectMistake<B, "Prompt"> & B),
  options?: Completion.Options<keyof A & string, C>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | HandlerServices<R | Completion.Services<C>>> =>
  registerScoped(register("add", prompt, handler as Handler<A, HandlerError, R>, options?.complete))

/**
 * Replaces the prompt of the same name until the scope closes. Fails with `DefinitionError` `NotFound` if no prompt has
 * the name, and otherwise as `layer` does.
 */
export const replace: typeof add = <
  A,
  R,
  C extends Completion.Sources<keyof A & string>
>(
  prompt: Prompt<A>,
  handler: unknown,
  options?: Completion.Options<keyof A & string, C>
) => registerScoped(register("replace", prompt, handler as Handler<A, HandlerError, R>, options?.complete))

type Handler<A, E, R> = (args: A) => Effect.Effect<Answer, E, R>

const register = <A, E extends HandlerError, R, C extends object>(
  how: "add" | "replace",
  prompt: Prompt<A>,
  handler: Handler<A, E, R>,
  complete: C | undefined
): Register<R | Completion.Services<C>> =>
(catalog, provide) =>
  Effect.gen(function*() {
    yield* refuseForeign("prompt", prompt.name, prompt.options)
    const { decode, fields } = yield* compileTexts("prompt", prompt.name, "arguments", prompt.arguments)
    const { description, visible } = prompt.options
    const described = `The handler of the prompt ${prompt.name}`
    const run = (decoded: Result.Result<A, string>) => {
      if (Result.isFailure(decoded)) {
        const problem = `Invalid arguments for prompt ${prompt.name}: ${clip(decoded.failure, maxProblemChars)}`
        return Effect.fail(McpError.invalidParams(problem))
      }
      const made = effectOf(handler(decoded.success), described, "Prompt")
      return Effect.flatMap(
        Effect.catch(provide(made), failWithMcpError),
        (answer) => toResult(answer, described, description)
      )
    }
    yield* catalog.prompts[how](prompt.name, {
      definition: describe(prompt, fields),
      visible,
      complete: makeCompleters(fields, { ...complete }, provide),
      get: (args) => {
        const decoded = decode(args)
        return Result.isResult(decoded) ? run(decoded) : Effect.flatMap(settle(decoded), run)
      }
    })
  })

const expected = "return a text, Prompt.user(…), a list of messages, or { messages: [ … ] }"

/** Whether a value is a message. Types refuse others, and untyped programs return them. */
const isMessage = (value: unknown): boolean =>
  isObject(value) && typeof value["role"] === "string" && isObject(value["content"])

const toResult = (
  answer: Answer,
  handler: string,
  description: string | undefined
): Effect.Effect<Wire.GetPromptResult, McpError.McpError> => {
  const whole = isObject(answer) && "messages" in answer ? answer as Wire.GetPromptResult : undefined
  const messages = typeof answer === "string"
    ? [user(answer)]
    : isMessage(answer)
    ? [answer as Message]
    : whole?.messages ?? answer
  if (!Array.isArray(messages)) return refuseAnswer(`${handler} returned ${nameOf(answer)}: ${expected}`)
  if (!messages.every(isMessage)) {
    return refuseAnswer(`${handler} returned a message without a role and a content block: ${expected}`)
  }
  checkBlocks(messages.map(({ content }) => content))
  return Effect.succeed(whole ?? (description === undefined ? { messages } : { description, messages }))
}

/** Makes the prompt as `prompts/list` returns it. */
const describe = <A>({ name, options }: Prompt<A>, fields: ReadonlyArray<TextField>): Wire.Prompt => {
  const args = fields.map(({ description, name, required, title }): Wire.PromptArgument =>
    omitUndefined({ name, title, description, required })
  )
  const { visible: _, ...rest } = options
  return { name, ...omitUndefined(rest), ...(args.length === 0 ? undefined : { arguments: args }) }
}

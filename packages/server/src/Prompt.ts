/**
 * Prompts: messages that a user picks, with arguments filled in.
 *
 * An argument is text on the wire; its schema says what the handler gets. `Prompt.layer` binds a prompt to its handler, and to what
 * completes its arguments; `Prompt.add` and `Prompt.replace` do so while the server runs.
 *
 * @example
 * const review = Prompt.make("review", {
 *   description: "Reviews code",
 *   arguments: {
 *     code: Schema.String.annotate({ description: "What to review" }),
 *     language: Schema.String,
 *     tone: Schema.optionalKey(Schema.Literals(["kind", "strict"]))
 *   }
 * })
 * const live = Prompt.layer(
 *   review,
 *   ({ code, tone = "kind" }) => Effect.succeed([Prompt.user(`Be ${tone}. Please review this code:`), Prompt.user(code)]),
 *   { complete: { language: ["python", "rust", "typescript"] } }
 * )
 */
import type * as Common from "@skein/protocol/Common"
import * as McpError from "@skein/protocol/McpError"
import type * as Wire from "@skein/protocol/Prompt"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as SchemaAST from "effect/SchemaAST"
import type { Catalog } from "./Catalog.ts"
import type * as Completion from "./Completion.ts"
import * as Content from "./Content.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import type { HandlerError } from "./HandlerError.ts"
import { textAnnotation } from "./internal/definitions/annotations.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { clip, maxProblem } from "./internal/text.ts"
import * as details from "./internal/definitions/validateDefinition.ts"
import { toMcpError } from "./internal/definitions/handlerError.ts"
import { makeCompleters } from "./internal/methods/completion.ts"
import type { Visible } from "./Registry.ts"
import { decoder } from "./internal/definitions/inputSchema.ts"
import { omitUndefined } from "./internal/json.ts"

/** Schemas for the arguments. On the wire each is a string; `title` and `description` annotations describe it. */
export type Arguments = { readonly [name: string]: Schema.ConstraintCodec<unknown, string | undefined> }

/** What describes a prompt. */
export interface Options<A extends Arguments> {
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** The arguments; those made with `Schema.optional` or `Schema.optionalKey`, or with a default, may be absent. None by default. */
  readonly arguments?: A | undefined
  /** Who may see it; everybody by default. To others there is no such prompt. It must be quick. */
  readonly visible?: Visible | undefined
  readonly icons?: ReadonlyArray<Common.Icon> | undefined
  readonly _meta?: Common.Meta | undefined
}

/** A prompt's definition. `A` is what its handler gets. */
export interface Prompt<A> {
  readonly name: string
  readonly options: Omit<Options<never>, "arguments">
  readonly arguments: Arguments
  readonly schema: Schema.ConstraintCodec<A, unknown>
}

/** One message of a prompt. */
export type Message = Wire.PromptMessage

/** What a handler may answer: text (said by the user), messages, or the whole result. */
export type Answer = string | ReadonlyArray<Message> | Wire.GetPromptResult

/** A message that the user says. */
export const user = (content: string | Content.ContentBlock): Message => message("user", content)

/** A message that the assistant says. */
export const assistant = (content: string | Content.ContentBlock): Message => message("assistant", content)

const message = (role: Common.Role, content: string | Content.ContentBlock): Message => ({
  role,
  content: typeof content === "string" ? Content.text(content) : content
})

/** Defines a prompt. */
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
 * Offers a prompt with its handler, and with what completes its arguments. Those whose schema is of literals complete by themselves.
 *
 * Missing or malformed arguments are answered `-32602`. What the handler fails with becomes
 * `-32603` with its message, an `McpError` keeps its own code. Fails with `DefinitionError` when the name is taken.
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
): Layer.Layer<never, DefinitionError, Catalog | captured.Required<R | Completion.Services<C>>> =>
  captured.layer(offer("add", prompt, handler, options?.complete))

/** Offers a prompt with its handler until the scope closes, while the server runs. Fails as `layer` does. */
export const add = <
  A,
  E extends HandlerError = never,
  R = never,
  C extends Completion.Sources<keyof A & string> = {}
>(
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, E, R>,
  options?: Completion.Options<keyof A & string, C>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | captured.Required<R | Completion.Services<C>>> =>
  captured.effect(offer("add", prompt, handler, options?.complete))

/** The same in the stead of the prompt that has the name, which is back when the scope closes. Fails with `Unknown` without one. */
export const replace = <
  A,
  E extends HandlerError = never,
  R = never,
  C extends Completion.Sources<keyof A & string> = {}
>(
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, E, R>,
  options?: Completion.Options<keyof A & string, C>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | captured.Required<R | Completion.Services<C>>> =>
  captured.effect(offer("replace", prompt, handler, options?.complete))

const offer = <A, E extends HandlerError, R, C extends object>(
  how: "add" | "replace",
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, E, R>,
  complete: C | undefined
): captured.Register<R | Completion.Services<C>> =>
(catalog, provide) => {
  const read = decoder(prompt.schema)
  return catalog.prompts[how](prompt.name, {
    definition: describe(prompt),
    visible: prompt.options.visible,
    complete: makeCompleters(prompt.arguments, { ...complete }, provide),
    get: (args) => {
      const decoded = read(args)
      if (Result.isFailure(decoded)) {
        const problem = `Invalid arguments for prompt ${prompt.name}: ${clip(decoded.failure, maxProblem)}`
        return Effect.fail(McpError.invalidParams(problem))
      }
      return Effect.mapBoth(provide(handler(decoded.success)), {
        onFailure: toMcpError,
        onSuccess: (answer) => full(answer, prompt.options.description)
      })
    }
  })
}

const full = (answer: Answer, description: string | undefined): Wire.GetPromptResult => {
  const whole = typeof answer !== "string" && "messages" in answer
  const messages = whole ? answer.messages : typeof answer === "string" ? [user(answer)] : answer
  details.checkBlocks(messages.map(({ content }) => content))
  if (whole) return answer
  return description === undefined ? { messages } : { description, messages }
}

/** The prompt as `prompts/list` shows it. */
const describe = <A>(prompt: Prompt<A>): Wire.Prompt => {
  const args = Object.entries(prompt.arguments).map(([name, schema]): Wire.PromptArgument => {
    const title = textAnnotation(schema.ast, "title")
    const description = textAnnotation(schema.ast, "description")
    return {
      name,
      ...(title === undefined ? undefined : { title }),
      ...(description === undefined ? undefined : { description }),
      // As it is sent: one with a default is optional there.
      required: !SchemaAST.isOptional(SchemaAST.toEncoded(schema.ast))
    }
  })
  const { visible: _, ...rest } = prompt.options
  return { name: prompt.name, ...omitUndefined(rest), ...(args.length === 0 ? undefined : { arguments: args }) }
}

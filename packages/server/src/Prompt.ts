/**
 * Prompts: messages that a user picks, with arguments filled in.
 *
 * @example
 * const review = Prompt.make("review", {
 *   description: "Reviews code",
 *   arguments: { code: Schema.String.annotate({ description: "What to review" }) }
 * })
 * const live = Prompt.layer(review, ({ code }) => Effect.succeed(`Please review this code:\n${code}`))
 */
import type * as Common from "@skein/protocol/Common"
import * as McpError from "@skein/protocol/McpError"
import type * as Wire from "@skein/protocol/Prompt"
import type { McpRequest } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { Catalog } from "./Catalog.ts"
import * as Content from "./Content.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { type HandlerError, toMcpError } from "./HandlerError.ts"
import * as captured from "./internal/captured.ts"

/** Schemas for the arguments. On the wire each is a string; `title` and `description` annotations describe it. */
export type Arguments = { readonly [name: string]: Schema.ConstraintCodec<unknown, string> }

/** What describes a prompt. */
export interface Options<A extends Arguments> {
  /** A name for people. */
  readonly title?: string
  readonly description?: string
  /** The arguments; those made with `Schema.optionalKey` may be absent. None by default. */
  readonly arguments?: A
  readonly icons?: ReadonlyArray<Common.Icon>
  readonly _meta?: Common.Meta
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
export const make = <A extends Arguments = {}>(name: string, options: Options<A> = {}): Prompt<Schema.Struct.Type<A>> => {
  const { arguments: args = {} as A, ...rest } = options
  return {
    name,
    options: rest,
    arguments: args,
    schema: Schema.Struct(args as Schema.Struct.Fields) as unknown as Schema.ConstraintCodec<Schema.Struct.Type<A>, unknown>
  }
}

/**
 * Offers a prompt with its handler. Missing or malformed arguments are answered `-32602`. What the handler fails with becomes
 * `-32603` with its message, an `McpError` keeps its own code. Fails with `DefinitionError` when the name is taken.
 */
export const layer = <A, E extends HandlerError, R>(
  prompt: Prompt<A>,
  handler: (args: A) => Effect.Effect<Answer, E, R>
): Layer.Layer<never, DefinitionError, Catalog | Exclude<R, McpRequest>> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const catalog = yield* Catalog
    const provide = captured.provider(yield* Effect.context<Exclude<R, McpRequest>>(), catalog.base, Catalog.key)
    const decode = Schema.decodeUnknownResult(prompt.schema, { errors: "all" })
    yield* catalog.prompts.add(prompt.name, {
      definition: describe(prompt),
      get: (args) => {
        const decoded = decode(args)
        if (Result.isFailure(decoded)) {
          const problem = `Invalid arguments for prompt ${prompt.name}: ${decoded.failure.message}`
          return Effect.fail(McpError.invalidParams(problem))
        }
        return Effect.mapBoth(provide(handler(decoded.success) as Effect.Effect<Answer, E, Exclude<R, McpRequest>>), {
          onFailure: toMcpError,
          onSuccess: (answer) => full(answer, prompt.options.description)
        })
      }
    })
  })) as Layer.Layer<never, DefinitionError, Catalog | Exclude<R, McpRequest>>

const full = (answer: Answer, description: string | undefined): Wire.GetPromptResult => {
  if (typeof answer !== "string" && "messages" in answer) return answer
  const messages = typeof answer === "string" ? [user(answer)] : answer
  return description === undefined ? { messages } : { description, messages }
}

/** The prompt as `prompts/list` shows it. */
const describe = <A>(prompt: Prompt<A>): Wire.Prompt => {
  const args = Object.entries(prompt.arguments).map(([name, schema]): Wire.PromptArgument => {
    const title = SchemaAST.resolveTitle(schema.ast)
    const description = SchemaAST.resolveDescription(schema.ast)
    return {
      name,
      ...(title === undefined ? undefined : { title }),
      ...(description === undefined ? undefined : { description }),
      required: !SchemaAST.isOptional(schema.ast)
    }
  })
  return { name: prompt.name, ...prompt.options, ...(args.length === 0 ? undefined : { arguments: args }) }
}

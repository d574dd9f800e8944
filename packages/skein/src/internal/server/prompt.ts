/**
 * Prompts: messages that a user picks, with arguments filled in.
 */
import * as Core from "@skein/server/AsyncDefinition"
import * as Content from "@skein/server/Content"
import { define, type Definition } from "../base/definition.ts"
import type { ContentBlock, GetPromptResult, Icon, Meta, PromptMessage } from "../base/messages.ts"
import type { CompletionOptions, Completions } from "./completion.ts"
import type { Handler } from "./handlerContext.ts"
import type { Visible } from "./request.ts"
import type { AnySchema, CheckedTexts, ReadBy } from "./schema.ts"

/** The description of a prompt. */
export interface PromptOptions<A extends AnySchema = {}> {
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** The arguments: the schema of an object whose fields read text. Optional ones may be absent. None by default. */
  readonly arguments?: A | undefined
  /** Which callers may see and get the prompt. All callers by default. */
  readonly visible?: Visible | undefined
  readonly icons?: ReadonlyArray<Icon> | undefined
  readonly _meta?: Meta | undefined
}

/** Makes a mistake in the schema of the arguments a type error that names it. */
export interface CheckedArguments<A> {
  readonly arguments?: CheckedTexts<A, "arguments", PropertyKey, string | undefined> | undefined
}

/** The value that a handler returns: the text of one user message, one message, several, or the whole result. */
export type PromptAnswer = string | PromptMessage | ReadonlyArray<PromptMessage> | GetPromptResult

/** Makes a message of the user. */
export const user = (content: string | ContentBlock): PromptMessage => message("user", content)

/**
 * Makes a message of the assistant.
 *
 * @example
 * const messages = [user("Review this code"), assistant("Which file?")]
 */
export const assistant = (content: string | ContentBlock): PromptMessage => message("assistant", content)

// `Prompt.user` and `Prompt.assistant` would load what a server without prompts does not need.
const message = (role: PromptMessage["role"], content: string | ContentBlock): PromptMessage => ({
  role,
  content: typeof content === "string" ? Content.text(content) : content
})

/**
 * Makes a prompt for `use` and `add` of an `AsyncServer`, and for `mount`. `completion` has the suggestions for arguments:
 * lists, or functions that return lists or promises.
 *
 * @example
 * const greet = prompt("greet", { arguments: z.object({ name: z.string() }) }, ({ name }) => `Greet ${name}`)
 */
export const prompt = <A extends AnySchema = {}, C extends Completions<keyof ReadBy<A> & string> = {}>(
  name: string,
  options: PromptOptions<A> & CheckedArguments<A>,
  handler: Handler<ReadBy<A>, PromptAnswer>,
  completion?: CompletionOptions<keyof ReadBy<A> & string, C>
): Definition => define(Core.prompt(name, options as never, handler as never, completion as never))

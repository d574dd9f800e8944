/**
 * Lets the user choose one of several options, on a page with a list. The page is a part of this module: an author writes
 * none. Everything else is as in `Approval`: the page, the form for clients without pages, and the bounds.
 *
 * @example
 * const seat = Choice.make("choose_seat", { description: "Lets the user choose a seat", input: { train: Schema.String } })
 * const live = Choice.layer(seat, {
 *   ask: ({ train }) =>
 *     Effect.map(freeSeats(train), (seats) => ({
 *       title: `Which seat in ${train}?`,
 *       options: seats.map(({ id, isQuiet }) => ({ value: id, description: isQuiet ? "Quiet zone" : undefined }))
 *     })),
 *   handle: ({ chosen, input }) => Effect.as(book(input.train, chosen), `The seat ${chosen} is booked`)
 * })
 */
import { quote } from "@skein/protocol/Text"
import * as Elicitation from "@skein/server/Elicitation"
import type { HandlerError } from "@skein/server/HandlerError"
import type * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { AskError, InvalidAnswer, InvalidQuestion } from "./AskError.ts"
import * as askTool from "./askTool.ts"
import { choicePage } from "./readyPages.ts"

export type { Bounds, Limits } from "./openQuestions.ts"

/** One of the options. */
export interface Option {
  /** The value that `handle` receives. No two options have the same. */
  readonly value: string
  /** The text that the user sees: the value by default. */
  readonly label?: string | undefined
  /** A second line, in smaller letters. */
  readonly description?: string | undefined
}

/** A question with its options. The texts are shown as text: markup has no effect. */
export interface Question extends askTool.Question {
  /** Two options or more, in the order in which the user sees them. */
  readonly options: ReadonlyArray<Option>
  /** The value of the option that is selected beforehand. None by default. */
  readonly initial?: string | undefined
  /** The label of the button. `Choose` by default. */
  readonly choose?: string | undefined
}

/** The description of the tool, and its bounds. */
export interface Options<Input extends Tool.AnySchema> extends askTool.AskOptions<Input> {}

/** A tool that lets the user choose. Made by `Choice.make`. Its page calls a second tool, `<name>_answer`. */
export interface Choice<Name extends string, Input> extends askTool.AskTool<Name, Input, string> {}

/** The value that the user chose, and the arguments of the call. */
export interface Chosen<Input> {
  readonly chosen: string
  readonly input: Input
}

/**
 * Defines a tool that lets the user choose. `input` has the arguments, as in `Tool.make`.
 *
 * @example
 * const tea = Choice.make("choose_tea", { description: "Lets the user choose a tea" })
 */
export const make = <const Name extends string, Input extends Tool.AnySchema = {}>(
  name: Name,
  options: Options<Input> & Pick<Tool.CheckedSchemas<Input, never>, "input"> = {}
): Choice<Name, Tool.InputOf<Input>> =>
  askTool.make<Name, Input, typeof Schema.String>(name, options, {
    app: choicePage,
    suffix: "answer",
    answer: Schema.String
  })

/** The most options of a question. */
const maxOptions = 20

const problemOf = ({ initial, options }: Question): string | undefined => {
  const values = new Set(options.map(({ value }) => value))
  if (options.length < 2) return `has ${options.length} options, and needs two or more`
  if (options.length > maxOptions) return `has ${options.length} options, more than ${maxOptions}`
  if (values.size < options.length) return "has two options with the same value"
  if (values.has("")) return "has an option with an empty value"
  return initial === undefined || values.has(initial)
    ? undefined
    : `has the initial value ${quote(initial)}, which is not an option`
}

const titleOf = ({ description, label, value }: Option): string =>
  description === undefined ? label ?? value : `${label ?? value}: ${description}`

/** The form of a question. Not `Elicitation.choice`: numbers as values of an object would change their order. */
const formOf = ({ initial, options }: Question) => {
  const field = Schema.Union(options.map((option) => Schema.Literal(option.value).annotate({ title: titleOf(option) })))
  return { choice: initial === undefined ? field : field.pipe(Elicitation.withDefault(initial)) }
}

/**
 * Registers the tool with two functions: `ask` makes the question from the arguments, and `handle` runs with the value
 * that the user chose. The model receives what `handle` returns, as text where a page asked.
 *
 * A question that breaks a rule of `Question` fails the call with `AskError` `InvalidQuestion`. A form that the user
 * declines fails it with `NoAnswer`.
 *
 * @example
 * const live = Choice.layer(tea, {
 *   ask: () => Effect.succeed({ title: "Which tea?", options: [{ value: "green" }, { value: "black" }] }),
 *   handle: ({ chosen }) => Effect.succeed(`The user chose ${chosen} tea`)
 * })
 */
export const layer = <
  Name extends string,
  Input,
  E1 extends HandlerError = never,
  R1 = never,
  E2 extends HandlerError = never,
  R2 = never
>(
  choice: Choice<Name, Input>,
  { ask, handle }: askTool.Handlers<Input, Question, Chosen<Input>, E1, R1, E2, R2>
): askTool.Registered<R1 | R2> => {
  return askTool.layer<Name, Input, string, Question, E1 | E2, R1 | R2>(choice, {
    ask,
    check: (question) => {
      const problem = problemOf(question)
      if (problem !== undefined) {
        const message = `The question ${quote(question.title)} ${problem}`
        return Effect.fail(new AskError(new InvalidQuestion({ message })))
      }
      const { choose, details, options } = question
      return Effect.succeed([
        details,
        choose,
        ...options.flatMap(({ description, label, value }) => [value, label, description])
      ])
    },
    forPage: ({ choose, initial, options }) => ({
      choose,
      initial,
      options: options.map(({ description, label, value }) => ({ value, label, description }))
    }),
    withoutPage: ({ input, question }) =>
      Effect.flatMap(
        askTool.askByForm(question, formOf(question)),
        (answer): Effect.Effect<Tool.Answer<never>, AskError | E2, R2> =>
          answer.action === "accept"
            ? handle({ chosen: answer.content.choice, input })
            : Effect.fail(askTool.noAnswer(question))
      ),
    answer: (open, token, chosen) => {
      const accepts = ({ question }: { readonly question: Question }) =>
        question.options.some(({ value }) => value === chosen)
          ? Effect.void
          : Effect.fail(new AskError(new InvalidAnswer({ message: `${quote(chosen)} is not one of the options` })))
      return Effect.flatMap(open.take(token, accepts), ({ input }) => handle({ chosen, input }))
    }
  })
}

/**
 * Registers the tool with functions that return values or promises: see `Tool.async`.
 *
 * @example
 * server.use(Choice.async(tea, {
 *   ask: async () => ({ title: "Which tea?", options: (await teas()).map((value) => ({ value })) }),
 *   handle: ({ chosen }) => `The user chose ${chosen} tea`
 * }))
 */
const async_ = <Name extends string, Input, R = never>(
  choice: Choice<Name, Input>,
  handlers: askTool.AsyncHandlers<Input, Question, Chosen<Input>, R>
): askTool.Registered<R> => layer(choice, askTool.toEffects(handlers))
export { async_ as async }

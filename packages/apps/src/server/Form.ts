/**
 * Asks the user to fill in a form, on a page with its fields. The page is a part of this module: an author writes none.
 * Everything else is as in `Approval`: the page, the form for clients without pages, and the bounds.
 *
 * The fields are those of `Elicitation.form`: texts, numbers, booleans, choices, and types that are decoded from them.
 * The page draws them with their titles, descriptions and bounds, and checks what it can. The server checks the values
 * by the schema, whatever the page has checked. If they do not match, the page shows the problems at the fields, and
 * the user can correct them.
 *
 * Never ask for a password or a token with a form: see `Elicitation`.
 *
 * @example
 * const contact = Form.make("contact", {
 *   description: "Lets the user write to the shop",
 *   fields: { email: Elicitation.Email, message: Schema.String.check(Schema.isMinLength(10)) },
 *   multiline: ["message"]
 * })
 * const live = Form.layer(contact, {
 *   ask: () => Effect.succeed({ title: "Your message to the shop", submit: "Send" }),
 *   handle: ({ values }) => Effect.as(sendMail(values.email, values.message), "The message is sent")
 * })
 */
import type { RequestedSchema } from "@skein/protocol/Elicitation"
import { clip, quote } from "@skein/protocol/Text"
import { DefinitionError, InvalidValue } from "@skein/server/DefinitionError"
import * as Elicitation from "@skein/server/Elicitation"
import type { HandlerError } from "@skein/server/HandlerError"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as App from "./App.ts"
import { AskError, InvalidQuestion } from "./AskError.ts"
import * as askTool from "./askTool.ts"
import { fieldsOf } from "../shared/pageField.ts"
import { problemsKey } from "../shared/pageQuestion.ts"
import { formPage } from "./readyPages.ts"

export type { Bounds, Limits } from "./openQuestions.ts"

/** The texts of the form. They are shown as text: markup has no effect. */
export interface Question<Initial = { readonly [name: string]: unknown }> extends askTool.Question {
  /** The label of the button that sends the form. `Send` by default. */
  readonly submit?: string | undefined
  /** JSON values that fields are filled in with beforehand, instead of the defaults of the schema. None by default. */
  readonly initial?: Initial | undefined
}

/** The values that a form can be filled in with beforehand: the encoded sides of its fields. */
export type InitialOf<S extends Elicitation.GivenForm> = S extends Elicitation.Form<unknown>
  ? { readonly [name: string]: unknown }
  : S extends Tool.AnySchema ? Partial<App.ArgumentsOf<S>>
  : never

/** The description of the tool, its fields, and its bounds. */
export interface Options<Input extends Tool.AnySchema, S extends Elicitation.GivenForm>
  extends askTool.AskOptions<Input>
{
  /**
   * The fields, as in `Elicitation.make`: `title`, `description` and `default` annotate them. The user must fill in a
   * field that is not optional, and one with a default.
   */
  readonly fields: S & Elicitation.CheckedForm<S>
  /** The names of the text fields that have several lines on the page. None by default. */
  readonly multiline?: ReadonlyArray<string> | undefined
}

const Values = Schema.Record(Schema.String, Schema.Unknown)

/** A tool that asks for a form. Made by `Form.make`. Its page calls a second tool, `<name>_answer`. */
export interface Form<Name extends string, Input, Values, Initial>
  extends askTool.AskTool<Name, Input, { readonly [name: string]: unknown }>
{
  readonly form: Elicitation.Form<Values>
  readonly multiline: ReadonlyArray<string>
  /** Exists as a type only. */
  readonly initial?: Initial | undefined
}

/** The values of the fields, decoded by the schema, and the arguments of the call. */
export interface Filled<Input, Values> {
  readonly values: Values
  readonly input: Input
}

/**
 * Defines a tool that asks the user to fill in a form. `input` has the arguments, as in `Tool.make`.
 *
 * @example
 * const table = Form.make("book_table", {
 *   description: "Lets the user book a table",
 *   input: { day: Schema.String },
 *   fields: {
 *     people: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 })).annotate({ title: "People" }),
 *     where: Elicitation.choice({ in: "Inside", out: "In the garden" }),
 *     note: Schema.optionalKey(Schema.String)
 *   }
 * })
 */
export const make = <
  const Name extends string,
  const S extends Elicitation.GivenForm,
  Input extends Tool.AnySchema = {}
>(
  name: Name,
  options: Options<Input, S> & Pick<Tool.CheckedSchemas<Input, never>, "input">
): Form<Name, Tool.InputOf<Input>, Elicitation.ContentOf<S>, InitialOf<S>> => {
  const { fields, multiline = [], ...rest } = options
  return {
    ...askTool.make<Name, Input, typeof Values>(name, rest as askTool.AskOptions<Input>, {
      app: formPage,
      suffix: "answer",
      answer: Values
    }),
    form: Elicitation.compile(fields as never) as Elicitation.Form<Elicitation.ContentOf<S>>,
    multiline
  }
}

/** The number of characters of the problem of a field. */
const maxProblemChars = 300

/** A result that shows the problems at the fields. The question stays open. */
const refused = ({ fields, message }: Elicitation.InvalidContent, { properties }: RequestedSchema) =>
  Tool.result({
    isError: true,
    content: clip(message, 1_000),
    _meta: {
      [problemsKey]: Object.fromEntries(
        Object.keys(properties).flatMap((name) =>
          Object.hasOwn(fields, name) ? [[name, clip(fields[name]!, maxProblemChars)]] : []
        )
      )
    }
  })

/**
 * Registers the tool with two functions: `ask` makes the question from the arguments, and `handle` runs with the
 * values. The model receives what `handle` returns, as text where a page asked, and not the values.
 *
 * A question that breaks a rule of `Question` fails the call with `AskError` `InvalidQuestion`. A form that the user
 * declines fails it with `NoAnswer`. A schema that a form cannot have fails with `DefinitionError` `InvalidValue`.
 *
 * @example
 * const live = Form.layer(table, {
 *   ask: ({ day }) => Effect.succeed({ title: `A table on ${day}`, submit: "Book", initial: { people: 2 } }),
 *   handle: ({ input, values }) => Effect.as(book(input.day, values), `A table for ${values.people} is booked`)
 * })
 */
export const layer = <
  Name extends string,
  Input,
  Values,
  Initial,
  E1 extends HandlerError = never,
  R1 = never,
  E2 extends HandlerError = never,
  R2 = never
>(
  form: Form<Name, Input, Values, Initial>,
  { ask, handle }: askTool.Handlers<Input, Question<NoInfer<Initial>>, Filled<Input, Values>, E1, R1, E2, R2>
): askTool.Registered<R1 | R2> => {
  const { decode, requestedSchema } = form.form
  if (Result.isFailure(requestedSchema)) {
    const { name } = form.tool
    const reason = new InvalidValue({ message: `The tool ${quote(name)} is invalid: ${requestedSchema.failure}` })
    return Layer.effectDiscard(Effect.fail(new DefinitionError({ reason, kind: "tool", definition: name })))
  }
  const schema = requestedSchema.success
  return askTool.layer<Name, Input, { readonly [name: string]: unknown }, Question, E1 | E2, R1 | R2>(form, {
    ask: ask as (input: Input) => Effect.Effect<Question, E1, R1>,
    check: ({ details, initial = {}, submit, title }) => {
      const unknown = Object.keys(initial).find((name) => !Object.hasOwn(schema.properties, name))
      if (unknown !== undefined) {
        const message = `The question ${quote(title)} has an initial value of ${quote(unknown)}, which is not a field`
        return Effect.fail(new AskError(new InvalidQuestion({ message })))
      }
      return Effect.succeed([details, submit, JSON.stringify(initial)])
    },
    forPage: ({ initial = {}, submit = "Send" }) => ({ submit, fields: fieldsOf(schema, initial, form.multiline) }),
    withoutPage: ({ input, question }) =>
      Effect.flatMap(
        askTool.askByForm(question, Elicitation.filledIn(form.form, question.initial ?? {})),
        (answer): Effect.Effect<Tool.Answer<never>, AskError | E2, R2> =>
          answer.action === "accept"
            ? handle({ values: answer.content, input })
            : Effect.fail(askTool.noAnswer(question))
      ),
    // The values are decoded before the question is taken: the decoding may wait, and a second answer is refused.
    answer: (open, token, content) =>
      Effect.flatMap(open.get(token), () =>
        Effect.matchEffect(decode(content), {
          onFailure: (problem) => Effect.succeed(refused(problem, schema)),
          onSuccess: (values) =>
            Effect.flatMap(open.take(token, () => Effect.void), ({ input }) => handle({ values, input }))
        }))
  })
}

/**
 * Registers the tool with functions that return values or promises: see `Tool.async`.
 *
 * @example
 * server.use(Form.async(table, {
 *   ask: ({ day }) => ({ title: `A table on ${day}` }),
 *   handle: async ({ values }, { signal }) => `Booked as ${await book(values, signal)}`
 * }))
 */
const async_ = <Name extends string, Input, Values, Initial, R = never>(
  form: Form<Name, Input, Values, Initial>,
  handlers: askTool.AsyncHandlers<Input, Question<NoInfer<Initial>>, Filled<Input, Values>, R>
): askTool.Registered<R> => layer(form, askTool.toEffects(handlers))
export { async_ as async }

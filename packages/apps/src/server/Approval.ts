/**
 * Asks the user to approve something, on a page with a title, details and two buttons. The page is a part of this module:
 * an author writes none.
 *
 * A model calls the tool. Its host shows the page, and the result tells the model to wait. When the user presses a button,
 * the page calls a tool that models do not get, and `handle` runs with the answer. The page gives the result to the model,
 * with `ui/update-model-context` and `ui/message`.
 *
 * - A client without pages gets a form (`Elicitation.form`) with the two labels, and `handle` runs in the same call. To
 *   decline the form is to decline.
 * - A client with neither fails the call with `AskError` `CannotAsk`. `handle` never runs without an answer.
 * - An answer counts once, within `timeout`, for the principal that was asked. The page proves itself with a token that is
 *   in `_meta` of the result, which hosts do not give to models.
 *
 * The questions that wait are in the memory of the server: behind a load balancer, send the requests of a client to one
 * machine.
 *
 * @example
 * const deploy = Approval.make("deploy", {
 *   description: "Deploys a version, if the user approves",
 *   input: { version: Schema.String }
 * })
 * const live = Approval.layer(deploy, {
 *   ask: ({ version }) => Effect.succeed({ title: `Deploy ${version}?`, approve: "Deploy" }),
 *   handle: ({ approved, input }) => approved ? release(input.version) : Effect.succeed("Nothing was deployed")
 * })
 */
import * as Elicitation from "@skein/server/Elicitation"
import type { HandlerError } from "@skein/server/HandlerError"
import type * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as askTool from "./askTool.ts"
import { approvalPage } from "./readyPages.ts"

export type { Bounds, Limits } from "./openQuestions.ts"

/** A question that the user approves or declines. Its texts are shown as text: markup has no effect. */
export interface Question extends askTool.Question {
  /** The label of the button that approves. `Approve` by default. */
  readonly approve?: string | undefined
  /** The label of the button that declines. `Decline` by default. */
  readonly decline?: string | undefined
}

/** The description of the tool, and its bounds. */
export interface Options<Input extends Tool.AnySchema> extends askTool.AskOptions<Input> {}

/** A tool that asks for approval. Made by `Approval.make`. Its page calls a second tool, `<name>_answer`. */
export interface Approval<Name extends string, Input> extends askTool.AskTool<Name, Input, boolean> {}

/** The answer of the user, and the arguments of the call. */
export interface Answered<Input> {
  readonly approved: boolean
  readonly input: Input
}

/**
 * Defines a tool that asks for approval. `input` has the arguments, as in `Tool.make`.
 *
 * @example
 * const ask = Approval.make("request_approval", {
 *   description: "Asks the user to approve an action before you take it",
 *   input: { title: Schema.String, details: Schema.String },
 *   timeout: "1 hour"
 * })
 */
export const make = <const Name extends string, Input extends Tool.AnySchema = {}>(
  name: Name,
  options: Options<Input> & Pick<Tool.CheckedSchemas<Input, never>, "input"> = {}
): Approval<Name, Tool.InputOf<Input>> =>
  askTool.make<Name, Input, typeof Schema.Boolean>(name, options, {
    app: approvalPage,
    suffix: "answer",
    answer: Schema.Boolean
  })

const labels = ({ approve = "Approve", decline = "Decline" }: Question) => ({ approve, decline })

/**
 * Registers the tool with two functions: `ask` makes the question from the arguments, and `handle` runs with the answer.
 * The model receives what `handle` returns, as text where a page asked.
 *
 * In a form of the stateless revision `ask` runs again with the answer, as every handler does: see `Elicitation`.
 *
 * @example
 * const live = Approval.layer(remove, {
 *   ask: ({ folder }) => Effect.map(filesOf(folder), (files) => ({ title: "Delete?", details: files.join("\n") })),
 *   handle: ({ approved, input }) => approved ? removeAll(input.folder) : Effect.succeed("The user declined")
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
  approval: Approval<Name, Input>,
  { ask, handle }: askTool.Handlers<Input, Question, Answered<Input>, E1, R1, E2, R2>
): askTool.Registered<R1 | R2> => {
  return askTool.layer<Name, Input, boolean, Question, E1 | E2, R1 | R2>(approval, {
    ask,
    check: ({ approve, decline, details }) => Effect.succeed([details, approve, decline]),
    forPage: labels,
    withoutPage: ({ input, question }) => {
      const form = { answer: Elicitation.choice(labels(question)) }
      return Effect.flatMap(
        askTool.askByForm(question, form),
        (answer) => handle({ approved: answer.action === "accept" && answer.content.answer === "approve", input })
      )
    },
    answer: (open, token, approved) =>
      Effect.flatMap(open.take(token, () => Effect.void), ({ input }) => handle({ approved, input }))
  })
}

/**
 * Registers the tool with functions that return values or promises: see `Tool.async`.
 *
 * @example
 * server.use(Approval.async(deploy, {
 *   ask: ({ version }) => ({ title: `Deploy ${version}?` }),
 *   handle: async ({ approved, input }, { signal }) => approved ? release(input.version, signal) : "Nothing was deployed"
 * }))
 */
const async_ = <Name extends string, Input, R = never>(
  approval: Approval<Name, Input>,
  handlers: askTool.AsyncHandlers<Input, Question, Answered<Input>, R>
): askTool.Registered<R> => layer(approval, askTool.toEffects(handlers))
export { async_ as async }

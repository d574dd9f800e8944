/**
 * The tools of a ready app: one that the model calls to ask the user, and one for the page, which sends the answer.
 */
import { quote } from "@skein/protocol/Text"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as AsyncHandler from "@skein/server/AsyncHandler"
import type { Catalog, HandlerServices } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as Elicitation from "@skein/server/Elicitation"
import type { HandlerError } from "@skein/server/HandlerError"
import type { InputError } from "@skein/server/InputError"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as App from "./App.ts"
import { AskError, CannotAsk, NoAnswer } from "./AskError.ts"
import * as openQuestions from "./openQuestions.ts"
import { questionKey } from "../shared/pageQuestion.ts"

/** The options of a tool that asks. */
export interface AskOptions<Input extends Tool.AnySchema>
  extends Omit<Tool.Options<Input, never>, "execution" | "output">, openQuestions.Bounds
{}

/** The texts of a question. They are shown as text: markup has no effect. */
export interface Question {
  /** The question in one line. */
  readonly title: string
  /** The details that the user needs to answer. Line breaks stay. */
  readonly details?: string | undefined
}

/** A tool that asks, and the tool that its page answers with. */
export interface AskTool<Name extends string, Input, Answer> {
  readonly tool: App.AppTool<Name, Input, never, unknown, undefined>
  readonly answerTool: App.AppTool<
    string,
    { readonly token: string; readonly answer: Answer },
    never,
    unknown,
    undefined
  >
  readonly bounds: openQuestions.Bounds
}

/** Makes the two tools. */
export const make = <const Name extends string, Input extends Tool.AnySchema, Answer extends Tool.Codec>(
  name: Name,
  { limits, timeout, ...options }: AskOptions<Input>,
  { answer, app, suffix }: { readonly app: App.App; readonly suffix: string; readonly answer: Answer }
): AskTool<Name, Tool.InputOf<Input>, Answer["Type"]> => ({
  tool: App.tool<Name, Input>(name, { ...options, app } as never) as never,
  answerTool: App.tool(`${name}_${suffix}`, {
    app,
    visibility: ["app"],
    description: `Takes the answer of the user to ${name}, from its page`,
    input: { token: Schema.String, answer: answer as Tool.Codec },
    visible: options.visible
  }) as never,
  bounds: { limits, timeout }
})

/** The functions of a ready app. */
export interface Handlers<Input, Question, Answered, E1, R1, E2, R2> {
  /** Makes the question from the arguments. */
  readonly ask: (input: Input) => Effect.Effect<Question, E1, R1>
  /** Runs with the answer. The model receives its result. */
  readonly handle: (answered: Answered) => Effect.Effect<Tool.Answer<never>, E2, R2>
}

/** The functions of a ready app, which return values or promises. */
export interface AsyncHandlers<Input, Question, Answered, R> {
  /** Makes the question from the arguments. */
  readonly ask: AsyncHandler.AsyncHandler<Input, Question, R>
  /** Runs with the answer. The model receives its result. */
  readonly handle: AsyncHandler.AsyncHandler<Answered, Tool.Answer<never>, R>
}

/** The functions as effects. */
export const toEffects = <Input, Question, Answered, R>(
  { ask, handle }: AsyncHandlers<Input, Question, Answered, R>
): Handlers<Input, Question, Answered, HandlerError, R | McpRequest, HandlerError, R | McpRequest> => ({
  ask: AsyncHandler.toEffect(ask),
  handle: AsyncHandler.toEffect(handle)
})

/** The layer that registers the tools of a ready app. */
export type Registered<R> = Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>>

/** A question that waits for its answer, with the arguments of the call. */
export interface Waiting<Input, Q> {
  readonly input: Input
  readonly question: Q
}

/** How an app asks and takes answers. */
export interface Behaviour<Input, Answer, Q extends Question, E, R> {
  readonly ask: (input: Input) => Effect.Effect<Q, E, R>
  /** The texts of a question after its title. Fails if the question has another problem. */
  readonly check: (question: Q) => Effect.Effect<ReadonlyArray<string | undefined>, AskError>
  /** The members of the question for the page, besides its title and its details. */
  readonly forPage: (question: Q) => { readonly [member: string]: unknown }
  /** Asks without a page. */
  readonly withoutPage: (
    waiting: Waiting<Input, Q>
  ) => Effect.Effect<Tool.Answer<never>, E | HandlerError, R | McpRequest>
  /** Handles an answer of the page. */
  readonly answer: (
    open: openQuestions.OpenQuestions<Waiting<Input, Q>>,
    token: string,
    answer: Answer
  ) => Effect.Effect<Tool.Answer<never>, E | HandlerError, R | McpRequest>
  /** A question has ended without an answer. */
  readonly closed?: ((waiting: Waiting<Input, Q>) => void) | undefined
}

/** Registers the tools and their page. */
export const layer = <Name extends string, Input, Answer, Q extends Question, E extends HandlerError, R>(
  { answerTool, bounds, tool }: AskTool<Name, Input, Answer>,
  { answer, ask, check, closed, forPage, withoutPage }: Behaviour<Input, Answer, Q, E, R>
): Registered<R> => {
  const live = Effect.map(openQuestions.make(bounds, closed), (open) =>
    Layer.merge(
      App.layer(tool, (input: Input) =>
        Effect.gen(function*() {
          const question = yield* ask(input)
          yield* open.check([question.title, ...(yield* check(question))])
          const waiting = { input, question }
          if (!(yield* App.isSupported)) return yield* withoutPage(waiting)
          const token = yield* open.add(waiting)
          const { details, title } = question
          const shown = { title, details, ...forPage(question), tool: answerTool.name, token }
          return Tool.result({
            content: `The user sees a page that asks ${quote(question.title, 200)}. Nothing is done yet. ` +
              "The answer comes in the conversation: wait for it",
            _meta: { [questionKey]: shown as never }
          })
        })),
      App.layer(answerTool, (given) => answer(open, given.token, given.answer))
    ))
  return Layer.unwrap(live) as never
}

/** The client has no way to ask the user. */
export const cannotAsk = ({ title }: Question, lack: string): AskError =>
  new AskError(
    new CannotAsk({
      message: `The user cannot be asked ${quote(title, 200)}: the client shows ${lack}. Nothing was done`
    })
  )

/** Asks with a form. Fails with `CannotAsk` if the client has none, and with `NoAnswer` if the user dismisses it. */
export const askByForm = <const S extends Elicitation.GivenForm>(
  question: Question,
  form: S & Elicitation.CheckedForm<S>
): Effect.Effect<
  Exclude<Elicitation.Answer<Elicitation.ContentOf<S>>, { readonly action: "cancel" }>,
  AskError | InputError,
  McpRequest
> =>
  Elicitation.form([question.title, question.details ?? ""].join("\n\n").trimEnd(), form).pipe(
    Effect.catchReasons("InputError", {
      MissingCapability: () => Effect.fail(cannotAsk(question, "neither pages nor forms")),
      Unsupported: () => Effect.fail(cannotAsk(question, "neither pages nor forms"))
    }),
    Effect.flatMap((answer) => answer.action === "cancel" ? Effect.fail(noAnswer(question)) : Effect.succeed(answer))
  ) as never

/** The user gave no answer. */
export const noAnswer = ({ title }: Question): AskError =>
  new AskError(new NoAnswer({ message: `The user did not answer ${quote(title, 200)}. Nothing was done` }))
